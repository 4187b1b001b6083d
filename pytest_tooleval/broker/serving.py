"""A broker's MCP server on a real transport: standard input and output, or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_tooleval.broker.mcp_server import mcp_server
from pytest_tooleval.broker.surface import ToolBroker
from pytest_tooleval.errors import ConfigError

DEFAULT_HOST = "127.0.0.1"
PATH = "/mcp"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_ADDRESS = re.compile(r"(?:(?P<host>\[[^\]]*\]|[^:]*):)?(?P<port>\d{1,5})")
_GRACE_SECONDS = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Where a server listens, and under which names it may be asked.

    Attributes:
        host: an address or a name of this machine.
        port: 0 for a free one.
        allowed_hosts: names that a request's `Host` may have, beside those of the loopback.

    """

    host: str
    port: int
    allowed_hosts: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str, allowed_hosts: tuple[str, ...] = ()) -> HttpAddress:
    """Return the address that `HOST:PORT` or `PORT` names; an IPv6 address stands in brackets.

    Raises:
        ConfigError: it is neither, or other machines reach it and no allowed host is named.

    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--http {text!r} is no address: expected HOST:PORT or PORT, as 127.0.0.1:8000")
    host = (found["host"] or DEFAULT_HOST).strip("[]") or DEFAULT_HOST
    address = HttpAddress(host, int(found["port"]), allowed_hosts)
    if not address.is_loopback and not allowed_hosts:
        raise ConfigError(
            f"--http {text}: other machines reach this address, and whoever does can call the tools; "
            "name the hosts under which it may be asked with --allow-host NAME, or listen on 127.0.0.1"
        )
    return address


def serve_stdio(broker: ToolBroker, close: Callable[[], None]) -> None:
    """Serve one client until it closes standard input.

    An interrupt or SIGTERM ends the process at once, after `close`: a thread that reads standard input cannot be
    stopped.

    Args:
        broker: who answers.
        close: releases what is behind the broker; called once, however the serving ends.

    Raises:
        McpMissingError: the package `mcp` is missing.

    """
    server = mcp_server(broker)
    try:
        asyncio.run(_with_signals(partial(_speak, server), lambda number: _end_process(close, number)))
    finally:
        close()


async def _speak(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _end_process(close: Callable[[], None], number: int) -> None:
    try:
        close()
    finally:
        os._exit(128 + number)


def serve_http(
    broker: ToolBroker, address: HttpAddress, close: Callable[[], None], announce: Callable[[str], None]
) -> None:
    """Serve any number of clients over Streamable HTTP until an interrupt or SIGTERM.

    Args:
        broker: who answers.
        address: where.
        close: releases what is behind the broker; called once, however the serving ends.
        announce: told the URL once the server listens.

    Raises:
        ConfigError: the address cannot be used.
        McpMissingError: the package `mcp` is missing.

    """
    server = mcp_server(broker)
    try:
        with _listening(address) as listener:
            asyncio.run(_serve_requests(server, address, listener, announce))
    finally:
        close()


@contextlib.contextmanager
def _listening(address: HttpAddress) -> Iterator[socket.socket]:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"--http {address.host}:{address.port} cannot be listened on: {reason}") from None
    with listener:
        yield listener


async def _serve_requests(
    server: Any, address: HttpAddress, listener: socket.socket, announce: Callable[[str], None]
) -> None:
    import uvicorn

    class Uvicorn(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave signals alone: uvicorn would raise them again, and nothing would be closed."""
            yield

    settings = _security(address)
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=settings
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_SECONDS, lifespan="on"
    )
    serving = Uvicorn(config)
    shown = f"[{address.host}]" if ":" in address.host else address.host
    announce(f"http://{shown}:{listener.getsockname()[1]}{PATH}")

    def stop(_: int) -> None:
        serving.should_exit = True

    await _with_signals(lambda: serving.serve(sockets=[listener]), stop)


def _security(address: HttpAddress) -> Any:
    """Return the `Host` and `Origin` headers that are let in: a page of another site must not reach the tools."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = [*_LOOPBACK_NAMES] if address.is_loopback else []
    if address.is_loopback and address.host not in names:
        names.append(f"[{address.host}]" if ":" in address.host else address.host)
    names += address.allowed_hosts
    hosts = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def _with_signals(serve: Callable[[], Awaitable[None]], stop: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        await serve()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
