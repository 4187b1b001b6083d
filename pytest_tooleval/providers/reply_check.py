"""Whether a reply is one: providers that users register may return anything, and a run must not break at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from pytest_tooleval.providers.wire import MOST_LEVELS, MOST_TOKENS
from pytest_tooleval.transcript import AssistantMessage, Finish, ToolCall, Usage

_TOO_LONG = 10**4300
"""The smallest whole number that Python neither reads nor writes as text."""


def reply_fault(reply: AssistantMessage) -> str:
    """Return what is wrong with a reply and what was expected, an empty string when nothing is."""
    return next(_faults(reply), "")


def _faults(reply: AssistantMessage) -> Iterator[str]:
    yield from _wrong_types(
        reply,
        text=(_is_text, "a str"),
        calls=(_is_list, "a tuple of ToolCalls"),
        finish=(lambda value: value in get_args(Finish), f"one of: {', '.join(get_args(Finish))}"),
        usage=(lambda value: value is None or isinstance(value, Usage), "a Usage or None"),
        opaque=(_is_mapping, "a mapping"),
        attempts=(_is_count, "a whole number"),
        notes=(lambda value: _is_list(value) and all(map(_is_text, value)), "a tuple of str"),
    )
    if isinstance(reply.usage, Usage):
        yield from (f"its usage: {fault}" for fault in _usage_faults(reply.usage))
    for number, call in enumerate(reply.calls, 1):
        yield from (f"its call {number}: {fault}" for fault in _call_faults(call))


def _usage_faults(usage: Usage) -> Iterator[str]:
    counts = ("input", "cache_read", "cache_write", "output", "reasoning")
    yield from _wrong_types(usage, **dict.fromkeys(counts, (_is_count, "a number of tokens")))
    total = (lambda value: value is None or _is_count(value), "a number of tokens or None")
    yield from _wrong_types(usage, reported_total=total)


def _call_faults(call: object) -> Iterator[str]:
    if not isinstance(call, ToolCall):
        yield f"found {type(call).__name__}; expected a ToolCall"
        return
    texts = ("id", "name", "raw_arguments", "raw_name")
    yield from _wrong_types(call, **dict.fromkeys(texts, (_is_text, "a str")))
    yield from _wrong_types(
        call,
        arguments=(
            lambda value: value is None or (isinstance(value, dict) and is_json(value)),
            f"None or an object of JSON values, on {MOST_LEVELS} levels at most",
        ),
        extra=(_is_mapping, "a mapping"),
    )


def _wrong_types(value: object, **fields: tuple[Callable[[Any], bool], str]) -> Iterator[str]:
    for name, (is_right, expected) in fields.items():
        found = getattr(value, name)
        if not is_right(found):
            yield f"its {name} is {_shown(found)}; expected {expected}"


def _shown(value: object) -> str:
    return f"{value!r:.60}" if isinstance(value, str | float) else f"of the type {type(value).__name__}"


def is_json(value: Any) -> bool:
    """Whether a value is made of what JSON has, a float of any kind included, and nested on so many levels only."""
    layer: Iterable[Any] = [value]
    for _ in range(MOST_LEVELS):
        if not all(map(_is_json_alone, layer)):
            return False
        # each object once, since they may stand in each other in circles
        layer = {id(member): member for each in layer for member in _members(each)}.values()
        if not layer:
            return True
    return all(_is_json_alone(each) and not isinstance(each, dict | list | tuple) for each in layer)


def _is_json_alone(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_text, value))
    if isinstance(value, int):
        return abs(value) < _TOO_LONG
    return value is None or isinstance(value, str | float | list | tuple)


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
