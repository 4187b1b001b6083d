"""JSON files as people write them: strict decoding, and the line of every value."""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NoReturn

from pytest_tooleval.errors import CaseError, Problem

MOST_DEPTH = 200
_WHITESPACE = " \t\n\r"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s,:{}\[\]"]+')


@dataclass(frozen=True, slots=True)
class Element:
    """One top-level value of a file: the whole document, or an element of its list.

    Attributes:
        value: the decoded JSON value.
        line: 1-based line on which the value begins.
        start: position of its first character in the file's text.

    """

    value: Any
    line: int
    start: int


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded JSON file.

    Attributes:
        path: the file, as it is named in messages.
        text: the file's text.
        is_list: whether the top level is a list.
        elements: the list's elements, or the one top-level value.

    """

    path: Path
    text: str
    is_list: bool
    elements: tuple[Element, ...]

    def line_of(self, pointer: tuple[str | int, ...]) -> int:
        """Return the 1-based line on which the value at `pointer` begins.

        A pointer that leads nowhere gives the line of its longest part that leads somewhere.
        """
        element = self._element(pointer)
        if element is None:
            return _line_at(self.text, _skip_whitespace(self.text, 0))
        inner = pointer[1:] if self.is_list else pointer
        return element.line + self.text.count("\n", element.start, _position_of(self.text, element.start, inner))

    def list_at(self, key: str) -> list[Element]:
        """Return the elements of the list under a key of the top-level object, with their lines."""
        start = _position_of(self.text, self.elements[0].start, (key,))
        positions = (begin for _, begin in _members(self.text, start))
        values = self.elements[0].value[key]
        return list(_with_lines(self.text, zip(positions, values, strict=True)))

    def _element(self, pointer: tuple[str | int, ...]) -> Element | None:
        """Return the element that a pointer leads into: what stands before it need not be read again."""
        if not self.is_list:
            return self.elements[0]
        index = pointer[0] if pointer else None
        return self.elements[index] if isinstance(index, int) and 0 <= index < len(self.elements) else None


class _NotStrictError(ValueError):
    """JSON that Python's decoder takes and a strict reader does not.

    Attributes:
        token: what can be found in the text to say where: a repeated key as JSON, or a number; else empty.

    """

    def __init__(self, message: str, token: str = "") -> None:
        super().__init__(message)
        self.token = token


class _RefusedError(ValueError):
    """A value that begins, or has its fault, at a position of the text."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def read_document(path: Path, shown: Path) -> Document:
    """Read and decode a JSON file.

    Args:
        path: the file to read.
        shown: its name in messages.

    Raises:
        CaseError: the file cannot be read, or is not strict JSON; names line and column.

    """
    return decode_document(_read_text(path, shown), shown)


