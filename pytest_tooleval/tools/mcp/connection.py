"""A session with one MCP server, for threads that have no event loop; every step of it ends in time."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.measures.text import clean_text, printable, shorten
from pytest_tooleval.tools.mcp.loop_thread import LoopThread
from pytest_tooleval.tools.mcp.protocol import McpSession
from pytest_tooleval.tools.mcp.said import Said
from pytest_tooleval.tools.mcp.stdio import Fault

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import MCPError
    from mcp.client._transport import TransportStreams

MOST_PAGES = 100
MOST_TOOLS = 5000
CLOSE_SECONDS = 6.0
"""How long a session may take to end in good order."""

_SLACK_SECONDS = 1.0
_SOON_SECONDS = 0.3
_FIRST_REQUEST_ID = 10
_REASON_CHARS = 500


class SessionLostError(ToolUnavailableError):
    """The server does not know the session any more, and has not done what it was asked."""


class NoAnswerError(ToolUnavailableError):
    """The server is there and did not answer in time."""


class _RefusedError(Exception):
    """The server answered with an error."""


class Transport(Protocol):
    """How messages reach a server."""

    @property
    def opening(self) -> str:
        """What is done to a server to begin a session with it, in messages: it is `started` or `reached`."""

    @property
    def ending(self) -> str:
        """What the transport knows of how the server ended, empty when nothing."""

    def cause_of(self, error: BaseException) -> str:
        """Return in words what an error that ended the session says, with what may mend it where that is known."""

    def fault_behind(self, request_id: int, code: int, message: str) -> Fault | None:
        """Return what an error that came for a request says of the connection, None when the server sent it."""

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Give the streams of messages."""


