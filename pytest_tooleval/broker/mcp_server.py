"""A broker behind the Model Context Protocol: a server with its three tools, and a plain session with it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from pytest_tooleval.broker.surface import OPERATIONS, ToolBroker, answer_text
from pytest_tooleval.errors import ConfigError, InfrastructureError

INSTALL_COMMAND = "pip install 'pytest-tooleval[mcp]'"
DEFAULT_TIMEOUT_SECONDS = 60.0
_OPENING_SECONDS = 30.0
_READING = {"findTool", "describeTool"}

Answer = TypeVar("Answer")


class McpMissingError(ConfigError):
    """The package `mcp` is not there, or not in a version that can be used."""


class BrokerSessionError(InfrastructureError):
    """The session with a broker's MCP server could not be opened, was closed, or gave no answer in time."""


def mcp_server(broker: ToolBroker, name: str = "tooleval-broker") -> Any:
    """Return an MCP server (`mcp.server.Server`) with a broker's three tools, ready for any transport.

    Answers are JSON text and, the same once more, structured content; error envelopes are marked `isError`.

    Raises:
        McpMissingError: the package is missing.

    """
    types = _mcp_types()
    from mcp.server import Server

    async def list_tools(_context: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=[_listed(types, operation) for operation in OPERATIONS.values()])

    async def call_tool(_context: Any, params: Any) -> Any:
        from anyio.to_thread import run_sync

        work = partial(answer_text, broker, params.name, params.arguments or {})
        text = await run_sync(work, abandon_on_cancel=True)
        answer = json.loads(text)
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, structured_content=answer, is_error=not answer.get("ok"))

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


class BrokerSession:
    """An MCP client session with a broker's server in this process, for callers that have no event loop.

    It is opened once, in a thread of its own, and may be used from several threads at once. Close it, or use it as
    a context manager; sessions may be closed in any order, from any thread, and more than once.
    """

    def __init__(self, broker: ToolBroker, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Open a session.

        Args:
            broker: who answers.
            timeout_seconds: how long one answer may take.

        Raises:
            McpMissingError: the package `mcp` is missing.
            BrokerSessionError: the session could not be opened.

        """
        self._server = mcp_server(broker)
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._opened: Future[Any] = Future()
        self._is_closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tooleval-broker-session", daemon=True)
        self._thread.start()
        self._client = self._await_opening()

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Call one of the broker's tools and return its answer.

        Raises:
            BrokerSessionError: the session is closed, or no answer came in time.

        """
        return dict(json.loads(self.call_text(operation, request)))

    def call_text(self, operation: str, request: Mapping[str, Any]) -> str:
        """Call one of the broker's tools and return its answer's JSON text, as an agent would get it.

        Raises:
            BrokerSessionError: as `call`.

        """
        result = self._result_of(self._client.call_tool(operation, dict(request)))
        return "".join(block.text for block in result.content if block.type == "text")

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools as the server lists them, by the wire's names: `name`, `description`, `inputSchema`.

        Raises:
            BrokerSessionError: as `call`.

        """
        listed = self._result_of(self._client.list_tools())
        return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed.tools]

    def close(self) -> None:
        """End the session and its thread; calls that are under way end with an error."""
        self._tell_to_stop()
        if self._thread is not threading.current_thread():
            self._thread.join(self._timeout_seconds)

    def __enter__(self) -> BrokerSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread is told to the one who waits for it
            self._is_closed = True
            if not self._opened.done():
                self._opened.set_exception(error)

    async def _serve(self) -> None:
        from mcp import Client

        async with Client(self._server) as client:
            self._opened.set_result(client)
            await self._stop.wait()

    def _await_opening(self) -> Any:
        try:
            return self._opened.result(_OPENING_SECONDS)
        except Exception as error:
            self._tell_to_stop()
            reason = f"{type(error).__name__}: {error}"
            raise BrokerSessionError(f"no MCP session with the broker could be opened: {reason}") from error

    def _tell_to_stop(self) -> None:
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._stop.set)

    def _submitted(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        """Hand work to the loop, which will not stop before it has begun."""
        with self._closing:
            if not self._is_closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise BrokerSessionError("the session with the broker is closed")

    def _result_of(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        pending = self._submitted(work)
        try:
            return pending.result(self._timeout_seconds)
        except TimeoutError:
            pending.cancel()
            message = f"the broker gave no answer within {self._timeout_seconds:g} s"
            raise BrokerSessionError(message) from None
        except CancelledError:
            raise BrokerSessionError("the session with the broker was closed during the call") from None


def call_over_mcp(broker: ToolBroker, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Call one of a broker's tools through a session of its own.

    Raises:
        McpMissingError: the package `mcp` is missing.
        BrokerSessionError: no answer came.

    """
    with BrokerSession(broker) as session:
        return session.call(operation, request)


def _mcp_types() -> Any:
    try:
        import mcp_types
        from mcp import Client  # noqa: F401 - what tells version 2 from those before
    except ImportError as error:
        message = f"a broker's MCP surface needs the package 'mcp' 2.x ({error}): {INSTALL_COMMAND}"
        raise McpMissingError(message) from None
    return mcp_types


def _listed(types: Any, operation: Mapping[str, Any]) -> Any:
    hints = types.ToolAnnotations(read_only_hint=True) if operation["name"] in _READING else None
    return types.Tool(
        name=operation["name"],
        description=operation["description"],
        input_schema=operation["inputSchema"],
        annotations=hints,
    )
