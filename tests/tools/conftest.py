from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.tool import Tool, ToolContext


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """A real path with a folder beside it whose name begins alike."""
    root = tmp_path.resolve() / "repo"
    root.mkdir()
    secret = tmp_path.resolve() / "repo-secret"
    secret.mkdir()
    (secret / "x").write_text("SECRET\n")
    return root


@pytest.fixture
def context(worktree: Path) -> ToolContext:
    return ToolContext(worktree)


@pytest.fixture
def put(worktree: Path) -> Callable[[Mapping[str, str | bytes]], None]:
    """Write files into the worktree."""

    def write(files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = worktree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


@pytest.fixture
def call(context: ToolContext) -> Callable[..., str]:
    """Call a tool in the worktree."""

    def run(tool: Tool, **arguments: Any) -> str:
        return tool.run(arguments, context)

    return run


@pytest.fixture
def refusal(context: ToolContext) -> Callable[..., str]:
    """Call a tool that has to refuse, and return what it says."""

    def run(tool: Tool, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            tool.run(arguments, context)
        return str(caught.value)

    return run