class Connection:
    """A session that is opened once and may be used from many threads at once.

    Args:
        name: the server's name, for messages.
        thread: where the session lives.
        transport: makes the transport, given what is to be called with the reason when no more messages come.
        said: what the server says beside the protocol.
        redact: takes secrets out of a text.

    """

    def __init__(
        self,
        name: str,
        thread: LoopThread,
        transport: Callable[[Callable[[str], None]], Transport],
        said: Said,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._name = name
        self._thread = thread
        self._transport = transport(self._end)
        self._said = said
        self._redact = redact
        self._stop = asyncio.Event()
        self._scope: CancelScope | None = None
        self._session: McpSession | None = None
        self._reason = ""
        self._served: Future[None] | None = None
        self._request_ids = itertools.count(_FIRST_REQUEST_ID)
        self._closing = threading.Lock()

    def open(self, seconds: float) -> None:
        """Begin the session.

        Raises:
            ToolUnavailableError: the server did not begin a session in this time; it is closed again.

        """
        opened: Future[None] = Future()
        self._served = self._thread.submit(self._serve(opened, seconds))
        wait([opened, self._served], seconds + CLOSE_SECONDS + _SLACK_SECONDS, FIRST_COMPLETED)
        if self._session is None or not opened.done():
            self.close()
            raise self.error(f"could not be {self._transport.opening}", self._ending)

    @property
    def is_open(self) -> bool:
        """Whether the session goes on, as far as is known."""
        return self._session is not None and not self._reason

    @property
    def server_info(self) -> tuple[str, str]:
        """The server's name and version as it gives them; empty before the session and where it gives none."""
        return ("", "") if self._session is None else self._session.server_info

    def tools(self, seconds: float) -> list[Any]:
        """Return the tools as the server lists them, all pages of them.

        Raises:
            ToolUnavailableError: they could not be had in this time, or have no end.

        """
        deadline = time.monotonic() + seconds
        tools: list[Any] = []
        cursors: set[str] = set()
        cursor: Any = None
        while len(cursors) < MOST_PAGES and len(tools) <= MOST_TOOLS:
            page = self._page(cursor, max(0.0, deadline - time.monotonic()))
            listed = page.get("tools")
            tools += listed if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not cursor:
                return tools
            if not isinstance(cursor, str) or cursor in cursors:
                reason = f"the cursor {shorten(repr(cursor), 80)} came again"
                raise self._endless(reason)
            cursors.add(cursor)
        raise self._endless(f"more than {MOST_PAGES} pages or {MOST_TOOLS} tools")

    def call(self, name: str, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool and return its result as it came.

        Raises:
            ToolError: the server answered with an error of the protocol, such as for wrong arguments.
            NoAnswerError: no answer came in this time.
            SessionLostError: the server does not know the session; the same call can be made in another.
            ToolUnavailableError: the server is gone.

        """
        params = {"name": name, "arguments": arguments}
        try:
            return self._request("tools/call", params, seconds, call_words(name), limit="callSeconds")
        except _RefusedError as error:
            raise ToolError(f"The server answered with an error: {error}") from None

    def close(self) -> None:
        """End the session, within some seconds; calls that are under way end with an error."""
        with self._closing:
            for end in (self._leave, self._cancel):
                if self._served is not None and not self._served.done():
                    self._thread.call_soon(end)
                    wait([self._served], CLOSE_SECONDS)

    def leave(self) -> None:
        """Have the session end, without waiting for it."""
        if self._served is not None and not self._served.done():
            self._thread.call_soon(self._leave)

    def error(
        self, what: str, reason: str = "", kind: type[ToolUnavailableError] = ToolUnavailableError
    ) -> ToolUnavailableError:
        """Return an error that says what happened, why, and what the server said last."""
        because = f": {self._shown(reason)}" if reason else ""
        lines = [f"MCP server {self._name!r} {what}{because}"]
        lines += [f"  stderr: {line}" for line in self._said.last_errors]
        lines += [f"  stdout: {self._said.stray}"] if self._said.stray else []
        return kind("\n".join(lines))

    def _page(self, cursor: str | None, seconds: float) -> dict[str, Any]:
        try:
            params = {"cursor": cursor} if cursor else {}
            return self._request("tools/list", params, seconds, "the list of its tools", limit="startSeconds")
        except _RefusedError as error:
            raise self.error("does not list its tools", str(error)) from None

    def _endless(self, reason: str) -> ToolUnavailableError:
        return self.error("lists its tools without end", f"{reason}; the last page must have no nextCursor")

    def _request(
        self, method: str, params: Mapping[str, Any], seconds: float, what: str, *, limit: str
    ) -> dict[str, Any]:
        if self._session is None or not self.is_open:
            raise self.error(f"was lost before {what}", self._ending)
        pending = self._thread.submit(self._send(self._session, method, params, seconds))
        try:
            return pending.result(seconds + _SLACK_SECONDS)
        except TimeoutError:
            pending.cancel()
            late = f"gave no answer to {what} within {_in_time(seconds, limit)}"
            raise self.error(late, kind=NoAnswerError) from None
        except SessionLostError as error:
            raise self.error(f"lost the session before {what}", str(error), SessionLostError) from None
        except (CancelledError, ToolUnavailableError) as error:
            self._wait_for_end()
            raise self.error(f"was lost during {what}", self._ending or str(error)) from None

    async def _send(
        self, session: McpSession, method: str, params: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        from mcp import MCPError

        request_id = next(self._request_ids)
        try:
            async with asyncio.timeout(seconds):
                return await session.send(request_id, method, params)
        except MCPError as error:
            raise self._meaning_of(error, request_id) from None

    def _meaning_of(self, error: MCPError, request_id: int) -> Exception:
        """Tell what the server answered from what the client made up, which has codes that servers use as well."""
        fault = self._transport.fault_behind(request_id, error.code, error.message)
        if fault == "session":
            return SessionLostError(error.message)
        if fault == "connection" or self._reason:
            return ToolUnavailableError(error.message)
        return _RefusedError(f"{self._redact(clean_text(error.message))} (code {error.code})")

    async def _serve(self, opened: Future[None], seconds: float) -> None:
        import anyio

        try:
            with anyio.CancelScope(deadline=anyio.current_time() + seconds) as self._scope:
                async with self._transport.streams() as streams, McpSession(streams) as session:
                    await session.shake_hands()
                    self._scope.deadline = math.inf
                    self._session = session
                    opened.set_result(None)
                    await self._stop.wait()
            if self._session is None:
                self._end(f"no answer to initialize within {_in_time(seconds, 'startSeconds')}")
        except BaseException as error:  # noqa: BLE001 - whatever ends the session is told to those who wait for it
            self._end(self._transport.cause_of(_first(error)))
        finally:
            self._end("it was closed")
            if not opened.done():
                opened.set_result(None)

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stop.set()

    def _leave(self) -> None:
        if self._session is None:
            self._cancel()
        self._end("it was closed")

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _wait_for_end(self) -> None:
        """Let a server that is ending, or may turn out to be, end, so that it is known how it did."""
        if self._served is not None:
            wait([self._served], CLOSE_SECONDS if self._reason else _SOON_SECONDS)

    @property
    def _ending(self) -> str:
        how = self._transport.ending
        return f"{self._reason} ({how})" if self._reason and how not in self._reason else self._reason or how

    def _shown(self, text: str) -> str:
        return shorten(printable(self._redact(clean_text(text))), _REASON_CHARS)


def call_words(name: str) -> str:
    """Return what a call of a tool is called in messages."""
    return f"the call of {shorten(name, 80)}"


def _in_time(seconds: float, limit: str) -> str:
    return f"{seconds:.3g} s; raise its {limit} if it needs longer"


def _first(error: BaseException) -> BaseException:
    """Return an error, of a group of them the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
