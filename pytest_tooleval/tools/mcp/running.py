"""Servers that were started, and their end."""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.providers.account import Redactor
from pytest_tooleval.tools.mcp.config import Command, McpServer, expand, is_http_url
from pytest_tooleval.tools.mcp.connection import Connection, Transport, call_words
from pytest_tooleval.tools.mcp.http import HttpTransport
from pytest_tooleval.tools.mcp.launch import misplaced_argument, shared_environment, start_program
from pytest_tooleval.tools.mcp.loop_thread import LoopThread
from pytest_tooleval.tools.mcp.package import missing_package
from pytest_tooleval.tools.mcp.said import Said
from pytest_tooleval.tools.mcp.stdio import StdioTransport
from pytest_tooleval.tools.process import MARKER, Service
from pytest_tooleval.tools.tool import ToolContext
from pytest_tooleval.tools.watchdog import Watchdog

_STOP_SECONDS = 2.0
_DOUBT_SECONDS = 2.0


class RunningServer:
    """A server with an open session.

    Attributes:
        server: what was started.
        connection: the session.
        retired: whether no further case is to use it.
        was_used: whether it has listed its tools before.
        is_in_doubt: whether a call was given up, and it has not answered since: it may hang in that call.

    """

    def __init__(
        self, server: McpServer, connection: Connection, said: Said, end: Callable[[RunningServer], None]
    ) -> None:
        self.server = server
        self.connection = connection
        self.retired = False
        self.was_used = False
        self.is_in_doubt = False
        self._said = said
        self._end = end
        self._is_noted = False

    @property
    def is_usable(self) -> bool:
        """Whether a case can begin to use it."""
        return self.connection.is_open and not self.retired

    def tools(self) -> list[Any]:
        """Return the tools that it lists now; one that is in doubt has a short time to answer.

        Raises:
            ToolUnavailableError: they could not be had.

        """
        seconds = self.server.start_seconds
        tools = self.connection.tools(min(seconds, _DOUBT_SECONDS) if self.is_in_doubt else seconds)
        self.was_used = True
        self.is_in_doubt = False
        return tools

    def call(self, name: str, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool and return its result as it came; raises what `Connection.call` raises."""
        try:
            result = self.connection.call(name, arguments, seconds)
        except ToolError:  # an answer too
            self.is_in_doubt = False
            raise
        self.is_in_doubt = False
        return result

    def given_up(self, name: str, seconds: float) -> ToolError | ToolUnavailableError:
        """Take down that a call got no answer in the time of its case; return what that is to the case.

        It says something about the case unless the server has not answered since an earlier call was given up.
        """
        if self.is_in_doubt:
            return self.connection.error(
                f"gave no answer to {call_words(name)} within {seconds:.3g} s",
                "it may hang in a call of another case; with 'isolated' each case has a server of its own",
            )
        self.is_in_doubt = True
        return ToolError(f"The call was given up after {seconds:.3g} s: no more time was left.")

    def new_note(self) -> str:
        """Return what is odd about it, the first time; else an empty string."""
        stray = self._said.stray
        if self._is_noted or not stray:
            return ""
        self._is_noted = True
        return f"MCP server {self.server.name!r} printed {stray}"

    def close(self) -> None:
        """End the session, and the program with all that it started; within some seconds."""
        self.retired = True
        self.connection.close()
        self._end(self)


class Starter:
    """Starts servers, and ends them at the latest when it is closed or the process ends.

    All sessions live in one thread, which begins with the first of them. Safe to use from many threads.

    Args:
        environ: the variables that placeholders stand for, and that a shared server's few are taken from.
        exit_seconds: how long a program has to end after its input was closed, and again after SIGTERM.

    """

    def __init__(self, environ: Mapping[str, str], exit_seconds: float) -> None:
        self._environ = environ
        self._exit_seconds = exit_seconds
        self._guard = threading.Lock()
        self._thread: LoopThread | None = None
        self._watchdog = Watchdog(MARKER, exit_seconds)
        self._running: dict[RunningServer, Service | None] = {}
        self._owner = os.getpid()
        self._is_closed = False

    def start(self, server: McpServer, context: ToolContext) -> RunningServer:
        """Start a server, for the case of this context when each has its own.

        Raises:
            ToolUnavailableError: it cannot be started.

        """
        thread = self._opened()
        expanded = expand(server, self._environ, context.worktree if server.per_case else None)
        redact = Redactor(expanded.secrets)
        said = Said(redact)
        service: Service | None = None
        transport: Callable[[Callable[[str], None]], Transport]
        if isinstance(expanded.target, Command):
            service = self._start_program(server, expanded.target, context)
            transport = functools.partial(StdioTransport, service, said, self._exit_seconds)
        elif is_http_url(expanded.target.url):
            transport = functools.partial(HttpTransport, expanded.target)
        else:
            raise ToolUnavailableError(
                f"the URL of MCP server {server.name!r} does not begin with http:// or https://; see {server.place}"
            )
        running = RunningServer(server, Connection(server.name, thread, transport, said, redact), said, self._end)
        with self._guard:
            self._running[running] = service
            is_closed = self._is_closed
        try:
            if is_closed:
                raise _run_is_over()
            running.connection.open(server.start_seconds)
        except BaseException as error:
            running.close()
            if isinstance(error, ToolUnavailableError) and isinstance(expanded.target, Command):
                hint = misplaced_argument(server, expanded.target, _folder_of(server, context))
                raise ToolUnavailableError(f"{error}\n  {hint}" if hint else str(error)) from None
            raise
        return running

    def close(self) -> None:
        """End every server; no other can be started then."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.close)
        with self._guard:
            self._is_closed = True
            running, thread, self._thread = list(self._running), self._thread, None
        for each in running:
            each.connection.leave()
        for each in running:
            each.close()
        self._watchdog.close()
        if thread is not None:
            thread.close(_STOP_SECONDS)

    def _opened(self) -> LoopThread:
        with self._guard:
            if self._is_closed:
                raise _run_is_over()
            if self._thread is None:
                _import_package()
                self._thread = LoopThread("tooleval-mcp")
                atexit.register(self.close)
            return self._thread

    def _start_program(self, server: McpServer, command: Command, context: ToolContext) -> Service:
        base = context.environment if server.per_case else shared_environment(self._environ)
        service = start_program(server, command, base, _folder_of(server, context))
        self._watchdog.guard(service.process.pid, service.token)
        return service

    def _end(self, running: RunningServer) -> None:
        with self._guard:
            service = self._running.pop(running, None)
        if service is not None:
            service.end()
            self._watchdog.release(service.token)


def _folder_of(server: McpServer, context: ToolContext) -> Path:
    """Return where the program of a server runs when its command does not say it."""
    return context.worktree if server.per_case else server.folder


def _run_is_over() -> ToolUnavailableError:
    return ToolUnavailableError("no MCP server can be used any more: the run is over")


def _import_package() -> None:
    """Load the package here, where it takes no server's time."""
    reason = missing_package()
    if reason:
        raise ToolUnavailableError(reason)
    try:
        import mcp.client.sse
        import mcp.client.streamable_http  # noqa: F401
    except ImportError as error:
        raise ToolUnavailableError(f"the package 'mcp' cannot be loaded: {error}") from None
