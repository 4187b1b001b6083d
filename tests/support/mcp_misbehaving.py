"""An MCP server that misbehaves on command, with the standard library only.

Run as a program it speaks over stdio: `python mcp_misbehaving.py QUIRK...`. A quirk says how it behaves from its
start (see `Quirk`), its tools misbehave when they are called. `serving_http` has the same server listen on the loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Message = dict[str, Any]
MODERN = "2026-07-28"


class Quirk(Enum):
    """How a server behaves from its start."""

    SILENT = "silent"  # never answers
    BROKEN = "broken"  # ends at once, with words on stderr
    OLD = "old"  # answers initialize with a revision that nobody knows
    MODERN_ONLY = "modern-only"  # knows no initialize
    BANNER = "banner"  # prints lines that are no messages
    CHATTY = "chatty"  # writes much to stderr
    PAGES = "pages"  # lists one tool a page, the last page with an empty cursor
    SAME_CURSOR = "same-cursor"  # every page has the same cursor
    ENDLESS_PAGES = "endless-pages"  # every page has a new cursor
    MUTE_LIST = "mute-list"  # lists its tools once and then never again
    ODD_TOOLS = "odd-tools"  # lists tools that break the rules beside one that does not
    FLOOD = "flood"  # sends notifications without end
    BEGGAR = "beggar"  # sends requests without end and reads no answers
    STUBBORN = "stubborn"  # ends neither with its input nor at SIGTERM
    FAMILY = "family"  # starts a stubborn process in a session of its own


def tool(name: str, /, **properties: str) -> Message:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": f"Tool {name}.", "inputSchema": schema}


TOOLS = [
    tool("echo", text="string"),
    tool("where"),
    tool("environment"),
    tool("count"),
    tool("answer", result="object"),
    tool("refuse", code="integer", text="string"),
    tool("huge", chars="integer"),
    tool("slow", seconds="number"),
    tool("die"),
    tool("leave", code="integer", words="string"),
    tool("print", text="string"),
    tool("raw", line="string"),
    tool("ask"),
    tool("learn", name="string"),
]
BROKEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
DEEP_SCHEMA: Message = {"type": "object"}
for _ in range(400):
    DEEP_SCHEMA = {"type": "object", "properties": {"a": DEEP_SCHEMA}}
ODD_TOOLS: list[Any] = [
    tool("echo", text="string"),
    {"name": "untyped", "description": "d", "inputSchema": {"properties": {"text": {"type": "string"}}}},
    {"name": "bare"},
    {"name": "listed", "inputSchema": {"type": "array"}},
    {"name": "broken", "inputSchema": BROKEN_SCHEMA},
    {"name": "deep", "inputSchema": DEEP_SCHEMA},
    {"name": "remote", "inputSchema": {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"}},
    {"name": "\x1b[31mred\x1b[0m\n", "description": "\x1b]0;title\x07 and \u202e back"},
    {"name": "x" * 500},
    {"name": "half \ud800"},
    {"name": ""},
    {"description": "no name"},
    {"name": ["no", "text"]},
    "no object",
    {"name": "echo", "description": "the second of this name"},
]


class Server:
    """Answers messages; `send` writes one of its own accord."""

    def __init__(self, quirks: frozenset[Quirk] = frozenset()) -> None:
        self.quirks = quirks
        self.tools = list(ODD_TOOLS if Quirk.ODD_TOOLS in quirks else TOOLS)
        self.calls = 0
        self.lists = 0
        self.asked: Message = {}
        self.replies: dict[Any, Message] = {}

    def answers(self, message: Message) -> Iterator[Message]:
        """Yield what is sent back for a message."""
        if "method" not in message:
            yield from self._reply(message)
        elif "id" in message and Quirk.SILENT not in self.quirks:
            yield from self._answers(message)

    def _answers(self, message: Message) -> Iterator[Message]:
        match message["method"]:
            case "initialize":
                yield self._initialized(message)
            case "server/discover" if Quirk.MODERN_ONLY in self.quirks:
                result = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
                yield answer(message, {**result, "ttlMs": 0, "cacheScope": "public", "resultType": "complete"})
            case "tools/list":
                yield from self._list(message)
            case "tools/call":
                self.calls += 1
                yield from self._call(message, message["params"]["name"], message["params"].get("arguments") or {})
            case method:
                yield error(message, -32601, f"no method {method}")

    def _initialized(self, message: Message) -> Message:
        if Quirk.MODERN_ONLY in self.quirks:
            return error(message, -32022, "old", {"supported": [MODERN], "requested": "old"})
        version = "1999-01-01" if Quirk.OLD in self.quirks else message["params"]["protocolVersion"]
        info = {"name": "misbehaving", "version": "1"}
        return answer(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})

    def _list(self, message: Message) -> Iterator[Message]:
        self.lists += 1
        cursor = message.get("params", {}).get("cursor")
        if Quirk.SAME_CURSOR in self.quirks:
            yield answer(message, {"tools": TOOLS[:1], "nextCursor": "again"})
        elif Quirk.ENDLESS_PAGES in self.quirks:
            yield answer(message, {"tools": TOOLS[:1], "nextCursor": f"page {self.lists}"})
        elif Quirk.PAGES in self.quirks:
            page = int(cursor or 0)
            yield answer(message, {"tools": [TOOLS[page]], "nextCursor": str(page + 1) if page < 2 else ""})
        elif Quirk.MUTE_LIST not in self.quirks or self.lists == 1:
            yield answer(message, {"tools": self.tools})

    def _call(self, message: Message, name: str, arguments: Mapping[str, Any]) -> Iterator[Message]:
        work: Callable[..., Iterator[Message]] = getattr(self, f"_{name}", self._echo)
        yield from work({**message, "name": name}, **arguments)

    def _echo(self, message: Message, text: str = "") -> Iterator[Message]:
        yield text_answer(message, f"{message['name']}: {text}")

    def _where(self, message: Message) -> Iterator[Message]:
        yield text_answer(message, str(Path.cwd()))

    def _environment(self, message: Message) -> Iterator[Message]:
        yield text_answer(message, json.dumps(dict(os.environ)))

    def _count(self, message: Message) -> Iterator[Message]:
        yield text_answer(message, f"{os.getpid()} {self.calls}")

    def _answer(self, message: Message, result: Any) -> Iterator[Message]:
        yield answer(message, result)

    def _refuse(self, message: Message, code: int, text: str) -> Iterator[Message]:
        yield error(message, code, text)

    def _huge(self, message: Message, chars: int) -> Iterator[Message]:
        yield text_answer(message, "x" * chars)

    def _slow(self, message: Message, seconds: float) -> Iterator[Message]:
        time.sleep(seconds)
        yield text_answer(message, "done")

    def _die(self, message: Message) -> Iterator[Message]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from ()

    def _leave(self, message: Message, code: int, words: str) -> Iterator[Message]:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
        os._exit(code)
        yield from ()

    def _print(self, message: Message, text: str) -> Iterator[Message]:
        write(text)
        yield text_answer(message, "printed")

    def _raw(self, message: Message, line: str) -> Iterator[Message]:
        write(line.replace("ID", str(message["id"])))
        yield from ()

    def _learn(self, message: Message, name: str) -> Iterator[Message]:
        self.tools.append(tool(name))
        yield {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        yield text_answer(message, "learnt")

    def _ask(self, message: Message) -> Iterator[Message]:
        """Ask the client everything that a server can ask, and answer with what it said."""
        self.asked = message
        self.replies = {}
        sampling = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 5}
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        elicitation = {"message": "who?", "requestedSchema": schema}
        yield request("sampling/createMessage", sampling)
        yield request("elicitation/create", elicitation)
        yield request("roots/list", {})
        yield request("ping", {})

    def _reply(self, reply: Message) -> Iterator[Message]:
        self.replies[reply["id"]] = reply.get("error", {}).get("message", reply.get("result"))
        if len(self.replies) == 4:
            yield text_answer(self.asked, json.dumps(self.replies))


def answer(message: Message, result: Any) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def error(message: Message, code: int, text: str, data: Any = None) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, "data": data}}


def request(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "id": method, "method": method, "params": params}


def text_answer(message: Message, text: str) -> Message:
    return answer(message, {"content": [{"type": "text", "text": text}]})


LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}}
BANNER = "Server v1 started\n\n{\n  'ready': True\n}\n\x1b[32mok\x1b[0m"


def main(arguments: list[str]) -> None:
    quirks = frozenset(map(Quirk, arguments))
    for quirk in quirks:
        BEGINNINGS.get(quirk, bool)()
    server = Server(quirks)
    for line in sys.stdin:
        for message in server.answers(json.loads(line)):
            write(json.dumps(message))
            if Quirk.BEGGAR in quirks and server.lists:
                repeat(request("ping", {}))
    while Quirk.STUBBORN in quirks:
        time.sleep(60)


def break_down() -> None:
    sys.exit("cannot find my \x1b[31mdatabase\x1b[0m: TOKEN is " + os.environ.get("TOKEN", "unset"))


def start_family() -> None:
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)


BEGINNINGS: Mapping[Quirk, Callable[[], Any]] = {
    Quirk.BROKEN: break_down,
    Quirk.FAMILY: start_family,
    Quirk.STUBBORN: lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    Quirk.BANNER: lambda: write(BANNER),
    Quirk.CHATTY: lambda: sys.stderr.write("chatter\n" * 100_000),
    Quirk.FLOOD: lambda: threading.Thread(target=repeat, args=[LOG], daemon=True).start(),
}
writing = threading.Lock()


def write(line: str) -> None:
    with writing:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def repeat(message: Message) -> None:
    line = json.dumps(message)
    with contextlib.suppress(OSError):
        while True:
            write(line)


class HttpServer(ThreadingHTTPServer):
    """Speaks streamable HTTP, with sessions.

    `faults` are statuses that the next requests for `tools/call` are answered with, `refuses` is one for all requests,
    `hangs_up` closes the connection without a word.
    """

    daemon_threads = True

    def __init__(self, quirks: frozenset[Quirk] = frozenset(), *, as_events: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.server = Server(quirks)
        self.as_events = as_events
        self.faults: list[int] = []
        self.refuses = 0
        self.hangs_up = False
        self.sessions: list[str] = []
        self.ended_sessions: list[str | None] = []
        self.headers: list[Mapping[str, str]] = []
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients hang up on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpServer

    def do_POST(self) -> None:
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        if self.server.hangs_up:
            self.close_connection = True
            return
        if self.server.refuses or (method == "tools/call" and self.server.faults):
            self._finish(self.server.refuses or self.server.faults.pop(0), b"no", "text/plain")
            return
        messages = list(self.server.server.answers(message))
        if not messages and "id" in message:
            self.server.stopped.wait()
        if "id" not in message or method is None:
            self._finish(202, b"")
        elif method == "initialize":
            self.server.sessions.append(f"session-{len(self.server.sessions)}")
            self._finish(200, *self._body(messages), session=self.server.sessions[-1])
        else:
            self._finish(200, *self._body(messages))

    def do_GET(self) -> None:
        self._finish(self.server.refuses or 405, b"")

    def do_DELETE(self) -> None:
        self.server.ended_sessions.append(self.headers["Mcp-Session-Id"])
        self._finish(200, b"")

    def _body(self, messages: list[Message]) -> tuple[bytes, str]:
        if self.server.as_events:
            events = "".join(f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages)
            return events.encode(), "text/event-stream"
        return json.dumps(messages[-1]).encode(), "application/json"

    def _finish(self, status: int, body: bytes, kind: str = "application/json", session: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any, **named: Any) -> None:
        """Stay silent."""


@contextlib.contextmanager
def serving_http(*quirks: Quirk, as_events: bool = False) -> Iterator[HttpServer]:
    server = HttpServer(frozenset(quirks), as_events=as_events)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