def read_json_lines(path: Path, shown: Path) -> tuple[list[Element], list[Problem]]:
    """Read a file of one JSON value a line; blank lines hold none.

    Returns:
        The values with their lines, and a problem for each line that is not strict JSON.

    Raises:
        CaseError: the file cannot be read, or holds no value at all.

    """
    elements: list[Element] = []
    problems: list[Problem] = []
    for number, line in enumerate(_read_text(path, shown).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            document = decode_document(line, shown)
        except CaseError as error:
            problems += [replace(problem, line=number) for problem in error.problems]
        else:
            value = (
                [element.value for element in document.elements] if document.is_list else document.elements[0].value
            )
            elements.append(Element(value, number, 0))
    if not elements and not problems:
        raise CaseError([Problem(shown, "is empty; expected a JSON object on each line", 1)])
    return elements, problems


def _read_text(path: Path, shown: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CaseError([Problem(shown, "is no regular file")])
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CaseError([Problem(shown, f"cannot be read: {error.strerror or error}")]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
        raise CaseError([Problem(shown, message)]) from None


def decode_document(text: str, shown: Path) -> Document:
    """Decode JSON text, strictly: no NaN, no duplicate keys, no lone surrogates, no abyss, one value.

    Raises:
        CaseError: as `read_document`.

    """
    start = _skip_whitespace(text, 0)
    if start == len(text):
        raise CaseError([Problem(shown, "is empty; expected a JSON object or a list of objects", 1)])
    is_list = text[start] == "["
    try:
        found = _list_elements(text, start) if is_list else _single_element(text, start)
        return Document(shown, text, is_list, tuple(_with_lines(text, found)))
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} (column {error.colno})"
        raise CaseError([Problem(shown, message, error.lineno)]) from None
    except _RefusedError as error:
        raise CaseError([Problem(shown, str(error), _line_at(text, error.position))]) from None


def _with_lines(text: str, found: Iterator[tuple[int, Any]]) -> Iterator[Element]:
    line, counted = 1, 0
    for begin, value in found:
        line += text.count("\n", counted, begin)
        counted = begin
        yield Element(value, line, begin)


def _list_elements(text: str, start: int) -> Iterator[tuple[int, Any]]:
    position = _skip_whitespace(text, start + 1)
    if text.startswith("]", position):
        _expect_end(text, position + 1)
        return
    while True:
        value, end = _decode_at(text, position)
        yield position, value
        position = _skip_whitespace(text, end)
        if text.startswith("]", position):
            _expect_end(text, position + 1)
            return
        if not text.startswith(",", position):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip_whitespace(text, position + 1)


def _single_element(text: str, start: int) -> Iterator[tuple[int, Any]]:
    value, end = _decode_at(text, start)
    _expect_end(text, end)
    yield start, value


def _decode_at(text: str, position: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
        _refuse_depth(value, text, position, end)
        if text.find("\\u", position, end) >= 0:
            _refuse_lone_surrogates(value)
    except json.JSONDecodeError:
        raise
    except _NotStrictError as error:
        place = _fault_position(text, position, error.token) if error.token else position
        raise _RefusedError(f"is not strict JSON: {error}", place) from None
    except RecursionError:
        raise _RefusedError(f"is nested deeper than {MOST_DEPTH} levels", position) from None
    except ValueError as error:
        raise _RefusedError(f"is not JSON: {error}", position) from None
    return value, end


def _fault_position(text: str, start: int, token: str) -> int:
    """Return where a key stands in its object for the second time, or where a number stands first."""
    seen: list[bool] = []
    for match in _TOKEN.finditer(text, start):
        found = match[0]
        if found in {"{", "["}:
            seen.append(False)
        elif found in {"}", "]"}:
            seen.pop()
        elif found.startswith(token) and found[0] != '"':
            return match.start()
        elif _is_key(text, match) and json.dumps(json.loads(found)) == token:
            if seen[-1]:
                return match.start()
            seen[-1] = True
    return start


def _is_key(text: str, token: re.Match[str]) -> bool:
    return text.startswith(":", _skip_whitespace(text, token.end()))


def _expect_end(text: str, position: int) -> None:
    rest = _skip_whitespace(text, position)
    if rest != len(text):
        raise json.JSONDecodeError("Extra data", text, rest)


def _skip_whitespace(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITESPACE:
        position += 1
    return position


def _refuse_depth(value: Any, text: str, start: int, end: int) -> None:
    """Refuse what later steps, which recurse, could not walk through."""
    if text.count("[", start, end) + text.count("{", start, end) <= MOST_DEPTH:
        return
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [member for parent in level for member in _members_of(parent) if isinstance(member, dict | list)]
    if level:
        raise RecursionError


def _members_of(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotStrictError("a string holds half of a surrogate pair (\\ud800 to \\udfff)") from None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _NotStrictError(f"the key {twice!r} stands twice in one object", json.dumps(twice))
    return mapping


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotStrictError(f"the number {text} is too large", text)
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _NotStrictError(f"{name} is not a JSON number", name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates, parse_float=_finite, parse_constant=_refuse_constant
)


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _position_of(text: str, start: int, pointer: tuple[str | int, ...]) -> int:
    position = start
    for step in pointer:
        found = _child_position(text, position, step)
        if found is None:
            break
        position = found
    return position


def _child_position(text: str, position: int, step: str | int) -> int | None:
    if text[position] == "{":
        return next((begin for key, begin in _members(text, position) if key == step), None)
    if text[position] == "[":
        return next((begin for index, begin in _members(text, position) if index == step), None)
    return None


def _members(text: str, position: int) -> Iterator[tuple[str | int, int]]:
    """Yield key or index, and position, of each member of the object or list at `position`."""
    is_object = text[position] == "{"
    position = _skip_whitespace(text, position + 1)
    index = 0
    while text[position] not in "]}":
        key: str | int = index
        if is_object:
            key, position = scanstring(text, position + 1, True)
            position = _skip_whitespace(text, _skip_whitespace(text, position) + 1)
        yield key, position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip_whitespace(text, position)
        if text[position] == ",":
            position = _skip_whitespace(text, position + 1)
        index += 1


def pointer_text(pointer: tuple[str | int, ...]) -> str:
    """Return a JSON pointer (RFC 6901) for a path of keys and indexes, what a terminal cannot show spelled out."""
    text = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
