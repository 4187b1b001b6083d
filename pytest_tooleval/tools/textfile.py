"""Text as the file tools see it.

A line ends at LF, and a CR just before that LF belongs to the line's end. Nothing else ends a line: no bare CR,
form feed or Unicode separator. A last line without LF counts; an empty file has no lines. A UTF-8 byte order mark
is no part of the text. A byte that is not UTF-8 is shown as U+FFFD and makes the text lossy. A file with a NUL
among its first 8 KiB is binary.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Place

MAX_WHOLE_BYTES = 10 * 1024 * 1024
"""Largest file that grep searches and file_edit changes, which take a file whole."""

MAX_READ_BYTES = 256 * 1024 * 1024
"""Largest file that file_read takes, which counts its lines whatever part of it is asked for."""

BOM = codecs.BOM_UTF8
HEAD_BYTES = 8 * 1024
"""How much of a file is looked at to tell text from binary."""

_CHUNK_BYTES = 1024 * 1024
_PIECE_BYTES = 64 * 1024
_UNDECODED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Survey:
    """Size of a text file.

    Attributes:
        lines: number of lines.
        characters: number of characters, line ends included, byte order mark left out.
        lossy: True when a byte is not UTF-8.
        start: byte position at which the asked line starts; meaningless when there are fewer lines.

    """

    lines: int
    characters: int
    lossy: bool
    start: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end: its first characters, and how many it has."""

    text: str
    length: int


def counted(number: int, noun: str) -> str:
    """Return `1 line`, `2 lines`; the plural of a word in -tch or -sh takes `es`."""
    plural = "es" if noun.endswith(("ch", "sh")) else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{plural}"


def clamped(text: str, most: int) -> str:
    """Return no more than `most` characters of the text."""
    return text if len(text) <= most else text[: max(most, 0)]


def bounded(lines: Iterable[str], *, most: int, characters: int) -> tuple[list[str], bool]:
    """Return the first lines within both bounds, and True when there were more."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 1
        if len(kept) == most or (kept and used > characters):
            return kept, True
        kept.append(line)
    return kept, False


def refuse_binary(file: BinaryIO, place: Place) -> None:
    """Raise ToolError when the open file is binary; leave it at its start."""
    if is_binary(file.read(HEAD_BYTES)):
        size = os.fstat(file.fileno()).st_size
        raise ToolError(f"{place.given!r}: binary file, {counted(size, 'byte')}; only text can be read or edited")
    file.seek(0)


def is_binary(data: bytes) -> bool:
    """Say whether a file that begins with these bytes is binary."""
    return b"\0" in data[:HEAD_BYTES]


def decoded(data: bytes) -> str:
    """Return the bytes as text to show, with U+FFFD for each byte that is not UTF-8."""
    return _shown(data.removeprefix(BOM).decode("utf-8", "surrogateescape"))


def encoded(text: str, name: str) -> bytes:
    """Return the argument `name` as UTF-8; raise ToolError when it holds an unpaired surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise ToolError(
            f"{name} holds the unpaired surrogate U+{code:04X}, which is not text; leave it out"
        ) from error


def lines_of(text: str) -> list[str]:
    """Return the lines of the text without their ends."""
    lines = text.split("\n")
    last = lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    return [*lines, last] if last else lines


def count_lines(data: bytes) -> int:
    """Return the number of lines in the bytes of a file."""
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


def survey(file: BinaryIO, line: int) -> Survey:
    """Measure an open text file in bounded memory, and find where the 1-based `line` starts."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    tally = _Tally(line, len(BOM) if file.read(len(BOM)) == BOM else 0)
    file.seek(tally.position)
    while tally.position < size and (chunk := file.read(_CHUNK_BYTES)):
        tally.add(chunk)
    return tally.survey()


def read_line(file: BinaryIO, most: int) -> Line:
    """Read the line at the file's position, keeping its first `most` characters, in bounded memory."""
    pieces = _LinePieces(most)
    while piece := file.readline(_PIECE_BYTES):
        pieces.add(piece)
        if piece.endswith(b"\n"):
            break
    return pieces.line()


@dataclass(slots=True)
class _Tally:
    """Counts what `survey` reports, chunk by chunk."""

    line: int
    position: int
    newlines: int = 0
    characters: int = 0
    lossy: bool = False
    start: int | None = None
    open_line: bool = False
    decode: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("surrogateescape")
    )

    def __post_init__(self) -> None:
        if self.line <= 1:
            self.start = self.position

    def add(self, chunk: bytes) -> None:
        newlines = chunk.count(b"\n")
        if self.start is None and self.newlines + newlines >= self.line - 1:
            self.start = self.position + _after_newlines(chunk, self.line - 1 - self.newlines)
        self._take(self.decode.decode(chunk))
        self.newlines += newlines
        self.position += len(chunk)
        self.open_line = not chunk.endswith(b"\n")

    def survey(self) -> Survey:
        self._take(self.decode.decode(b"", final=True))
        start = self.position if self.start is None else self.start
        return Survey(self.newlines + self.open_line, self.characters, self.lossy, start)

    def _take(self, text: str) -> None:
        self.characters += len(text)
        self.lossy = self.lossy or not (text.isascii() or _UNDECODED.search(text) is None)


@dataclass(slots=True)
class _LinePieces:
    """Puts a line together, forgetting what is not kept."""

    most: int
    kept: str = ""
    length: int = 0
    tail: bytes = b""
    decode: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("surrogateescape")
    )

    def add(self, piece: bytes) -> None:
        self._take(self.decode.decode(piece))
        self.tail = (self.tail + piece)[-2:]

    def line(self) -> Line:
        self._take(self.decode.decode(b"", final=True))
        ending = 2 if self.tail == b"\r\n" else int(self.tail.endswith(b"\n"))
        length = self.length - ending
        return Line(_shown(self.kept[: min(length, self.most)]), length)

    def _take(self, text: str) -> None:
        self.length += len(text)
        self.kept += text[: max(self.most - len(self.kept), 0)]


def _after_newlines(chunk: bytes, count: int) -> int:
    position = 0
    for _ in range(count):
        position = chunk.index(b"\n", position) + 1
    return position


def _shown(text: str) -> str:
    return _UNDECODED.sub("\ufffd", text)
