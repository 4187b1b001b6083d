"""What lies behind a broker: the servers whose tools it calls. Here the role, and one without any I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

from pytest_tooleval.broker.envelope import canonical_json
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ToolevalError

ONLINE = "online"
OFFLINE = "offline"
AUTH_REQUIRED = "auth_required"
NOT_CONFIGURED = "not_configured"


class DownstreamError(ToolevalError):
    """A server did not do what it was asked to do."""


class DownstreamOfflineError(DownstreamError):
    """A server cannot be reached."""


class DownstreamAuthError(DownstreamError):
    """A server wants credentials that are not there, or refuses those that are."""


class NotConfiguredError(DownstreamError):
    """The catalog has a server's tools, and nobody said how the server is reached."""


class ToolGoneError(DownstreamError):
    """A server is there and no longer offers the tool."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came back from a tool.

    Attributes:
        content: a JSON value.
        is_error: whether the tool itself calls this an error.

    """

    content: Any
    is_error: bool = False


class Downstream(Protocol):
    """The servers behind a broker. Its methods may be called from several threads at once."""

    def server_status(self, server_id: str) -> str:
        """Return the status of a server now: `online`, `offline`, `auth_required`, `not_configured`, or another."""

    def live_schema(self, ref: str) -> Any:
        """Return the input schema that a tool has now, or None where its server does not say.

        Raises:
            DownstreamError: it cannot be had, in one of the ways of `call`.

        """

    def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool.

        Raises:
            DownstreamOfflineError: its server cannot be reached.
            DownstreamAuthError: credentials are missing or refused.
            NotConfiguredError: nobody said how its server is reached.
            ToolGoneError: the server no longer offers it.
            DownstreamError: it failed in another way.

        """


@dataclass(frozen=True)
class InProcessDownstream:
    """Servers that answer at once, always alike, from nothing but a tool's name and arguments.

    Attributes:
        catalog: the tools that are offered.
        offline: ids of servers that are offline whatever the catalog says.
        live_schemas: toolRef to the schema that it has now, where it is not the catalogued one.
        failing: toolRef to how its calls fail: a text is the tool's own error, an exception is raised.

    """

    catalog: Catalog
    offline: Collection[str] = frozenset()
    live_schemas: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    failing: Mapping[str, str | Exception] = field(default_factory=lambda: MappingProxyType({}))

    def server_status(self, server_id: str) -> str:
        """Return the catalog's word on a server, or `offline`."""
        if server_id in self.offline:
            return OFFLINE
        return self._statuses.get(server_id, ONLINE)

    def live_schema(self, ref: str) -> Any:
        """Return the schema that a tool has now."""
        tool = self._tool(ref)
        return self.live_schemas.get(ref, tool.input_schema)

    def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
        """Return a plausible result.

        Raises:
            DownstreamOfflineError: its server is offline.
            ToolGoneError: there is no such tool.
            Exception: what `failing` holds for this tool.

        """
        tool = self._tool(ref)
        if self.server_status(tool.server_id) == OFFLINE:
            raise DownstreamOfflineError(f"the server {tool.server_id} is offline")
        failing = self.failing.get(ref)
        if isinstance(failing, Exception):
            raise failing
        return CallResult(plausible_result(tool, arguments) if failing is None else failing, failing is not None)

    @cached_property
    def _statuses(self) -> Mapping[str, str]:
        return {server.id: server.status for server in self.catalog.servers}

    def _tool(self, ref: str) -> CatalogTool:
        tool = self.catalog.by_ref.get(ref)
        if tool is None:
            raise ToolGoneError(f"there is no tool {ref}")
        return tool


_LISTING = frozenset({"browse", "find", "list", "lookup", "query", "search"})
_READING = frozenset({"count", "describe", "fetch", "get", "inspect", "open", "read", "show", "view"})
_PAST = {
    "add": "added",
    "create": "created",
    "delete": "deleted",
    "edit": "edited",
    "post": "posted",
    "remove": "removed",
    "send": "sent",
    "update": "updated",
    "write": "written",
}
_LISTED = 3
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_a-zA-Z]+")


def plausible_result(tool: CatalogTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a made-up result, the same for the same name and arguments; it says itself that it is simulated."""
    words = [word.casefold() for word in _NAME_WORD.findall(tool.name)]
    verb = next((word for word in words if word in _LISTING | _READING | _PAST.keys()), "")
    thing = next((word for word in reversed(words) if word != verb), "item")
    if verb in _LISTING:
        items = [_item(tool, thing, arguments, number) for number in range(1, _LISTED + 1)]
        return {"simulated": True, "items": items, "total": _LISTED}
    if tool.read_only or verb in _READING:
        return {"simulated": True, "item": _item(tool, thing, arguments, 1)}
    return {"simulated": True, "status": _PAST.get(verb, "done"), "id": _id(tool, arguments, 1)}


def _item(tool: CatalogTool, thing: str, arguments: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": _id(tool, arguments, number), "name": f"{thing} {number}"}


def _id(tool: CatalogTool, arguments: Mapping[str, Any], number: int) -> str:
    seed = canonical_json([tool.name, dict(arguments), number])
    return hashlib.sha256(seed.encode()).hexdigest()[:8]
