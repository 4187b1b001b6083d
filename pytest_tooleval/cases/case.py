"""A tool-use case: what a fixture file says, checked and typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

Category: TypeAlias = Literal["read", "list", "web", "edit", "bash", "mcp"]
Permission: TypeAlias = Literal["allow", "ask", "deny"]
NameSequence: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a case stands: file, 1-based line, and position in the file (0 for a single fixture)."""

    path: Path
    line: int = 1
    index: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A web page that a fixture supplies, so that `web_fetch` needs no network."""

    body: str
    status: int = 200
    content_type: str = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServerUse:
    """An MCP server whose tools a case is offered.

    Attributes:
        server: its name in the configuration.
        tools: names or globs of the tools that are offered, or None for all of them.

    """

    server: str
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a mock script. A string as `arguments` is text that is not JSON on purpose."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """One reply in a mock script."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class TextCheck:
    """What a text has to hold; an empty or None field is not checked."""

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What a file of the worktree has to be at the end; an empty or None field is not checked."""

    exists: bool | None = None
    equals: str | None = None
    text: TextCheck = field(default_factory=TextCheck)


@dataclass(frozen=True, slots=True)
class Verifier:
    """The checks that decide whether a run passes; an empty or None field is not checked.

    Attributes:
        exact: acceptable sequences of tool names; the called names must equal one.
        must_include: tools that must be called at least once.
        avoid: tools that must not be called.
        max_calls: most calls.
        min_calls: fewest calls.
        args: for each tool, argument values that one of its calls must pass.
        args_exact: the same, and that call may pass no others.
        in_order: names that must appear in this order, others may come between.
        any_order: names that must be called exactly so many times, in any order.
        no_calls: the model must answer without a tool.
        answer: what the final answer must hold.
        files: the worktree's end state by path.

    """

    exact: tuple[NameSequence, ...] | None = None
    must_include: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    max_calls: int | None = None
    min_calls: int | None = None
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    args_exact: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    in_order: tuple[str, ...] = ()
    any_order: tuple[str, ...] | None = None
    no_calls: bool = False
    answer: TextCheck | None = None
    files: Mapping[str, FileCheck] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolUseCase:
    """One task for a model, and what counts as doing it.

    Attributes:
        id: unique in its suite.
        task: what the model is asked.
        source: where the case stands.
        description: what a reader of the suite should know.
        files: files of the worktree by relative path.
        git: make the worktree a git repository with the files committed.
        expected: acceptable sequences of tool names, or None.
        verifier: checks beyond the names, or None.
        tool_permission: permissions by category, over the defaults.
        tools_deny: tools that are not offered.
        mcp: MCP servers whose tools are offered; naming one allows the category `mcp`.
        tags: names for `-m` and for gates.
        max_turns: most replies of the model, or None for the suite's setting.
        timeout: most seconds of a run, or None for the suite's setting.
        pages: web pages by URL for `web_fetch`.
        mock: the script of the `mock` provider, or None.

    """

    family: ClassVar[str] = "tool_use"

    id: str
    task: str
    source: Source
    description: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    git: bool = False
    expected: tuple[NameSequence, ...] | None = None
    verifier: Verifier | None = None
    tool_permission: Mapping[Category, Permission] = field(default_factory=dict)
    tools_deny: tuple[str, ...] = ()
    mcp: tuple[ServerUse, ...] = ()
    tags: tuple[str, ...] = ()
    max_turns: int | None = None
    timeout: float | None = None
    pages: Mapping[str, Page] = field(default_factory=dict)
    mock: tuple[ScriptedTurn, ...] | None = None
