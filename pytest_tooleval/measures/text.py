"""How a verifier reads text that a model wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

# Control characters, and those that reorder or hide text around them.
_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

LINE_CHARS = 2000
"""Most characters of one line for people, where a model or a server may have written it."""

_MOST_LINES = 60
_MOST_NAMES = 30
_NAME_CHARS = 120

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u2007", " "),
    }
)


def fold_typography(text: str) -> str:
    """Return a text in Unicode NFC with typographic quotes, dashes and spaces made plain."""
    return unicodedata.normalize("NFC", text).translate(_FOLDED)


def clean_text(text: str) -> str:
    """Return a text that can be encoded: surrogate pairs joined, halves of one replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def printable(text: str) -> str:
    """Return a text that a terminal shows as it is: control characters but newlines are spelled out."""
    return "".join(_spelled(character) for character in text) if _UNPRINTABLE.search(text) else text


def _spelled(character: str) -> str:
    if not _UNPRINTABLE.match(character):
        return character
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"


def shorten(text: str, most: int) -> str:
    """Return a text on one line, cut to `most` characters with an ellipsis."""
    return cut(" ".join(text.split()), most)


def cut(text: str, most: int) -> str:
    """Return a text cut to `most` characters with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, each cut short, and of many the first ones."""
    shown = ", ".join(cut(name, _NAME_CHARS) for name in names[:_MOST_NAMES])
    return f"{shown}, … ({len(names)} in all)" if len(names) > _MOST_NAMES else shown


def bounded_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines for people, each cut short, and of many the first and the last ones."""
    half = _MOST_LINES // 2
    left_out = len(lines) - 2 * half
    if left_out <= 1:
        yield from (cut(line, LINE_CHARS) for line in lines)
        return
    yield from (cut(line, LINE_CHARS) for line in lines[:half])
    yield f"... {left_out} more ..."
    yield from (cut(line, LINE_CHARS) for line in lines[-half:])


def cut_pair(left: str, right: str, most: int) -> tuple[str, str]:
    """Return two texts cut to `most` characters each, so that their first difference is in what is shown."""
    if len(left) <= most and len(right) <= most:
        return left, right
    same = common_start(left, right)
    start = same - most // 4 if same > most // 2 else 0
    before = "…" if start else ""
    return cut(before + left[start:], most), cut(before + right[start:], most)


def common_start(left: Sequence[Any], right: Sequence[Any]) -> int:
    """Return how many items (of a text: characters) two sequences share before they differ."""
    pairs = zip(left, right, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
