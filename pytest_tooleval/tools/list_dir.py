"""The tool `list_dir`: the entries of a directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Entry, resolve
from pytest_tooleval.tools.textfile import bounded, clamped
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.tools.walk import Levels, visible_folder, walk

MAX_ENTRIES = 1000
_NOTICE_CHARS = 200


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Return one entry a line; raise ToolError when the path is no directory of the worktree."""
    depth = int(arguments.get("depth", 1))
    if depth < 1:
        raise ToolError(f"depth is {depth}; give 1 for the directory itself, 2 to include its subdirectories")
    folder = visible_folder(context.worktree, arguments.get("path", "."))
    found = walk(folder, Levels(depth), context.limits.search_seconds)
    rows = (_row(entry, context.worktree) for entry in found)
    room = context.limits.result_chars - _NOTICE_CHARS
    shown, more = bounded(rows, most=MAX_ENTRIES, characters=room)
    if not shown:
        return clamped(f"{folder.shown} is an empty directory", context.limits.result_chars)
    if more:
        shown.append(f"[first {len(shown)} entries shown: list a subdirectory, or use a smaller depth or glob]")
    return clamped("\n".join(shown), context.limits.result_chars)


def _row(entry: Entry, worktree: Path) -> str:
    match entry.kind:
        case "link":
            return f"{entry.shown} -> {_target(entry, worktree)}"
        case "special":
            return f"{entry.shown} (pipe, socket or device)"
        case _:
            return entry.shown


def _target(entry: Entry, worktree: Path) -> str:
    try:
        return resolve(worktree, entry.place.given).shown
    except ToolError:
        return "(outside the worktree)"


TOOL = Tool(
    name="list_dir",
    description=(
        "List a directory, one entry per line, sorted, as paths relative to the worktree. Directories end in '/', "
        "symbolic links show '-> target'. Dot files are included, '.git' is not."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Directory to list, relative to the worktree: 'src'. Default '.', the worktree.",
            },
            "depth": {
                "type": "integer",
                "description": "Levels to list: 1 (default) for the directory's own entries, 2 to add those of its "
                "subdirectories, and so on.",
            },
        },
        "additionalProperties": False,
    },
    category="list",
    run=run,
    needs_directory=False,
)
