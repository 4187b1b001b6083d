"""Who uses which running server: all cases one, or each its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.mcp.config import McpServer
from pytest_tooleval.tools.mcp.connection import NoAnswerError, SessionLostError
from pytest_tooleval.tools.mcp.running import RunningServer

MOST_FAILED_STARTS = 3
"""After so many failed starts one after the other a shared server is not tried again."""

_MOST_LOST = 3

Start = Callable[[], RunningServer]


class Source(Protocol):
    """Where a case gets a running server from."""

    def take(self, start: Start) -> RunningServer:
        """Return a server to use; raises ToolUnavailableError when there is none to be had."""

    def give_back(self, running: RunningServer) -> None:
        """Take a server that is not used any more."""


class OwnServers:
    """A server for each case."""

    def take(self, start: Start) -> RunningServer:
        """Start a server."""
        return start()

    def give_back(self, running: RunningServer) -> None:
        """End the server."""
        running.close()


class SharedServer:
    """One server for all cases, started anew when it was lost; who still uses the old one may go on with it."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._guard = threading.Lock()
        self._current: RunningServer | None = None
        self._users: Counter[RunningServer] = Counter()
        self._failed_starts = 0
        self._failure = ""

    def take(self, start: Start) -> RunningServer:
        """Return the server that runs, started now when there is none.

        Those that wait while a start fails share the failure: it is not tried once for each of them.
        """
        failed_starts = self._failed_starts
        with self._starting:
            running = self._current
            if running is None or not running.is_usable:
                if self._failed_starts > failed_starts:
                    raise ToolUnavailableError(self._failure)
                running = self._started(start)
            with self._guard:
                before, self._current = self._current, running
                self._users[running] += 1
        if before is not None and before is not running:
            self._close_unused(before)
        return running

    def give_back(self, running: RunningServer) -> None:
        """End the server if it was the last one to use it and nobody will again."""
        with self._guard:
            self._users[running] -= 1
        if not running.is_usable:
            self._close_unused(running)

    def _started(self, start: Start) -> RunningServer:
        if self._failed_starts >= MOST_FAILED_STARTS:
            raise ToolUnavailableError(
                f"{self._failure}\n  not tried again after {MOST_FAILED_STARTS} failed starts"
            )
        try:
            running = start()
        except ToolUnavailableError as error:
            self._failed_starts += 1
            self._failure = str(error)
            raise
        self._failed_starts = 0
        return running

    def _close_unused(self, running: RunningServer) -> None:
        with self._guard:
            is_used = self._users[running] > 0
            if not is_used:
                del self._users[running]
        if not is_used:
            running.close()


class Lease:
    """One case's use of one server.

    Args:
        server: the server.
        source: where it comes from.
        start: starts it.

    """

    def __init__(self, server: McpServer, source: Source, start: Start) -> None:
        self._server = server
        self._source = source
        self._start = start
        self._running: RunningServer | None = None
        self._was_called = False
        self._notes: list[str] = []

    def tools(self) -> list[Any]:
        """Return the tools that the server lists now.

        One that was lost since its last use is started anew, and that one again: other cases may lose it meanwhile.

        Raises:
            ToolUnavailableError: the server cannot be started, or does not list its tools.

        """
        running = self._taken()
        for _ in range(_MOST_LOST):
            try:
                return running.tools()
            except ToolUnavailableError:
                running.retired = True
                if not running.was_used:
                    raise
            running = self._renewed(running)
        return running.tools()

    def call(self, name: str, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool and return its result as it came.

        Args:
            name: as the server calls it.
            arguments: checked ones.
            seconds: how much time is left; the server's own limit holds besides.

        Raises:
            ToolError: the server answered with an error of the protocol, or no time was left for its answer.
            ToolUnavailableError: the server was lost, gave no answer in the time that it always has, or gave none
                in the time that was left and may hang in a call of another case.

        """
        most = self._server.call_seconds
        running = self._taken()
        if not self._was_called and not running.is_usable:  # the case has left nothing there that it could miss
            running = self._renewed(running)
        self._was_called = True
        try:
            try:
                return running.call(name, arguments, min(most, seconds))
            except SessionLostError:
                running = self._renewed(running)
                return running.call(name, arguments, min(most, seconds))
        except NoAnswerError:
            if seconds < most:
                raise running.given_up(name, seconds) from None
            running.retired = True
            raise
        except ToolUnavailableError:
            running.retired = True
            raise

    def close(self) -> None:
        """Give the server back; it can be taken again."""
        running, self._running = self._running, None
        if running is not None:
            self._notes += filter(None, [running.new_note()])
            self._source.give_back(running)

    @property
    def notes(self) -> list[str]:
        """What was odd about the server, as far as no other case has it among its notes; whole after `close`."""
        return self._notes

    def _renewed(self, running: RunningServer) -> RunningServer:
        running.retired = True
        self.close()
        return self._taken()

    def _taken(self) -> RunningServer:
        if self._running is None:
            self._running = self._source.take(self._start)
        return self._running
