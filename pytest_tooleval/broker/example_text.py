"""Example texts for a JSON Schema of type string: by format, by name, by pattern, by length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_MOST_CHARS = 5000
_EXTRA_REPEATS = (0, 1, 3, 8)
_CATEGORIES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_NOT_WORD": "-", "CATEGORY_NOT_DIGIT": "a"}
_MOST_VARIANTS = 60
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T09:30:00Z",
    "duration": "PT30M",
    "email": "someone@example.com",
    "hostname": "host.example.com",
    "idn-email": "someone@example.com",
    "idn-hostname": "host.example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "iri": "https://example.com/",
    "json": "{}",
    "json-pointer": "/example",
    "regex": ".*",
    "relative-json-pointer": "0",
    "time": "09:30:00Z",
    "uri": "https://example.com/",
    "uri-reference": "/example",
    "uri-template": "https://example.com/{id}",
    "url": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}
_USUAL = (
    "example",
    "example-1",
    "1",
    "a",
    "A",
    "abc",
    "ABC",
    "A-1",
    "ABC-123",
    "example.com",
    "example.txt",
    "/example",
    "#336699",
    "1.0.0",
    "1:1",
    "true",
    "en",
    "en-US",
    "USD",
    "=A1",
    "@example",
    "owner/name",
    "example.png",
    "10m",
    *_FORMATS.values(),
)


def texts(schema: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield texts that a schema may take, the most telling first; not every one is valid.

    Args:
        schema: of type string.
        name: the argument's name, which stands in for a text that the caller has to choose.

    """
    least, most = schema.get("minLength", 0), schema.get("maxLength", _MOST_CHARS)
    if least > _MOST_CHARS:
        return
    known = _FORMATS.get(str(schema.get("format")))
    if known is not None:
        yield known
    stem = name or "text"
    for text in (f"<{stem}>", *_USUAL):
        yield _of_length(text, least, most)
    yield from _from_pattern(schema)
    yield from (_of_length(f"{stem}{number}", least, most) for number in range(2, _MOST_VARIANTS))


def _of_length(text: str, least: float, most: float) -> str:
    long = text if len(text) >= least else (text + "x" * int(least))[: int(least)]
    return long[: int(most)]


def _from_pattern(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield short texts for a pattern that Python can parse, with ever more repeats; look-arounds are ignored."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return
    try:
        tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return
    for extra in _EXTRA_REPEATS:
        yield _rendered(tree, extra)


def _rendered(tree: Any, extra: int) -> str:
    return "".join(_rendered_part(str(kind), argument, extra) for kind, argument in tree)


def _rendered_part(kind: str, argument: Any, extra: int) -> str:
    match kind:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "a" if argument != ord("a") else "b"
        case "ANY":
            return "a"
        case "IN":
            return _member(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = argument
            count: int = min(least + extra, int(most), _MOST_CHARS)
            return _rendered(inner, extra) * count
        case "SUBPATTERN" | "ATOMIC_GROUP":
            return _rendered(argument[-1] if kind == "SUBPATTERN" else argument, extra)
        case "BRANCH":
            return _rendered(argument[1][0], extra)
        case _:
            return ""


def _member(parts: Any) -> str:
    """Return a character of a set: for a negated one a usual character that is not in it."""
    kind, argument = str(parts[0][0]), parts[0][1]
    if kind == "NEGATE":
        named = {chr(value) for part, value in parts[1:] if str(part) == "LITERAL"}
        return next((character for character in "ax1_~" if character not in named), "z")
    if kind == "RANGE":
        return chr(argument[0])
    return _CATEGORIES.get(str(argument), "a") if kind == "CATEGORY" else chr(argument)
