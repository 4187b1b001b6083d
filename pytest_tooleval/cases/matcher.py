"""The matchers that may stand where a verifier names an argument's value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tooleval.cases.pattern import regex_fault
from pytest_tooleval.cases.schema import Fault, describe
from pytest_tooleval.errors import nearest

JSON_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
MATCHER_NAMES = ("$regex", "$any_of", "$path", "$type", "$any", "$absent", "$default", "$equals")


def matcher_of(value: Any) -> tuple[str, Any] | None:
    """Return a matcher's name and operand, or None when the value stands for itself."""
    if isinstance(value, Mapping) and len(value) == 1:
        (name, operand), *_ = value.items()
        if isinstance(name, str) and name.startswith("$"):
            return name, operand
    return None


def argument_faults(arguments: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield what is wrong with the values that a verifier expects of a tool's arguments, by name."""
    for name, value in arguments.items():
        if name in MATCHER_NAMES:
            message = f"{name!r} is a matcher; it stands in place of one argument's value, not of all arguments"
            yield Fault((*path, name), message)
        else:
            yield from matcher_faults(value, (*path, name))


def matcher_faults(value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield what is wrong with the matchers inside a value that a verifier expects."""
    matcher = matcher_of(value)
    if matcher is not None:
        yield from _operand_faults(*matcher, path)
    elif isinstance(value, Mapping):
        yield from _mixed_keys(value, path)
        for key, member in value.items():
            yield from matcher_faults(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from matcher_faults(member, (*path, index))


def _mixed_keys(value: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Fault]:
    for key in value:
        if key in MATCHER_NAMES:
            message = f'{key!r} is a matcher and stands alone; an object that has this key is {{"$equals": …}}'
            yield Fault((*path, key), message)


def _operand_faults(name: str, operand: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    here = (*path, name)
    match name:
        case "$regex":
            yield from regex_faults(operand, here)
        case "$any_of":
            if not isinstance(operand, list) or not operand:
                yield Fault(here, f"found {describe(operand)}; expected a list of acceptable values")
            else:
                yield from matcher_faults(operand, here)
        case "$path":
            if not isinstance(operand, str):
                yield Fault(here, f"found {describe(operand)}; expected a path as a string")
        case "$type":
            yield from _type_faults(operand, here)
        case "$any" | "$absent":
            if operand is not True:
                yield Fault(here, f"found {describe(operand)}; expected true")
        case "$default" | "$equals":
            return
        case _:
            hint = nearest(name, MATCHER_NAMES) or f"; there are: {', '.join(MATCHER_NAMES)}"
            literal = '; a value that really is such an object is {"$equals": …}'
            yield Fault(here, f"unknown matcher {name!r}{hint}{literal}")


def _type_faults(operand: Any, here: tuple[str | int, ...]) -> Iterator[Fault]:
    names = operand if isinstance(operand, list) else [operand]
    if not names or not all(isinstance(name, str) and name in JSON_TYPES for name in names):
        message = f"found {describe(operand)}; expected a JSON type or a list of them: {', '.join(JSON_TYPES)}"
        yield Fault(here, message)


def regex_faults(pattern: Any, here: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield what is wrong with a regular expression."""
    if not isinstance(pattern, str):
        yield Fault(here, f"found {describe(pattern)}; expected a regular expression as a string")
        return
    reason = regex_fault(pattern)
    if reason:
        yield Fault(here, f"{describe(pattern)} is not a regular expression: {reason}")
