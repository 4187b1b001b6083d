"""The tools that a suite's cases can be offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from pytest_tooleval.cases.case import Category, Permission, ToolUseCase
from pytest_tooleval.cases.catalog import CatalogTool
from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.tools.tool import Tool

BUILT_IN_MODULES = (
    "file_read",
    "list_dir",
    "glob",
    "grep",
    "file_write",
    "file_edit",
    "run_command",
    "web_fetch",
)
DEFAULT_PERMISSIONS: Mapping[Category, Permission] = {
    "read": "allow",
    "list": "allow",
    "web": "allow",
    "edit": "deny",
    "bash": "deny",
    "mcp": "deny",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one case.

    Attributes:
        offered: what the model sees, by name.
        denied: for each tool that exists and is not offered, why.
        distractors: of the offered tools those that only look like some, by name, as their catalog lists them.

    """

    offered: Mapping[str, Tool]
    denied: Mapping[str, str]
    distractors: Mapping[str, CatalogTool] = field(default_factory=dict)


class ToolRegistry:
    """Collects the tools that `pytest_tooleval_register_tools` implementations contribute."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order of registration."""
        return self._tools

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            ConfigError: a tool of this name is there already, or its category is unknown.

        """
        if tool.name in self._tools:
            raise ConfigError(f"a tool named {tool.name!r} is registered already; give yours another name")
        if tool.category not in DEFAULT_PERMISSIONS:
            known = ", ".join(DEFAULT_PERMISSIONS)
            raise ConfigError(f"tool {tool.name!r}: unknown category {tool.category!r}; there are: {known}")
        self._tools[tool.name] = tool

    def add_built_in(self) -> None:
        """Add the tools that come with the package."""
        for module in BUILT_IN_MODULES:
            self.add(import_module(f"pytest_tooleval.tools.{module}").TOOL)

    def offer_for(self, case: ToolUseCase) -> Offer:
        """Return what a case's permissions leave of the tools."""
        denied = {name: reason for name, tool in self._tools.items() if (reason := denial(tool, case))}
        offered = {name: tool for name, tool in self._tools.items() if name not in denied}
        return Offer(offered, denied)

    def unknown_names(self, case: ToolUseCase) -> list[str]:
        """Return a message for each name in `tools_deny` that no tool has; of servers' tools only a run knows."""
        if case.mcp:
            return []
        return [
            f"'tools_deny' names {name!r}, and there is no such tool{nearest(name, self._tools)}"
            for name in case.tools_deny
            if name not in self._tools
        ]


def denial(tool: Tool, case: ToolUseCase) -> str | None:
    """Return why a case does not offer a tool, or None when it does; `ask` counts as `allow`."""
    if tool.name in case.tools_deny:
        return "this task denies it"
    permission = case.tool_permission.get(tool.category, DEFAULT_PERMISSIONS[tool.category])
    return f"the permission of category {tool.category!r} is 'deny'" if permission == "deny" else None
