"""The tool `grep`: lines that match a regular expression."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import regex

from pytest_tooleval.cases.pattern import regex_fault
from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Entry, Place, kind_of, open_file
from pytest_tooleval.tools.textfile import (
    HEAD_BYTES,
    MAX_WHOLE_BYTES,
    bounded,
    clamped,
    counted,
    decoded,
    is_binary,
    lines_of,
)
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.tools.walk import compile_glob, visible, walk

MAX_MATCHES = 200
MAX_LINE_CHARS = 300
_MAX_PATTERN_CHARS = 5000
_SHOWN_BEFORE_MATCH = 100
_NOTICE_CHARS = 300
_ALONE_SECONDS = 0.02


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Return `path:line: text` for each matching line, or `no matches`.

    Raises ToolError for a pattern that is no regular expression, a path that is not there, and a search that takes
    longer than `limits.search_seconds`.
    """
    search = _Search(_compiled(arguments), context.limits.search_seconds)
    place = visible(context.worktree, arguments.get("path", "."))
    entries = _entries(place, arguments.get("glob") or "**", search.seconds)
    room = context.limits.result_chars - _NOTICE_CHARS
    rows, more = bounded(search.rows(entries), most=MAX_MATCHES, characters=room)
    if more:
        rows.append(f"[stopped after {counted(len(rows), 'match')}: narrow with path, glob or a longer pattern]")
    return clamped("\n".join([*(rows or ["no matches"]), *search.notes()]), context.limits.result_chars)


@dataclass(slots=True)
class _Search:
    """One call of the tool: what to look for, how long, and what was passed over."""

    pattern: regex.Pattern[str]
    seconds: float
    deadline: float = field(init=False)
    binary: int = 0
    large: int = 0
    unreadable: int = 0

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.seconds

    def rows(self, entries: Iterable[Entry]) -> Iterator[str]:
        for entry in entries:
            self._left()
            if entry.kind == "file":
                yield from self._rows_of(entry.place)

    def notes(self) -> Iterator[str]:
        if self.binary:
            yield f"[{counted(self.binary, 'binary file')} skipped]"
        if self.large:
            yield f"[{counted(self.large, 'file')} over {MAX_WHOLE_BYTES // 2**20} MiB skipped]"
        if self.unreadable:
            yield f"[{counted(self.unreadable, 'file')} could not be read]"

    def _rows_of(self, place: Place) -> Iterator[str]:
        data = self._data(place)
        if data is None:
            return
        for number, line in enumerate(lines_of(decoded(data)), 1):
            if (found := self._find(line)) is not None:
                yield f"{place.shown}:{number}: {_cut(line, found)}"

    def _data(self, place: Place) -> bytes | None:
        try:
            with open_file(place) as file:
                head = file.read(HEAD_BYTES)
                data = head if is_binary(head) else head + file.read(MAX_WHOLE_BYTES + 1 - len(head))
        except (ToolError, OSError):
            self.unreadable += 1
            return None
        if is_binary(data):
            self.binary += 1
            return None
        if len(data) > MAX_WHOLE_BYTES:
            self.large += 1
            return None
        return data

    def _find(self, line: str) -> int | None:
        """Return where the match begins, or None."""
        try:
            found = self._match(line)
        except TimeoutError as error:
            raise self._too_slow() from error
        return None if found is None else found.start()

    def _match(self, line: str) -> regex.Match[str] | None:
        """Let other threads run while a line takes long, and only then: giving way costs more than most lines."""
        with suppress(TimeoutError):
            return self.pattern.search(line, timeout=min(_ALONE_SECONDS, self._left()))
        return self.pattern.search(line, timeout=self._left(), concurrent=True)

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self._too_slow()
        return left

    def _too_slow(self) -> ToolError:
        return ToolError(
            f"the search took longer than {self.seconds:g} s; simplify the pattern (repetition inside repetition, "
            "such as '(a+)+', is slow) or narrow it with path or glob"
        )


def _compiled(arguments: Mapping[str, Any]) -> regex.Pattern[str]:
    pattern = arguments["pattern"]
    if not pattern:
        raise ToolError("pattern is empty; give a regular expression, such as 'def main'")
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ToolError(f"pattern is longer than {_MAX_PATTERN_CHARS} characters; choose a shorter one")
    reason = regex_fault(pattern)
    if reason:
        raise ToolError(
            f"pattern {clamped(pattern, 200)!r} is not a valid regular expression: {reason}; "
            "put a backslash before a special character that is meant literally"
        )
    return regex.compile(pattern, regex.IGNORECASE if arguments.get("ignore_case", False) else 0)


def _entries(place: Place, glob: str, seconds: float) -> Iterable[Entry]:
    """Return what is searched; a file that is named is searched whatever the glob says."""
    match kind_of(place):
        case "directory":
            return walk(place, compile_glob(glob if "/" in glob else f"**/{glob}"), seconds)
        case "file":
            return [Entry(place, "file")]
        case _:
            raise ToolError(f"{place.given!r} is not a regular file or a directory; give one of these")


def _cut(line: str, match: int) -> str:
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(min(match - _SHOWN_BEFORE_MATCH, len(line) - MAX_LINE_CHARS), 0)
    end = start + MAX_LINE_CHARS
    before, after = "..." if start else "", "..." if end < len(line) else ""
    return f"{before}{line[start:end]}{after} [line cut: {MAX_LINE_CHARS} of {len(line)} characters shown]"


TOOL = Tool(
    name="grep",
    description=(
        "Search the text of files with a regular expression, line by line. Returns 'path:line: text' for each "
        "matching line, in the order of paths, or 'no matches'. Binary files are skipped."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "description": r"Regular expression in Python's syntax: 'def \w+\('. It never spans lines.",
            },
            "path": {
                "type": "string",
                "description": "File or directory to search, relative to the worktree. Default '.', the worktree.",
            },
            "glob": {
                "type": "string",
                "description": "Only search files that match. Without '/' it is matched against file names at any "
                "depth: '*.py'. With '/' against paths below path: 'src/**/*.{ts,tsx}'. Names that begin with a "
                "dot are searched only if the glob has the dot or path leads there.",
            },
            "ignore_case": {"type": "boolean", "description": "Match without regard to case. Default false."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    category="read",
    run=run,
    needs_directory=False,
)
