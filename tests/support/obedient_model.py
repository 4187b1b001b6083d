"""A Chat Completions server whose model does what the task says, and which counts how many ask at once.

A task is a JSON object: `calls`, a list of `[name, arguments]` that are made one a turn, `answer`, and `delay`, the
seconds before each reply.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chat_samples import chat_answer

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def task(*calls: tuple[str, dict[str, Any]], answer: str = "Done.", delay: float = 0.0) -> str:
    return json.dumps({"calls": calls, "answer": answer, "delay": delay})


class ObedientModel(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.guard = threading.Lock()
        self.asked = 0
        self.now = 0
        self.most_at_once = 0

    @property
    def options(self) -> list[str]:
        return ["--provider", "openai:obedient", "--provider-url", f"http://127.0.0.1:{self.server_port}/v1"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients are interrupted on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ObedientModel

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        with self.server.guard:
            self.server.asked += 1
            self.server.now += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.now)
        wanted = json.loads(next(message["content"] for message in messages if message["role"] == "user"))
        time.sleep(wanted["delay"])
        with self.server.guard:
            self.server.now -= 1
        turn = sum(message["role"] == "assistant" for message in messages)
        self._send(_reply(wanted, turn))

    def _send(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any, **named: Any) -> None:
        """Stay silent."""


def _reply(wanted: dict[str, Any], turn: int) -> dict[str, Any]:
    if turn >= len(wanted["calls"]):
        return chat_answer({"content": wanted["answer"]}, usage=USAGE)
    name, arguments = wanted["calls"][turn]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{turn}", "type": "function", "function": function}
    return chat_answer({"content": None, "tool_calls": [call]}, "tool_calls", usage=USAGE)


@contextmanager
def obedient_model() -> Iterator[ObedientModel]:
    server = ObedientModel()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
