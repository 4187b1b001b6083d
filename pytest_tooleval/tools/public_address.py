"""Connections to public addresses only: the address that was checked is the one that is connected to."""

from __future__ import annotations

import functools
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tooleval.errors import ToolError

if TYPE_CHECKING:
    import ssl

    import httpcore

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments; older Pythons call some of them global
    ipaddress.IPv4Network("192.88.99.0/24"),  # relays into IPv6
    ipaddress.IPv4Network("168.63.129.16/32"),  # a cloud's own services, at an address that looks public
)


def is_public(address: Address) -> bool:
    """Tell whether the address is a host on the internet, whatever IPv4 address an IPv6 one may carry."""
    carried = _carried(address) if isinstance(address, ipaddress.IPv6Address) else None
    if carried is not None:
        return is_public(carried)
    site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    special = site_local or address.is_multicast or address.is_reserved or any(address in net for net in _SPECIAL)
    return address.is_global and not special


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system's resolver gives for the host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@functools.cache
def default_tls() -> ssl.SSLContext:
    """Return the shared TLS settings: certificates and names are verified, the environment is not asked."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True)
class Network:
    """How hosts are reached.

    Attributes:
        allowed: tells which addresses may be connected to.
        resolve: gives the addresses of a host name and a port; raises OSError when there is none.
        tls: gives the TLS settings.

    """

    allowed: Callable[[Address], bool] = is_public
    resolve: Callable[[str, int], Sequence[str]] = system_addresses
    tls: Callable[[], ssl.SSLContext] = default_tls


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock by which all has to be done."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the moment so many seconds from now."""
        return cls(time.monotonic() + seconds)

    def left(self, most: float | None = None) -> float:
        """Return the seconds left, more than 0 and no more than `most`; raises TimeoutError when there are none."""
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds if most is None else min(seconds, most)


class CheckedBackend:
    """Opens httpcore's connections: looks a name up once, checks every address, connects to those."""

    def __init__(self, network: Network, deadline: Deadline) -> None:
        self._network = network
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> DeadlineStream:
        """Connect to the first address that answers; raises ToolError when one may not be connected to."""
        import httpcore

        addresses = self._addresses(host, port)
        for position, address in enumerate(addresses, start=1):
            share = self._deadline.left(timeout) / (len(addresses) - position + 1)
            try:
                stream = httpcore.SyncBackend().connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if position == len(addresses):
                    raise
            else:
                return DeadlineStream(stream, self._deadline)
        raise ToolError(f"The host {host} has no address.")

    def _addresses(self, host: str, port: int) -> Sequence[str]:
        addresses = list(dict.fromkeys(self._look_up(host, port)))
        for address in addresses:
            if not self._network.allowed(ipaddress.ip_address(address)):
                raise ToolError(
                    f"The host {host} is at {address}, which is not a public address: it is not fetched."
                )
        return addresses

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        """Resolve in a thread of its own: the system's resolver cannot be given a time limit."""
        answers: list[Sequence[str] | Exception] = []

        def ask() -> None:
            try:
                answers.append(self._network.resolve(host, port))
            except (OSError, UnicodeError) as error:
                answers.append(error)

        thread = threading.Thread(target=ask, name="tooleval-resolver", daemon=True)
        thread.start()
        thread.join(self._deadline.left())
        if not answers:
            raise TimeoutError
        if isinstance(answers[0], Exception):
            raise ToolError(f"The host {host} was not found: {answers[0]}.") from answers[0]
        return answers[0]


class DeadlineStream:
    """A connection of httpcore whose reads and writes end in time all together, not each for itself."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there."""
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all."""
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> DeadlineStream:
        """Return the connection with TLS, the name verified."""
        encrypted = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return DeadlineStream(encrypted, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks of the connection."""
        return self._stream.get_extra_info(info)
