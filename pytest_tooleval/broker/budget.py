"""Answers made to fit a number of bytes, never by breaking their JSON."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pytest_tooleval.broker.envelope import json_size, json_text
from pytest_tooleval.measures.text import cut


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How much of a value is kept: items of each list, members of each object, characters of each text."""

    items: int
    members: int
    chars: int


_BOUNDS = (
    _Bounds(1000, 1000, 6000),
    _Bounds(200, 400, 4000),
    _Bounds(100, 200, 2000),
    _Bounds(50, 100, 1000),
    _Bounds(25, 60, 500),
    _Bounds(10, 40, 300),
    _Bounds(5, 20, 150),
    _Bounds(3, 12, 80),
    _Bounds(1, 8, 40),
)


def first_fitting(variants: Iterable[Callable[[], dict[str, Any]]], budget: int) -> dict[str, Any] | None:
    """Return the first of ever smaller answers whose JSON text has at most `budget` bytes, None when none has."""
    answers = (make() for make in variants)
    return next((answer for answer in answers if json_size(answer) <= budget), None)


def cut_value(value: Any, room: int) -> tuple[Any, str]:
    """Return a JSON value made to fit, and a sentence that says how it was cut; empty when it was not.

    Args:
        value: a JSON value.
        room: bytes of JSON text that it may have, at least 100.

    """
    size = json_size(value)
    if size <= room:
        return value, ""
    if isinstance(value, str):
        return _text_start(value, room), f"the first part of a text of {len(value)} characters"
    for bounds in _BOUNDS:
        pruned = _pruned(value, bounds)
        if json_size(pruned) <= room:
            return pruned, (
                f"of {size} bytes of JSON: at most {bounds.items} items of each list, {bounds.members} members of "
                f"each object and {bounds.chars} characters of each text"
            )
    excerpt = _text_start(json_text(value), room - 20)
    return {"excerpt": excerpt}, f"the first part of {size} bytes of JSON, as a text"


def _text_start(text: str, room: int) -> str:
    """Return as much of a text's start as fits into `room` bytes of JSON, ellipsis and quotes included."""
    longest = bisect_right(range(min(len(text), room)), room, key=lambda length: json_size(text[:length] + "…"))
    return text[: max(longest - 1, 0)] + "…"


def _pruned(value: Any, bounds: _Bounds) -> Any:
    if isinstance(value, str):
        return cut(value, bounds.chars)
    if isinstance(value, list):
        return [_pruned(member, bounds) for member in value[: bounds.items]]
    if isinstance(value, dict):
        kept = islice(value.items(), bounds.members)
        return {cut(key, bounds.chars): _pruned(member, bounds) for key, member in kept}
    return value
