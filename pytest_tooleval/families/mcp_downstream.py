"""Live MCP servers behind the reference broker."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_tooleval.broker.downstream import (
    AUTH_REQUIRED,
    NOT_CONFIGURED,
    OFFLINE,
    ONLINE,
    CallResult,
    DownstreamAuthError,
    DownstreamError,
    DownstreamOfflineError,
    NotConfiguredError,
    ToolGoneError,
)
from pytest_tooleval.broker.envelope import encodable
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.families.live_servers import LiveServer, LiveServers, NotStartedError

LIST_SECONDS = 30.0
"""How long a server's list of tools is taken for what it has now."""

_NO_CREDENTIALS = re.compile(r"\bHTTP 40[13]\b|needs the environment variables")


class McpDownstream:
    """The servers of an MCP configuration, called for the tools of a catalog; safe to share among threads.

    Args:
        catalog: the tools.
        servers: the servers; whoever made them closes them.
        clock: seconds that never go back.

    """

    def __init__(self, catalog: Catalog, servers: LiveServers, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._servers = servers
        self._lists = {name: _ToolList(server, clock) for name in servers.names if (server := servers.get(name))}

    def server_status(self, server_id: str) -> str:
        """Return what is known of a server without asking it; `online` for one that was not used yet."""
        server = self._servers.get(server_id)
        if server is None:
            return NOT_CONFIGURED
        if not server.failure:
            return ONLINE
        return AUTH_REQUIRED if _NO_CREDENTIALS.search(server.failure) else OFFLINE

    def live_schema(self, ref: str) -> Any:
        """Return the input schema that the server lists for a tool, at most half a minute old.

        Raises:
            DownstreamError: in the ways of `call`.

        """
        tool, server = self._tool(ref)
        with _in_words(server):
            listed = self._lists[tool.server_id].get()
        if tool.name not in listed:
            raise ToolGoneError(f"it lists {len(listed)} tools, and {tool.name!r} is not among them")
        schema = listed[tool.name].get("inputSchema")
        return schema if isinstance(schema, Mapping) else {}

    def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool on its server.

        Raises:
            NotConfiguredError: the configuration has no such server.
            DownstreamOfflineError: it cannot be started or reached, so nothing was sent.
            DownstreamAuthError: it wants credentials.
            ToolGoneError: the catalog has no such tool, or the server lists it no longer.
            DownstreamError: it did not answer in time, was lost, or answered with an error of the protocol.

        """
        tool, server = self._tool(ref)
        with _in_words(server):
            result = server.call(tool.name, arguments)
        return CallResult(result_content(result), result.get("isError") is True)

    def _tool(self, ref: str) -> tuple[CatalogTool, LiveServer]:
        tool = self._catalog.by_ref.get(ref)
        if tool is None:
            raise ToolGoneError(f"there is no tool {ref}")
        server = self._servers.get(tool.server_id)
        if server is None:
            known = ", ".join(self._servers.names) or "none"
            raise NotConfiguredError(f"the MCP configuration has no server {tool.server_id!r}; it has: {known}")
        return tool, server


class _ToolList:
    """The tools that a server lists, asked for anew when the answer has become old."""

    def __init__(self, server: LiveServer, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock
        self._guard = threading.Lock()
        self._tools: dict[str, Mapping[str, Any]] | None = None
        self._until = 0.0

    def get(self) -> Mapping[str, Mapping[str, Any]]:
        with self._guard:
            if self._tools is None or self._clock() >= self._until:
                self._tools = _by_name(self._server.tools())
                self._until = self._clock() + LIST_SECONDS
            return self._tools


def _by_name(listed: list[Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tools by their names; of two with one name the first counts."""
    named: dict[str, Mapping[str, Any]] = {}
    for tool in listed:
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
            named.setdefault(encodable(tool["name"]), tool)
    return named


@contextmanager
def _in_words(server: LiveServer) -> Iterator[None]:
    """Turn what the client raises into what a broker understands."""
    try:
        yield
    except NotStartedError as error:
        if _NO_CREDENTIALS.search(str(error)):
            raise DownstreamAuthError(str(error)) from None
        raise DownstreamOfflineError(str(error)) from None
    except ToolUnavailableError as error:
        if _NO_CREDENTIALS.search(str(error)):
            raise DownstreamAuthError(str(error)) from None
        raise DownstreamError(str(error)) from None
    except ToolError as error:
        raise DownstreamError(f"{server.server.name}: {error}") from None


def result_content(result: Mapping[str, Any]) -> Any:
    """Return what a `tools/call` result holds: its structured content, else its one text, else its blocks.

    A text that is JSON is given as what it says. Of pictures and sounds only kind and size are kept.
    """
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    content = result.get("content")
    blocks = [_shown(block) for block in content] if isinstance(content, list) else []
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return _decoded(blocks[0])
    return blocks


def _shown(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return block["text"]
    return _without_data(block)


def _without_data(block: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in block.items():
        if key in {"data", "blob"} and isinstance(value, str):
            shown["bytes"] = len(value.rstrip("=")) * 3 // 4
        else:
            shown[key] = _without_data(value) if isinstance(value, Mapping) else value
    return shown


def _decoded(text: str) -> Any:
    """Return the object or list that a text is as JSON, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
