"""The MCP servers of a configuration, outside any case: each is started when it is needed, and shared by all."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools.mcp.config import McpServer
from pytest_tooleval.tools.mcp.connection import NoAnswerError, SessionLostError
from pytest_tooleval.tools.mcp.launch import shared_environment
from pytest_tooleval.tools.mcp.running import RunningServer, Starter
from pytest_tooleval.tools.mcp.sharing import SharedServer
from pytest_tooleval.tools.tool import ToolContext

Result = TypeVar("Result")

REST_SECONDS = 10.0
"""How long a server that could not be started is left alone."""

EXIT_SECONDS = 2.0
"""How long a program has to end after its input was closed, and again after SIGTERM."""


class NotStartedError(ToolUnavailableError):
    """A server could not be started, so it has not been asked anything."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself; empty where it says nothing."""

    name: str = ""
    version: str = ""


class LiveServer:
    """One server, started anew when it was lost; after a failed start it is left alone for a while.

    Args:
        server: its entry in the configuration.
        start: starts it.
        clock: seconds that never go back.

    """

    def __init__(
        self, server: McpServer, start: Callable[[], RunningServer], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.server = server
        self._start = start
        self._clock = clock
        self._guard = threading.Lock()
        self._source = SharedServer()
        self._failure = ""
        self._rests_until = 0.0

    @property
    def failure(self) -> str:
        """Why it cannot be used now, empty as far as is known."""
        return self._failure if self._clock() < self._rests_until else ""

    def tools(self) -> list[Any]:
        """Return the tools that it lists now, as they came; a server that was lost meanwhile is asked anew.

        Raises:
            NotStartedError: it could not be started.
            ToolUnavailableError: it does not list them.

        """
        try:
            return self._used(lambda running: running.tools())
        except (NotStartedError, NoAnswerError):
            raise
        except ToolUnavailableError:
            return self._used(lambda running: running.tools())

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return the result as it came.

        Raises:
            NotStartedError: it could not be started; nothing was sent.
            ToolError: it answered with an error of the protocol.
            NoAnswerError: no answer came in the time that it has.
            ToolUnavailableError: it was lost during the call.

        """
        return self._used(lambda running: running.connection.call(name, arguments, self.server.call_seconds))

    def info(self) -> ServerInfo:
        """Return what it says of itself.

        Raises:
            NotStartedError: it could not be started.

        """
        return self._used(lambda running: ServerInfo(*running.connection.server_info))

    def _used(self, work: Callable[[RunningServer], Result]) -> Result:
        """Do something with the running server; once more when its session was lost and nothing was done."""
        try:
            return self._tried(work)
        except SessionLostError:
            return self._tried(work)

    def _tried(self, work: Callable[[RunningServer], Result]) -> Result:
        source = self._source
        running = self._taken(source)
        try:
            return work(running)
        except ToolUnavailableError:
            running.retired = True
            raise
        finally:
            source.give_back(running)

    def _taken(self, source: SharedServer) -> RunningServer:
        if self.failure:
            raise NotStartedError(self.failure)
        try:
            return source.take(self._start)
        except ToolUnavailableError as error:
            with self._guard:
                self._failure, self._rests_until = str(error), self._clock() + REST_SECONDS
                self._source = SharedServer()
            raise NotStartedError(str(error)) from None


class LiveServers:
    """The servers of a configuration; safe to share among threads.

    Args:
        servers: by name.
        environ: the variables that placeholders stand for, the process's own by default.
        folder: what `{worktree}` stands for, and where a server of its own for each case runs; by default the
            current folder.

    """

    def __init__(
        self, servers: Mapping[str, McpServer], environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        variables = os.environ if environ is None else environ
        self._starter = Starter(variables, EXIT_SECONDS)
        context = ToolContext(Path.cwd() if folder is None else folder, shared_environment(variables))
        self._closing = threading.Lock()
        self._is_closed = False
        self._servers = {
            name: LiveServer(server, partial(self._starter.start, server, context))
            for name, server in servers.items()
            if not server.disabled
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that can be used."""
        return tuple(self._servers)

    def get(self, name: str) -> LiveServer | None:
        """Return a server, None when none of this name can be used."""
        return self._servers.get(name)

    def close(self) -> None:
        """End all servers, and all that they started; closed twice is closed once."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._starter.close()


class OpenSession:
    """A session with one server, as measuring a broker needs it.

    Args:
        server: the server; whoever made it closes it.

    """

    def __init__(self, server: LiveServer) -> None:
        self._server = server

    def list_tools(self) -> list[Mapping[str, Any]]:
        """Return the tools as the server lists them.

        Raises:
            ToolUnavailableError: they could not be had.

        """
        return [tool for tool in self._server.tools() if isinstance(tool, Mapping)]

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a call as it came; an error of the protocol is one that the server marked.

        Raises:
            ToolUnavailableError: no usable answer came.

        """
        try:
            return self._server.call(name, arguments)
        except ToolError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
