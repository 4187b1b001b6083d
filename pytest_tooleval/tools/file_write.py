"""The tool `file_write`: a whole file, new or overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import replace_file, resolve
from pytest_tooleval.tools.textfile import count_lines, counted, encoded
from pytest_tooleval.tools.tool import Tool, ToolContext


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Write the content as UTF-8, byte for byte; raise ToolError when the path cannot be a file of the worktree."""
    given = arguments["path"]
    data = encoded(arguments["content"], "content")
    place = resolve(context.worktree, given)
    if given.endswith("/"):
        raise ToolError(f"{given!r} names a directory; give a file's path (missing directories are created)")
    done = "overwrote" if replace_file(place, data) else "created"
    return f"{done} {place.shown}: {counted(count_lines(data), 'line')}, {counted(len(data), 'byte')}"


TOOL = Tool(
    name="file_write",
    description=(
        "Create a file, or overwrite the whole of an existing one. Missing directories are created. "
        "To change a part of a file use file_edit."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to write, relative to the worktree: 'src/app.py'."},
            "content": {"type": "string", "description": "The file's whole new text, written exactly as given."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    category="edit",
    run=run,
    needs_directory=False,
)
