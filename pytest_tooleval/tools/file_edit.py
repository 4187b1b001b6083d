"""The tool `file_edit`: exact replacement of text in a file.

Texts are compared with CRLF read as LF, so that it does not matter which of the two the model writes. What is
replaced is cut out of the file's own text: lines and line ends that do not change stay as they are, byte for byte.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Place, open_file, replace_file, resolve
from pytest_tooleval.tools.textfile import BOM, MAX_WHOLE_BYTES, counted, encoded, refuse_binary
from pytest_tooleval.tools.tool import Tool, ToolContext

_MAX_LINES_NAMED = 20
_LINE_END = re.compile("\r?\n")
_LINE_NUMBER = re.compile(r"^\d+\t", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Edit:
    """What to replace by what, both with LF line ends."""

    old: str
    new: str
    everywhere: bool


class _Document:
    """A file's text, with LF line ends for matching and with its own for cutting."""

    def __init__(self, text: str) -> None:
        self.own = text
        self.plain = text.replace("\r\n", "\n")
        # positions in `plain` of the line ends that are CRLF in `own`
        self._crlf = [match.start() - number for number, match in enumerate(re.finditer("\r\n", text))]

    def own_position(self, position: int) -> int:
        """Return the position in `own` of a position in `plain`."""
        return position + bisect_left(self._crlf, position)

    def line_at(self, position: int) -> int:
        """Return the 1-based line of a position in `plain`."""
        return self.plain.count("\n", 0, position) + 1

    def ending_near(self, start: int, end: int) -> str:
        """Return the line end after the own position `end`, else the one before `start`, else an empty string."""
        after = _LINE_END.search(self.own, end)
        if after:
            return after[0]
        before = self.own.rfind("\n", 0, start)
        if before < 0:
            return ""
        return "\r\n" if self.own[:before].endswith("\r") else "\n"


