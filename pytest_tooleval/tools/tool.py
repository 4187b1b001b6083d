"""What a tool is, and what it gets when it is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import Category, Page


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Bounds that every tool keeps.

    Attributes:
        result_chars: most characters of one tool result.
        command_seconds: most seconds that a command may take.
        search_seconds: most seconds that one `grep`, `glob` or `list_dir` may take.
        fetch_seconds: most seconds that one `web_fetch` may take.
        mcp_seconds: most seconds that one call of an MCP server's tool may take, beside the server's own limit.

    """

    result_chars: int = 30_000
    command_seconds: float = 60.0
    search_seconds: float = 5.0
    fetch_seconds: float = 20.0
    mcp_seconds: float = math.inf

    def within(self, seconds: float) -> ToolLimits:
        """Return the same limits, none of time longer than so many seconds."""
        return replace(
            self,
            command_seconds=min(self.command_seconds, seconds),
            search_seconds=min(self.search_seconds, seconds),
            fetch_seconds=min(self.fetch_seconds, seconds),
            mcp_seconds=min(self.mcp_seconds, seconds),
        )


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and within which bounds a tool works.

    Attributes:
        worktree: real path of the case's folder; nothing outside it is read or written by file tools.
        environment: the variables that commands get, and no others.
        limits: bounds of time and size.
        pages: web pages by URL; when it is not empty, `web_fetch` opens no connection.

    """

    worktree: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: ToolLimits = field(default_factory=ToolLimits)
    pages: Mapping[str, Page] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model can be offered.

    Attributes:
        name: what the model calls.
        description: what the model reads.
        parameters: JSON Schema of the arguments object.
        category: the permission that allows or denies it.
        run: takes the checked arguments and the context, returns the result's text; raises ToolError with
            the text for the model when it refuses or fails.
        needs_directory: whether `run` relies on the working directory being the case's worktree. The tools that
            come with the package take their folder from the context.

    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    category: Category
    run: Callable[[Mapping[str, Any], ToolContext], str]
    needs_directory: bool = True
