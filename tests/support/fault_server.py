"""A real HTTP server that speaks five dialects for a scripted model, counts its requests and misbehaves on command."""

from __future__ import annotations

import enum
import json
import os
import re
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Protocol

PATH = "notes.txt"
FILES = {PATH: "plum\n"}
ANSWER = "The word is plum."
TOOL, ARGUMENTS = "file_read", {"path": PATH}
PROMPT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 120, 100, 30


class Fault(enum.Enum):
    """What can be done to a request in place of answering it."""

    RATE_LIMIT_SECONDS = "429 with Retry-After in seconds"
    RATE_LIMIT_DATE = "429 with Retry-After as a date"
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502"
    OVERLOADED = "529"
    RESET = "connection reset before the answer"
    RESET_IN_BODY = "connection reset within the body"
    TRUNCATED = "truncated JSON"
    HTML = "HTML in place of JSON"
    ERROR_INSIDE = "error inside 200"
    STALL = "stall"


STATUSES = {
    Fault.RATE_LIMIT_SECONDS: 429,
    Fault.RATE_LIMIT_DATE: 429,
    Fault.SERVER_ERROR: 500,
    Fault.OVERLOADED: 529,
}
PAGES = {Fault.BAD_GATEWAY: 502, Fault.HTML: 200}

Plan = Callable[[int], Fault | None]
"""What to do to the request of a number, counted from 1."""


def well_behaved(_: int) -> None:
    """Answer every request."""


