"""The tools that a server lists, as tools that a model can be offered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pytest_tooleval.errors import ToolUnavailableError, nearest
from pytest_tooleval.measures.text import clean_text, cut, printable
from pytest_tooleval.tools.arguments import argument_faults
from pytest_tooleval.tools.tool import Tool, ToolContext

MOST_DESCRIPTION_CHARS = 20_000
MOST_NAME_CHARS = 200

Call = Callable[[str, Mapping[str, Any], ToolContext], str]
"""Calls a tool of the server by the name that it has there."""


@dataclass(frozen=True, slots=True)
class ServerTools:
    """What one server has for a case.

    Attributes:
        server: the server's name.
        tools: by the names that the server gives them, what a terminal cannot show spelled out.
        unusable: for each tool that cannot be offered, why.

    """

    server: str
    tools: Mapping[str, Tool] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of all, usable or not."""
        return [*self.tools, *self.unusable]

    def chosen(self, wanted: Sequence[str] | None) -> ServerTools:
        """Return those tools that names or globs choose, all for None.

        Raises:
            ToolUnavailableError: one chooses no tool.

        """
        if wanted is None:
            return self
        for pattern in wanted:
            if not any(fnmatchcase(name, pattern) for name in self.names):
                known = nearest(pattern, self.names) or f"; it has: {cut(', '.join(self.names), 500) or 'none'}"
                lacking = f"tool that {pattern!r} matches" if _is_glob(pattern) else f"tool {pattern!r}"
                raise ToolUnavailableError(f"MCP server {self.server!r} has no {lacking}{known}")

        def only(found: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in found.items() if any(fnmatchcase(name, p) for p in wanted)}

        return ServerTools(self.server, only(self.tools), only(self.unusable))


def _is_glob(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def server_tools(server: str, listed: Iterable[Any], call: Call) -> ServerTools:
    """Return the tools that a server lists; of two with one name the first counts.

    Args:
        server: its name.
        listed: the `tools` of its answers to `tools/list`; nothing about them is taken for granted.
        call: calls one of them.

    """
    tools: dict[str, Tool] = {}
    unusable: dict[str, str] = {}
    for entry in listed:
        raw_name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(raw_name, str) or not raw_name:
            continue
        name = printable(clean_text(raw_name)).replace("\n", "\\n")
        if name in tools or name in unusable:
            continue
        tool = Tool(
            name=name,
            description=_description(entry),
            parameters=_schema(entry.get("inputSchema")),
            category="mcp",
            run=functools.partial(_run, call, raw_name),
            needs_directory=False,
        )
        reason = _fault(tool)
        if reason:
            unusable[cut(name, MOST_NAME_CHARS)] = reason
        else:
            tools[name] = tool
    return ServerTools(server, tools, unusable)


def _run(call: Call, raw_name: str, arguments: Mapping[str, Any], context: ToolContext) -> str:
    return call(raw_name, arguments, context)


def _description(entry: Mapping[str, Any]) -> str:
    found = (entry.get(key) for key in ("description", "title"))
    text = next((text for text in found if isinstance(text, str) and text), "")
    return cut(printable(clean_text(text)), MOST_DESCRIPTION_CHARS)


def _schema(schema: Any) -> Mapping[str, Any]:
    """Return a schema of an arguments object: many servers leave out what goes without saying."""
    given = schema if isinstance(schema, dict) else {}
    kind = given.get("type")
    return {**given, "type": "object"} if kind is None or (isinstance(kind, list) and "object" in kind) else given


def _fault(tool: Tool) -> str:
    if len(tool.name) > MOST_NAME_CHARS:
        return f"its name has {len(tool.name)} characters, and {MOST_NAME_CHARS} are the most"
    if tool.parameters["type"] != "object":
        return f"its arguments are of type {cut(str(tool.parameters['type']), 60)!r}; expected 'object'"
    try:
        argument_faults(tool, {})
    except ToolUnavailableError as error:
        return printable(cut(str(error), 500))
    except RecursionError:
        return "its schema is nested too deeply"
    return ""
