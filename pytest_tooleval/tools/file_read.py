"""The tool `file_read`: numbered lines of a text file, page by page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Place, open_file, resolve
from pytest_tooleval.tools.textfile import (
    MAX_READ_BYTES,
    Line,
    Survey,
    clamped,
    counted,
    read_line,
    refuse_binary,
    survey,
)
from pytest_tooleval.tools.tool import Tool, ToolContext

DEFAULT_LINES = 2000
MAX_LINE_CHARS = 2000
_NOTICE_CHARS = 300


@dataclass(frozen=True, slots=True)
class _Window:
    """The lines that were asked for: 1-based first line, and how many at most."""

    first: int
    lines: int


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Return a header and the asked lines; raise ToolError when there is no such text or no such line."""
    window = _window(int(arguments.get("offset", 1)), int(arguments.get("limit", DEFAULT_LINES)))
    place = resolve(context.worktree, arguments["path"])
    with open_file(place) as file:
        refuse_binary(file, place)
        _refuse_huge(file, place)
        return _page(file, place, window, context.limits.result_chars)


def _refuse_huge(file: BinaryIO, place: Place) -> None:
    if os.fstat(file.fileno()).st_size > MAX_READ_BYTES:
        raise ToolError(f"{place.given!r} is larger than {MAX_READ_BYTES // 2**20} MiB, the most that can be read")


def _window(offset: int, limit: int) -> _Window:
    if offset < 0:
        raise ToolError(f"offset is {offset}, but lines are counted from 1; give 1 or more")
    if limit < 0:
        raise ToolError(f"limit is {limit}; give the number of lines to read, or 0 for the file's size only")
    return _Window(max(offset, 1), limit)


def _page(file: BinaryIO, place: Place, window: _Window, characters: int) -> str:
    size = survey(file, window.first)
    if window.lines == 0:
        return clamped(_header(place, size), characters)
    if window.first > max(size.lines, 1):
        raise ToolError(_past_the_end(place, size, window.first))
    if size.lines == 0:
        return clamped(f"{_header(place, size)}; the file is empty", characters)
    file.seek(size.start)
    return clamped(_body(file, place, size, window, characters), characters)


def _past_the_end(place: Place, size: Survey, offset: int) -> str:
    has = f"offset {offset} is past the end: {place.given!r} has {counted(size.lines, 'line')}"
    return f"{has}; give an offset from 1 to {size.lines}" if size.lines else f"{has}, the file is empty"


def _body(file: BinaryIO, place: Place, size: Survey, window: _Window, characters: int) -> str:
    last = min(window.first + window.lines - 1, size.lines)
    rows = _rows(file, range(window.first, last + 1), characters - len(place.shown) - _NOTICE_CHARS)
    shown = window.first + len(rows) - 1
    header = f"{_header(place, size)}; showing lines {window.first}-{shown}"
    return "\n".join([header, *rows, *_notice(size.lines - shown, shown + 1, characters if shown < last else None)])


def _header(place: Place, size: Survey) -> str:
    lossy = "; not valid UTF-8, lossy: undecodable bytes are shown as \ufffd" if size.lossy else ""
    return f"{place.shown}: {counted(size.lines, 'line')}, {counted(size.characters, 'character')}{lossy}"


def _rows(file: BinaryIO, numbers: range, room: int) -> list[str]:
    longest = min(MAX_LINE_CHARS, max(room // 2, 1))
    rows: list[str] = []
    for number in numbers:
        row = f"{number}\t{_cut(read_line(file, longest))}"
        room -= len(row) + 1
        if rows and room < 0:
            break
        rows.append(row)
    return rows


def _cut(line: Line) -> str:
    if line.length <= len(line.text):
        return line.text
    return f"{line.text}... [line cut: {len(line.text)} of {line.length} characters shown]"


def _notice(left: int, following: int, characters: int | None) -> list[str]:
    if left == 0:
        return []
    reason = "" if characters is None else f"output cut at {characters} characters, "
    return [f"[{reason}{counted(left, 'more line')}: continue with offset {following}]"]


TOOL = Tool(
    name="file_read",
    description=(
        "Read a text file. Returns a header with the file's number of lines and characters, then the lines, each "
        "after its number and a tab. Long files come in pages: the last line says which offset to continue with."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to read, relative to the worktree: 'src/app.py'."},
            "offset": {"type": "integer", "description": "First line to read, counted from 1. Default 1."},
            "limit": {
                "type": "integer",
                "description": f"Most lines to read. Default {DEFAULT_LINES}. 0 returns only the header.",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    category="read",
    run=run,
    needs_directory=False,
)