def every(nth: int, faults: Sequence[Fault] = tuple(Fault)) -> Plan:
    """Fail each nth request, with the faults in turn; the number of each depends on no order of threads."""
    return lambda number: faults[(number // nth - 1) % len(faults)] if number % nth == 0 else None


class Dialect(Protocol):
    """How a dialect spells what the server says and reads."""

    def has_result(self, body: Any) -> bool: ...
    def call(self) -> Any: ...
    def text(self) -> Any: ...
    def error(self) -> Any: ...


class OpenAIChat:
    def has_result(self, body: Any) -> bool:
        return any(message["role"] == "tool" for message in body["messages"])

    def call(self) -> Any:
        function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
        return self._reply(
            "tool_calls", content=None, tool_calls=[{"id": "c1", "type": "function", "function": function}]
        )

    def text(self) -> Any:
        return self._reply("stop", content=ANSWER)

    def error(self) -> Any:
        return {"error": {"message": "the server is overloaded", "type": "overloaded_error"}}

    def _reply(self, finish: str, **message: Any) -> Any:
        usage = {
            "prompt_tokens": PROMPT_TOKENS,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
        }
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
        return {"object": "chat.completion", "choices": [choice], "usage": usage}


class OpenAIResponses:
    def has_result(self, body: Any) -> bool:
        return any(item.get("type") == "function_call_output" for item in body["input"])

    def call(self) -> Any:
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="}
        call = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": TOOL,
            "arguments": json.dumps(ARGUMENTS),
        }
        return self._reply(reasoning, call)

    def text(self) -> Any:
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        return self._reply({"type": "message", "id": "msg_1", "role": "assistant", "content": content})

    def error(self) -> Any:
        error = {"code": "server_error", "message": "the server is overloaded"}
        return {"object": "response", "status": "failed", "error": error, "output": []}

    def _reply(self, *items: Any) -> Any:
        usage = {
            "input_tokens": PROMPT_TOKENS,
            "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "output_tokens": OUTPUT_TOKENS,
            "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
        }
        return {"object": "response", "status": "completed", "error": None, "output": list(items), "usage": usage}


class Anthropic:
    def has_result(self, body: Any) -> bool:
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        return any(block["type"] == "tool_result" for content in contents for block in content)

    def call(self) -> Any:
        return self._reply("tool_use", {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": ARGUMENTS})

    def text(self) -> Any:
        return self._reply("end_turn", {"type": "text", "text": ANSWER})

    def error(self) -> Any:
        return {"type": "error", "error": {"type": "overloaded_error", "message": "the server is overloaded"}}

    def _reply(self, reason: str, block: Any) -> Any:
        usage = {
            "input_tokens": PROMPT_TOKENS - CACHED_TOKENS,
            "cache_read_input_tokens": CACHED_TOKENS,
            "cache_creation_input_tokens": 0,
            "output_tokens": OUTPUT_TOKENS,
        }
        shared = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None}
        return {**shared, "content": [block], "stop_reason": reason, "usage": usage}


class Ollama:
    def has_result(self, body: Any) -> bool:
        return any(message["role"] == "tool" for message in body["messages"])

    def call(self) -> Any:
        return self._reply(content="", tool_calls=[{"function": {"name": TOOL, "arguments": ARGUMENTS}}])

    def text(self) -> Any:
        return self._reply(content=ANSWER)

    def error(self) -> Any:
        return {"error": "the server is overloaded"}

    def _reply(self, **message: Any) -> Any:
        counts = {
            "prompt_eval_count": PROMPT_TOKENS,
            "prompt_eval_cached_count": CACHED_TOKENS,
            "eval_count": OUTPUT_TOKENS,
        }
        return {"message": {"role": "assistant", **message}, "done": True, "done_reason": "stop", **counts}


class Gemini:
    def has_result(self, body: Any) -> bool:
        return any("functionResponse" in part for content in body["contents"] for part in content["parts"])

    def call(self) -> Any:
        return self._reply({"functionCall": {"name": TOOL, "args": ARGUMENTS}})

    def text(self) -> Any:
        return self._reply({"text": ANSWER})

    def error(self) -> Any:
        return {"error": {"code": 503, "status": "UNAVAILABLE", "message": "the server is overloaded"}}

    def _reply(self, part: Any) -> Any:
        usage = {
            "promptTokenCount": PROMPT_TOKENS,
            "cachedContentTokenCount": CACHED_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": PROMPT_TOKENS + OUTPUT_TOKENS,
        }
        content = {"role": "model", "parts": [part]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


DIALECTS: dict[str, tuple[str, Dialect]] = {
    "openai-chat": (r"/v1/chat/completions", OpenAIChat()),
    "openai-responses": (r"/v1/responses", OpenAIResponses()),
    "anthropic": (r"/v1/messages", Anthropic()),
    "ollama": (r"/api/chat", Ollama()),
    "gemini": (r"/v1beta/models/[^/:]+:generateContent", Gemini()),
}


class FaultServer(ThreadingHTTPServer):
    """Answers a conversation without a tool result with a call, and one with a result with a text.

    Args:
        plan: which request fails, and how.
        retry_after: seconds that a rate-limited client is asked to wait; a date says whole seconds only.
        stall: most seconds of silence.

    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, plan: Plan, retry_after: float, stall: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plan = plan
        self.retry_after = retry_after
        self.stall = stall
        self.requests = 0
        self.faults: Counter[Fault] = Counter()
        self.moments: list[float] = []
        self.stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def root(self) -> str:
        """The base URL of Ollama's API."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """The base URL of the APIs of OpenAI and Anthropic."""
        return f"{self.root}/v1"

    @property
    def gemini_url(self) -> str:
        """The base URL of Gemini's API."""
        return f"{self.root}/v1beta"

    def count(self) -> Fault | None:
        """Count a request; return what is to be done to it."""
        with self._lock:
            self.requests += 1
            self.moments.append(time.monotonic())
            fault = self.plan(self.requests)
            if fault is not None:
                self.faults[fault] += 1
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients hang up on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        fault = self.server.count()
        path = self.path.partition("?")[0]
        dialect = next((found for pattern, found in DIALECTS.values() if re.fullmatch(pattern, path)), None)
        if dialect is None:
            self._send_json(404, {"error": {"message": f"no such path: {path}"}})
            return
        answer = dialect.text() if dialect.has_result(body) else dialect.call()
        if fault is None:
            self._send_json(200, answer)
        else:
            self._misbehave(fault, dialect, json.dumps(answer).encode())

    def _misbehave(self, fault: Fault, dialect: Dialect, answer: bytes) -> None:
        if fault in STATUSES:
            body = json.dumps({"error": {"message": f"refused with {STATUSES[fault]}"}}).encode()
            self._send(STATUSES[fault], body, **self._retry_after(fault))
        elif fault in PAGES:
            self._send(PAGES[fault], b"<html><h1>Please come back later</h1></html>", "text/html")
        elif fault is Fault.ERROR_INSIDE:
            self._send_json(200, dialect.error())
        else:
            self._break_off(fault, answer)

    def _retry_after(self, fault: Fault) -> dict[str, str]:
        seconds = self.server.retry_after
        if fault is Fault.RATE_LIMIT_SECONDS:
            return {"retry_after": f"{seconds:g}"}
        if fault is Fault.RATE_LIMIT_DATE:
            return {"retry_after": formatdate(time.time() + seconds, usegmt=True)}
        return {}

    def _break_off(self, fault: Fault, answer: bytes) -> None:
        half = answer[: len(answer) // 2]
        if fault is Fault.TRUNCATED:
            self._send(200, half)
        elif fault is Fault.STALL:
            self.server.stopped.wait(self.server.stall)
            self.close_connection = True
        else:
            if fault is Fault.RESET_IN_BODY:
                self._send(200, half, declared_length=len(answer))
            self._reset()

    def _send_json(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        declared_length: int | None = None,
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body) if declared_length is None else declared_length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        """Leave the connection so that the client is sent a reset and no orderly end."""
        self.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        self.close_connection = True

    def log_message(self, *args: Any, **named: Any) -> None:
        """Stay silent."""


@contextmanager
def serving_faults(
    plan: Plan = well_behaved, *, retry_after: float = 0.05, stall: float = 30.0
) -> Iterator[FaultServer]:
    """Serve for a block; see `FaultServer`."""
    server = FaultServer(plan, retry_after, stall)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
