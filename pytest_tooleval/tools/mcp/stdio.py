"""Messages over the input and output of a program, one JSON-RPC message a line, whatever else it prints."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_tooleval.tools.mcp.said import Said
from pytest_tooleval.tools.process import Service

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp_types import JSONRPCMessage

Fault: TypeAlias = Literal["connection", "session"]
"""What is gone: the connection, or only the session that the server kept for it."""

MOST_MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes of one message; a server that sends a longer one is given up."""

_LOOK_SECONDS = 0.01
_LAST_WORDS_SECONDS = 0.2
_CHUNK = 65_536
_MOST_OPEN_REQUESTS = 64


class LongLineError(Exception):
    """A line is longer than may be."""


class LineSplitter:
    """Cuts a stream of bytes into lines.

    Args:
        most: most bytes of a line.

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete with these bytes.

        Raises:
            LongLineError: a line is too long.

        """
        *complete, rest = data.split(b"\n")
        lines = []
        for end in complete:
            self._rest += end
            lines.append(bytes(self._rest))
            self._rest.clear()
        self._rest += rest
        if any(len(line) > self._most for line in (*lines, self._rest)):
            raise LongLineError
        return lines


class StdioTransport:
    """The messages from and to one program, which ends with them.

    Args:
        service: the program, just started; its pipes are closed here.
        said: gets what is no message.
        exit_seconds: how long it has to end after its input was closed, and again after SIGTERM.
        on_end: called when no more messages come, with the reason.

    """

    def __init__(self, service: Service, said: Said, exit_seconds: float, on_end: Callable[[str], None]) -> None:
        self._service = service
        self._said = said
        self._exit_seconds = exit_seconds
        self._on_end = on_end
        self._has_closed_output = False
        self._is_closing = False
        self._exit_code: int | None = None
        self._open_requests = 0
        self._answered = asyncio.Event()
        self._errors_over = asyncio.Event()

    @property
    def opening(self) -> str:
        """The word for how a session begins."""
        return "started"

    def cause_of(self, error: BaseException) -> str:
        """Return what an error that ended the session says."""
        return error_words(error)

    @property
    def ending(self) -> str:
        """How the program ended by itself; empty when it did not, or had to be told."""
        return "" if self._exit_code is None else _exit_words(self._exit_code)

    def fault_behind(self, request_id: int, code: int, message: str) -> Fault | None:  # noqa: ARG002
        """Return what an error that came for a request says of the connection, None when the server sent it."""
        from mcp_types import PARSE_ERROR

        return "connection" if code == PARSE_ERROR else None

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """Give the streams of messages. Afterwards the program's input is closed; if it stays it gets SIGTERM."""
        import anyio

        process = self._service.process
        output, errors = await _reader(process.stdout), await _reader(process.stderr)
        writer = await _writer(process.stdin)
        incoming, read_stream = anyio.create_memory_object_stream[Any](0)
        write_stream, outgoing = anyio.create_memory_object_stream[Any](0)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, output[0], incoming)
                tasks.start_soon(self._read_errors, errors[0])
                tasks.start_soon(self._write, writer, outgoing)
                try:
                    yield read_stream, write_stream
                finally:
                    with anyio.CancelScope(shield=True):
                        read_stream.close()
                        write_stream.close()
                        await self._wind_up(writer)
                    tasks.cancel_scope.cancel()
        finally:
            for transport in (output[1], errors[1]):
                transport.close()
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)

    async def _read(self, output: asyncio.StreamReader, incoming: Any) -> None:
        import anyio

        async with incoming:
            reason = "it closed its output"
            try:
                await self._pass_messages(output, incoming)
                self._has_closed_output = not self._is_closing
            except LongLineError:
                reason = f"it sent a message of more than {MOST_MESSAGE_BYTES} bytes"
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                reason = "the session was closed"
            self._over(reason)  # before the stream is closed, when those who wait for an answer wake up
        while await output.read(_CHUNK):  # a program that cannot get rid of its output may not end
            pass

    def _over(self, reason: str) -> None:
        if not self._is_closing:
            self._on_end(reason)

    async def _pass_messages(self, output: asyncio.StreamReader, incoming: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        splitter = LineSplitter(MOST_MESSAGE_BYTES)
        while data := await output.read(_CHUNK):
            for line in splitter.feed(data):
                message = message_of(line)
                if message is None and line.strip():
                    self._said.add_stray(line)
                if message is None or isinstance(message, JSONRPCNotification):
                    continue  # nothing here hangs on a notification, and there may be no end of them
                if isinstance(message, JSONRPCRequest):
                    await self._wait_for_room()
                await incoming.send(SessionMessage(message))

    async def _wait_for_room(self) -> None:
        """Let a server that asks wait while it does not take the answers."""
        while self._open_requests >= _MOST_OPEN_REQUESTS:
            self._answered.clear()
            await self._answered.wait()
        self._open_requests += 1

    async def _read_errors(self, errors: asyncio.StreamReader) -> None:
        while data := await errors.read(_CHUNK):
            self._said.add_errors(data)
        self._errors_over.set()

    async def _write(self, writer: asyncio.StreamWriter, outgoing: Any) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse

        async with outgoing:
            async for item in outgoing:
                value = item.message.model_dump(by_alias=True, exclude_unset=True)
                writer.write(json.dumps(value).encode() + b"\n")
                try:
                    await writer.drain()
                except OSError:
                    self._over("it closed its input")
                    return
                if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                    self._open_requests -= 1
                    self._answered.set()

    async def _wind_up(self, writer: asyncio.StreamWriter) -> None:
        import anyio

        self._is_closing = True
        writer.close()
        code = await self._exit_within(self._exit_seconds)
        if self._has_closed_output:
            self._exit_code = code
        if code is None:
            self._service.terminate()
            await self._exit_within(self._exit_seconds)
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._errors_over.wait()

    async def _exit_within(self, seconds: float) -> int | None:
        import anyio

        code = None
        with anyio.move_on_after(seconds):
            while (code := self._service.process.poll()) is None:
                await anyio.sleep(_LOOK_SECONDS)
        return code


def error_words(error: BaseException) -> str:
    """Return what an error says, and of which kind it is unless the server or the session made it."""
    kind = type(error).__name__
    return str(error) if kind == "MCPError" else f"{kind}: {error}" if str(error) else kind


def _exit_words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line, or None when it is none.

    An answer that breaks the protocol becomes an error, so that nobody waits for it any longer.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        value = _leniently_decoded(line)
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValueError:
        return _error_for(value)


def _leniently_decoded(line: bytes) -> Any:
    """Return the JSON value of a line with bytes that are not UTF-8 or halves of surrogate pairs, else None."""
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _error_for(answer: Any) -> JSONRPCMessage | None:
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    if not isinstance(answer, dict) or answer.keys().isdisjoint({"result", "error"}):
        return None
    request_id = answer.get("id")
    if not isinstance(request_id, int | str) or isinstance(request_id, bool):
        return None
    error = ErrorData(code=PARSE_ERROR, message="its answer is no JSON-RPC response")
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


async def _reader(pipe: Any) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader, transport


async def _writer(pipe: Any) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)
