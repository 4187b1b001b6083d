"""The tool `glob`: paths that match a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tooleval.tools.containment import Place
from pytest_tooleval.tools.textfile import bounded, clamped
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.tools.walk import compile_glob, visible_folder, walk

MAX_PATHS = 1000
_NOTICE_CHARS = 200


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Return one path a line; raise ToolError for a pattern that cannot match or a path that is no directory."""
    folder = visible_folder(context.worktree, arguments.get("path", "."))
    folder, pattern = _anchored(folder, arguments["pattern"])
    found = walk(folder, compile_glob(pattern), context.limits.search_seconds)
    paths = (entry.shown for entry in found if entry.kind == "directory" or not pattern.endswith("/"))
    room = context.limits.result_chars - _NOTICE_CHARS
    shown, more = bounded(paths, most=MAX_PATHS, characters=room)
    if not shown:
        return "no matches"
    if more:
        shown.append(f"[first {len(shown)} paths shown: narrow with path or a longer pattern]")
    return clamped("\n".join(shown), context.limits.result_chars)


def _anchored(folder: Place, pattern: str) -> tuple[Place, str]:
    """Take an absolute pattern inside the worktree as one relative to the worktree."""
    prefix = f"{folder.root}/"
    if pattern.startswith(prefix):
        return Place(folder.root, (), "."), pattern.removeprefix(prefix)
    return folder, pattern


TOOL = Tool(
    name="glob",
    description=(
        "Find files and directories by name pattern. Returns matching paths relative to the worktree, sorted, one "
        "per line; directories end in '/'. To search inside files use grep."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "description": "Pattern relative to path. '*', '?' and '[abc]' match within one name, '**' matches "
                "any number of directories, also none, and '{a,b}' either: '**/*.py', 'src/*.{ts,tsx}'. Names that "
                "begin with a dot match only if the pattern has the dot: '.github/*.yml'.",
            },
            "path": {
                "type": "string",
                "description": "Directory to search, relative to the worktree. Default '.', the worktree itself.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    category="list",
    run=run,
    needs_directory=False,
)
