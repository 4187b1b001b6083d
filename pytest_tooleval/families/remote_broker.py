"""A tool broker behind MCP, whoever wrote it: asked through its own tools, its answers read by a mapping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from pytest_tooleval.broker.envelope import json_text
from pytest_tooleval.broker.mapping import OWN_MAPPING, BrokerMapping, at
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import InfrastructureError, nearest
from pytest_tooleval.families.late import Late
from pytest_tooleval.measures.text import cut

_MOST_NAMED = 10


class McpSession(Protocol):
    """A session with an MCP server; safe to share among threads."""

    def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools as the server lists them, by the wire's names.

        Raises:
            InfrastructureError: it gave no usable answer.

        """
        ...

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of `tools/call` as it came, by the wire's names.

        Raises:
            InfrastructureError: no usable answer came.

        """
        ...


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """What a broker answered.

    Attributes:
        value: the structured content, else what its text is as JSON, else the text; of several texts that are no
            JSON together a list.
        text: what a model is shown.
        is_error: whether the server calls it an error.

    """

    value: Any
    text: str
    is_error: bool = False


def remote_answer(result: Mapping[str, Any]) -> RemoteAnswer:
    """Return what a `tools/call` result says; nothing about it is taken for granted."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, Mapping) and isinstance(block.get("text"), str)]
    structured = result.get("structuredContent")
    text = "".join(texts)
    if structured is not None:
        return RemoteAnswer(structured, text or json_text(structured), result.get("isError") is True)
    return RemoteAnswer(_value(texts), text, result.get("isError") is True)


def _value(texts: Sequence[str]) -> Any:
    """Return what texts say as JSON: together, or else one by one, as many servers give a list."""
    whole = _decoded("".join(texts))
    return [_decoded(text) for text in texts] if isinstance(whole, str) and len(texts) != 1 else whole


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class RemoteBroker:
    """One broker over one catalog. Its session is opened when it is first asked.

    Attributes:
        name: how the target is called.
        mapping: how it is asked.
        catalog: the tools that the rows speak of.

    """

    def __init__(self, name: str, mapping: BrokerMapping, catalog: Catalog, session: Late[McpSession]) -> None:
        """Put a broker before a catalog.

        Args:
            name: how the target is called.
            mapping: how it is asked.
            catalog: the tools that the rows speak of.
            session: opens the session, once for all catalogs.

        Raises:
            ConfigError: the mapping gives two of the tools one name.

        """
        self.name = name
        self.mapping = mapping
        self.catalog = catalog
        self.refs = mapping.names_of(catalog)
        self._names = {ref: name for name, ref in self.refs.items()}
        self._session = session

    def find(self, query: str, limit: int) -> RemoteAnswer:
        """Ask for a query's tools.

        Raises:
            InfrastructureError: no usable answer came.

        """
        find = self.mapping.find
        return self._ask(find.tool, find.request(query, limit))

    def describe(self, ref: str) -> RemoteAnswer:
        """Ask for a tool's schema; only where the mapping has `describe`.

        Raises:
            InfrastructureError: no usable answer came.

        """
        describe = self.mapping.describe
        if describe is None:
            raise InfrastructureError(f"the broker {self.name!r} has no 'describe' in its mapping")
        return self._ask(describe.tool, describe.request(self._name_of(ref)))

    def call(self, ref: str, arguments: Mapping[str, Any]) -> RemoteAnswer:
        """Call a tool; only where the mapping has `call`.

        Raises:
            InfrastructureError: no usable answer came.

        """
        call = self.mapping.call
        if call is None:
            raise InfrastructureError(f"the broker {self.name!r} has no 'call' in its mapping")
        return self._ask(call.tool, call.request(self._name_of(ref), arguments))

    def is_error(self, answer: RemoteAnswer) -> bool:
        """Whether an answer is an error: the server says so, or it has an error type."""
        return answer.is_error or at(answer.value, self.mapping.error.type) is not None

    def error_type(self, answer: RemoteAnswer) -> str | None:
        """Return the type of an error in the words of this package where the mapping has them; None for no error.

        An error without a type has the empty one.
        """
        if not self.is_error(answer):
            return None
        found = at(answer.value, self.mapping.error.type)
        return self.mapping.error.types.get(found, found) if isinstance(found, str) else ""

    def message(self, answer: RemoteAnswer) -> str:
        """Return what an error says."""
        found = at(answer.value, self.mapping.error.message)
        return cut(found if isinstance(found, str) else answer.text, 500)

    def _name_of(self, ref: str) -> str:
        """Return the broker's name of a tool; one that the catalog lacks is asked for as it stands."""
        if ref in self._names:
            return self._names[ref]
        server, _, name = ref.partition(".")
        return self.mapping.refs.replace("{server}", server).replace("{name}", name) if name else ref

    def _ask(self, tool: str, arguments: Mapping[str, Any]) -> RemoteAnswer:
        self._require_tools()
        return remote_answer(self._session.get().call_tool(tool, arguments))

    def _require_tools(self) -> None:
        missing = self._missing_tools
        if missing:
            raise InfrastructureError(f"the broker {self.name!r} {missing}")

    @cached_property
    def _missing_tools(self) -> str:
        """Say which tools of the mapping the server does not list, empty when it lists all."""
        listed = [str(tool.get("name")) for tool in self._session.get().list_tools()]
        asked = (self.mapping.find, self.mapping.describe, self.mapping.call)
        wanted = [operation.tool for operation in asked if operation is not None]
        for name in wanted:
            if name not in listed:
                shown = ", ".join(cut(one, 60) for one in listed[:_MOST_NAMED]) or "none"
                hint = nearest(name, listed) or f"; it has: {shown}"
                mend = "a mapping file (--tooleval-broker-mapping) says how it is asked"
                return f"has no tool {name!r}{hint}; {mend if self.mapping is OWN_MAPPING else 'see its mapping'}"
        return ""
