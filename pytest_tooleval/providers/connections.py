"""HTTP connections for many threads, each exchange within its time to the end."""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


class Exchange:
    """One request and its answer: how long they may take, and whether that was too short."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_broken_off = False


class Watch:
    """Breaks off exchanges that are not over in time.

    One thread does it for all of them: a timer for each would cost a sixth of the request.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[Exchange, tuple[float, Line]] = {}
        self._looks_again = math.inf
        self._thread: threading.Thread | None = None
        self._closed = False

    def begin(self, exchange: Exchange, line: Line) -> None:
        """Break off an exchange when it is not over after its seconds."""
        end = time.monotonic() + exchange.seconds
        with self._changed:
            self._running[exchange] = end, line
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="tooleval-watch", daemon=True)
                self._thread.start()
            elif end < self._looks_again:
                self._changed.notify()

    def end(self, exchange: Exchange) -> None:
        """Let go of an exchange that is over."""
        with self._changed:
            self._running.pop(exchange, None)
            if self._closed:
                self._changed.notify()

    def close(self) -> None:
        """End the thread as soon as no exchange is left."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _look(self) -> None:
        while (late := self._late()) is not None:
            for exchange, line in late:
                line.break_off(exchange)

    def _late(self) -> list[tuple[Exchange, Line]] | None:
        """Wait until an exchange is late, and return those that are; None when there is nothing to wait for."""
        with self._changed:
            while self._running or not self._closed:
                now = time.monotonic()
                late = [(exchange, line) for exchange, (end, line) in self._running.items() if end <= now]
                if late:
                    for exchange, _ in late:
                        del self._running[exchange]
                    return late
                self._looks_again = min((end for end, _ in self._running.values()), default=math.inf)
                self._changed.wait(min(self._looks_again - now, threading.TIMEOUT_MAX))
            self._thread = None
            return None


class Line:
    """A client that one thread uses at a time, and the socket that it talks through."""

    def __init__(self, client: httpx.Client, watch: Watch) -> None:
        self.client = client
        self._watch = watch
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
        with self._lock:
            self._exchange = exchange
        self._watch.begin(exchange, self)
        try:
            yield exchange
        finally:
            self._watch.end(exchange)
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

    def break_off(self, exchange: Exchange) -> None:
        """End an exchange where it is, unless it is over."""
        with self._lock:
            if self._exchange is exchange:
                exchange.is_broken_off = True
                self._shut()

    def _shut(self) -> None:
        connected = None if self._stream is None else self._stream.get_extra_info("socket")
        if connected is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


class Lines:
    """Lends each line to one thread at a time: sharing a client among threads costs half as much again.

    Args:
        new_client: makes a client.

    """

    def __init__(self, new_client: Callable[[], httpx.Client]) -> None:
        self._new_client = new_client
        self._watch = Watch()
        self._idle: list[Line] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Line]:
        """Lend a line for a block."""
        with self._lock:
            line = self._idle.pop() if self._idle else None
        line = line or Line(self._new_client(), self._watch)
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
        self._watch.close()
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
