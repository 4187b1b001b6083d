"""Equality of JSON values, and the matchers that may stand in place of one.

Numbers are equal by value (12 = 12.0), and a boolean, a number and a string are never equal to each other.
Strings are equal exactly, lists in order, objects key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pytest_tooleval.cases.matcher import matcher_of

REGEX_SECONDS = 2.0
ABSENT: Any = object()


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and bool(left == right)


def matches(expected: Any, actual: Any, worktree: str = "") -> bool:
    """Whether an argument's value meets what a verifier expects of it.

    Args:
        expected: a JSON value, matchers allowed at any depth.
        actual: the value that the model passed, or ABSENT.
        worktree: the folder that `$path` takes absolute paths to be in.

    """
    matcher = matcher_of(expected)
    if matcher is not None:
        return _matcher_holds(*matcher, actual, worktree)
    if actual is ABSENT:
        return False
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return _objects_match(expected, actual, worktree)
    if isinstance(expected, list) and isinstance(actual, list):
        same_length = len(expected) == len(actual)
        return same_length and all(matches(*pair, worktree) for pair in zip(expected, actual, strict=True))
    return equal(expected, actual)


def _objects_match(expected: Mapping[str, Any], actual: Mapping[str, Any], worktree: str) -> bool:
    """Whether every expected member is met, those that are to be absent too, and there are no others."""
    if not actual.keys() <= expected.keys():
        return False
    return all(matches(value, actual.get(key, ABSENT), worktree) for key, value in expected.items())


def _matcher_holds(name: str, operand: Any, actual: Any, worktree: str) -> bool:
    if name == "$absent":
        return actual is ABSENT
    if name == "$default":
        return actual is ABSENT or equal(operand, actual)
    if name == "$any_of":
        return any(matches(option, actual, worktree) for option in operand)
    if actual is ABSENT:
        return False
    match name:
        case "$any":
            return True
        case "$equals":
            return equal(operand, actual)
        case "$regex":
            return isinstance(actual, str) and regex_found(operand, actual)
        case "$path":
            return isinstance(actual, str) and _path_key(operand, worktree) == _path_key(actual, worktree)
        case "$type":
            names = operand if isinstance(operand, list) else [operand]
            return any(_has_type(actual, name) for name in names)
        case _:
            return False


def regex_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text; a search of more than REGEX_SECONDS is not."""
    import regex

    try:
        return regex.search(pattern, text, timeout=REGEX_SECONDS) is not None
    except TimeoutError:
        return False


def _path_key(path: str, worktree: str) -> str:
    """Return one spelling for `./a`, `a`, `.//a` and the absolute path of `a` in the worktree."""
    if not path:
        return path
    clean = PurePosixPath(path)
    if worktree and clean.is_absolute() and clean.is_relative_to(worktree):
        clean = clean.relative_to(worktree)
    return str(clean)


def _has_type(value: Any, name: str) -> bool:
    """Whether a JSON value has a JSON Schema type; 12.0 is an integer there."""
    if name in {"integer", "number"}:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (name == "number" or isinstance(value, int) or value.is_integer())
    types: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
    }
    return isinstance(value, types[name])


def call_key(name: str, arguments: Any) -> Any:
    """Return a hashable value that is equal for calls of one tool with equal arguments, and only for those."""
    return name, _frozen(arguments)


def _frozen(value: Any) -> Any:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", value
    if isinstance(value, Mapping):
        return "object", frozenset((key, _frozen(member)) for key, member in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(_frozen, value))
    return "text", value
