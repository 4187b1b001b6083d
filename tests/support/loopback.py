"""A real HTTP server on the loopback that answers from a script and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound="LoopbackServer")


@dataclass(frozen=True)
class Scripted:
    """One answer: status, headers and body; or a fault.

    `declared_length` lies about the body's length, `delay` is seconds before the first byte,
    `drip` seconds between single bytes of the body and `header_drip` between those of the headers,
    `stall` seconds of silence after the body, `hang_up` closes the connection without a word.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    declared_length: int | None = None
    delay: float = 0.0
    drip: float = 0.0
    header_drip: float = 0.0
    stall: float = 0.0
    hang_up: bool = False


def as_json(value: Any, status: int = 200, **headers: str) -> Scripted:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Scripted(status, json.dumps(value).encode(), {"Content-Type": "application/json", **named})


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Any


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Sequence[Scripted]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.asked: list[Asked] = []
        self.connections = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.on_request: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients hang up on purpose."""

    def next_answer(self, asked: Asked) -> Scripted:
        """Return the next answer; the last one is repeated for ever."""
        with self.lock:
            self.on_request()
            self.asked.append(asked)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LoopbackServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.next_answer(Asked(self.path, headers, json.loads(raw)))
        self.server.stopped.wait(answer.delay)
        if answer.hang_up:
            self.close_connection = True
            return
        self._send(answer)

    def _send(self, answer: Scripted) -> None:
        length = len(answer.body) if answer.declared_length is None else answer.declared_length
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        if answer.header_drip:
            self._drip(b"X-Padding: " + b"x" * 600 + b"\r\n", answer.header_drip)
        self.end_headers()
        if answer.drip:
            self._drip(answer.body, answer.drip)
        else:
            self.wfile.write(answer.body)
        self.server.stopped.wait(answer.stall)
        self.close_connection = length != len(answer.body)

    def _drip(self, sent: bytes, seconds: float) -> None:
        self.flush_headers()
        for byte in sent:
            self.wfile.write(bytes([byte]))
            time.sleep(seconds)

    def log_message(self, *args: Any, **named: Any) -> None:
        """Stay silent."""


def serving(*script: Scripted) -> AbstractContextManager[LoopbackServer]:
    return serving_with(LoopbackServer(script))


@contextmanager
def serving_with(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def unused_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