def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Replace one exact match, or all; raise ToolError, with the file unchanged, when that is not what there is."""
    edit = _edit(arguments)
    place = resolve(context.worktree, arguments["path"])
    data = _whole(place)
    mark = BOM if data.startswith(BOM) else b""
    document = _Document(_strict_text(data.removeprefix(BOM), place))
    found = _matches(document, edit, place)
    replaced = _replaced(document, edit, found, arguments["new_text"])
    replace_file(place, mark + replaced.encode())
    return f"edited {place.shown}: {counted(len(found), 'replacement')}, {_lines(document, found)}"


def _edit(arguments: Mapping[str, Any]) -> _Edit:
    old, new = arguments["old_text"], arguments["new_text"]
    if not old:
        raise ToolError("old_text is empty; give the exact text to replace, or use file_write for a whole file")
    encoded(old, "old_text")
    encoded(new, "new_text")
    if old == new:
        raise ToolError("old_text and new_text are the same; nothing would change")
    edit = _Edit(_plain(old), _plain(new), bool(arguments.get("replace_all", False)))
    if edit.old == edit.new:
        raise ToolError(
            "old_text and new_text differ in line endings only, and file_edit keeps a file's line endings"
        )
    return edit


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _whole(place: Place) -> bytes:
    with open_file(place) as file:
        refuse_binary(file, place)
        data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        raise ToolError(
            f"{place.given!r} is larger than {MAX_WHOLE_BYTES // 2**20} MiB, the most that can be edited"
        )
    return data


def _strict_text(data: bytes, place: Place) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{place.given!r} is not valid UTF-8 (byte {error.start}: 0x{data[error.start]:02x}); editing it would "
            "damage it, so it was left unchanged"
        ) from error


def _matches(document: _Document, edit: _Edit, place: Place) -> list[int]:
    """Return where `old` stands in the plain text: once, or as often as there is when all are replaced."""
    found = list(_positions(document.plain, edit.old))
    if not found:
        raise ToolError(f"old_text was not found in {place.given!r}; {_hint(document, edit.old)}")
    if edit.everywhere:
        return found
    if len(found) == 1:
        overlapping = document.plain.find(edit.old, found[0] + 1)
        found += [overlapping] if overlapping >= 0 else []
    if len(found) > 1:
        raise ToolError(
            f"old_text stands {len(found)} times in {place.given!r}, {_lines(document, found)}; "
            "add surrounding lines to make it unique, or set replace_all"
        )
    return found


def _positions(text: str, part: str) -> Iterator[int]:
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + len(part))


def _lines(document: _Document, positions: Sequence[int]) -> str:
    lines = [document.line_at(position) for position in positions[:_MAX_LINES_NAMED]]
    more = f" and {len(positions) - len(lines)} more" if len(positions) > len(lines) else ""
    noun = "line" if len(positions) == 1 else "lines"
    return f"{noun} {', '.join(map(str, lines))}{more}"


def _hint(document: _Document, old: str) -> str:
    unnumbered = _LINE_NUMBER.sub("", old)
    if unnumbered != old and unnumbered in document.plain:
        return "it would match without the line numbers of file_read; leave them out"
    squeezed = _squeezed(old)
    position = _squeezed(document.plain).find(squeezed) if squeezed else -1
    if position < 0:
        return "it does not match without regard to whitespace either; read the file and copy the text exactly"
    line = _line_of_squeezed(document.plain, position)
    return f"it would match at line {line} without regard to whitespace and line endings; copy the text exactly"


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _line_of_squeezed(text: str, position: int) -> int:
    """Return the 1-based line that holds the character at a position of the squeezed text."""
    lengths = accumulate(len(_squeezed(line)) for line in text.split("\n"))
    return next(number for number, length in enumerate(lengths, 1) if length > position)


def _replaced(document: _Document, edit: _Edit, found: Sequence[int], given: str) -> str:
    pieces, done = list[str](), 0
    for position in found:
        start, end = document.own_position(position), document.own_position(position + len(edit.old))
        pieces += [document.own[done:start], _fitted(document, edit, start, end, given)]
        done = end
    return "".join([*pieces, document.own[done:]])


def _fitted(document: _Document, edit: _Edit, start: int, end: int, given: str) -> str:
    """Return the new text with the line ends that belong at this place."""
    endings = _LINE_END.findall(document.own, start, end)
    if not endings:
        near = document.ending_near(start, end)
        return edit.new.replace("\n", near) if near else given
    if len(set(endings)) == 1:
        return edit.new.replace("\n", endings[0])
    return _aligned(edit, endings)


def _aligned(edit: _Edit, endings: Sequence[str]) -> str:
    """Keep the end of each line that stays; give a new line that of the line it replaces or follows."""
    old_lines, new_lines = edit.old.split("\n"), edit.new.split("\n")
    chosen, last = list[str](), endings[0]
    partners = _partners(old_lines, new_lines)
    for number in range(len(new_lines) - 1):
        partner = partners.get(number, len(endings))
        last = endings[partner] if partner < len(endings) else last
        chosen.append(last)
    return "".join(line + ending for line, ending in zip(new_lines, [*chosen, ""], strict=True))


def _partners(old_lines: Sequence[str], new_lines: Sequence[str]) -> dict[int, int]:
    """Map the number of a new line to that of the old line which it equals or replaces."""
    pairs = dict[int, int]()
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag in {"equal", "replace"}:
            pairs |= dict(zip(range(new_start, new_end), range(old_start, old_end), strict=False))
    return pairs


TOOL = Tool(
    name="file_edit",
    description=(
        "Replace text in a file. old_text must match the file exactly, indentation included, and must occur once, "
        "unless replace_all is set. Line endings (LF or CRLF) and everything else in the file stay as they are."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to change, relative to the worktree: 'src/app.py'."},
            "old_text": {
                "type": "string",
                "description": "The text to replace, copied exactly, without file_read's line numbers. Add lines "
                "around it until it is unique.",
            },
            "new_text": {"type": "string", "description": "The text to put there, taken literally."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
        },
        "required": ["path", "old_text", "new_text"],
        "additionalProperties": False,
    },
    category="edit",
    run=run,
    needs_directory=False,
)
