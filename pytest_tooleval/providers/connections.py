"""HTTP connections for many threads, each exchange within its time to the end."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


class Line:
    """A client that one thread uses at a time, and the socket that it talks through."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._lock = threading.Lock()
        self._stream: Any = None
        self._exchange: Exchange | None = None

    @contextlib.contextmanager
    def exchange(self, seconds: float) -> Iterator[Exchange]:
        """Break off what is sent and received in this block when it is not over after so many seconds.

        httpx has limits for single reads only: a server that sends a byte now and then would be waited for
        without end.
        """
        exchange = Exchange(seconds)
        watch = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._break_off, [exchange])
        watch.daemon = True
        with self._lock:
            self._exchange = exchange
        watch.start()
        try:
            yield exchange
        finally:
            watch.cancel()
            with self._lock:
                self._exchange = None

    def observe(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn of every new connection; this is a callback for httpx's `trace` extension."""
        if not event.endswith(_CONNECTED):
            return
        with self._lock:
            self._stream = info["return_value"]
            if self._exchange is not None and self._exchange.is_broken_off:
                self._shut()

    def _break_off(self, exchange: Exchange) -> None:
        with self._lock:
            if self._exchange is exchange:
                exchange.is_broken_off = True
                self._shut()

    def _shut(self) -> None:
        connected = None if self._stream is None else self._stream.get_extra_info("socket")
        if connected is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


class Exchange:
    """One request and its answer: how long they may take, and whether that was too short."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_broken_off = False


class Lines:
    """Lends each line to one thread at a time: sharing a client among threads costs half as much again.

    Args:
        new_client: makes a client.

    """

    def __init__(self, new_client: Callable[[], httpx.Client]) -> None:
        self._new_client = new_client
        self._idle: list[Line] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Line]:
        """Lend a line for a block."""
        with self._lock:
            line = self._idle.pop() if self._idle else None
        line = line or Line(self._new_client())
        try:
            yield line
        finally:
            self._give_back(line)

    def _give_back(self, line: Line) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(line)
                return
        line.client.close()

    def close(self) -> None:
        """Close the lines that nobody uses, and the others when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for line in idle:
            line.client.close()


class _SharedSslContext:
    """Makes the process's one SSL context at first use: each costs tens of milliseconds of CPU."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def shared(self) -> ssl.SSLContext:
        with self._lock:
            if self._context is None:
                self._context = httpx.create_ssl_context()
            return self._context


_ssl_contexts = _SharedSslContext()


def new_client(timeout: httpx.Timeout, *, proxies_from_environment: bool) -> httpx.Client:
    """Return a client that follows no redirects and shares the process's SSL context.

    Raises:
        ValueError, ImportError, OSError, httpx.InvalidURL: the environment's proxies or certificates are unusable.

    """
    return httpx.Client(
        verify=_ssl_contexts.shared(),
        trust_env=proxies_from_environment,
        follow_redirects=False,
        timeout=timeout,
    )
