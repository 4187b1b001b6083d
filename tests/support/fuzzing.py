"""What fuzz tests share: how many examples there are, hostile values, mutations, and a limit of time.

`TOOLEVAL_FUZZ_EXAMPLES` sets how many examples each test has; by default there are few, and always the same ones.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.errors import ToolevalError

MOST_SECONDS = 1.0
_STUCK_SECONDS = 20.0
_MANY = os.environ.get("TOOLEVAL_FUZZ_EXAMPLES")

ODD_TEXT = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\x1b[31m",
        "a\nb\r",
        "\u202e",
        "\ud800",
        "../x",
        "null",
        "{}",
        '{"a": ',
        "NaN",
        "1e999",
        "9" * 5000,
        "a." * 2000,
        "(" * 300,
        "x" * 70_000,
        "2024-13-99T99:99:99Z",
        "\U0001f600" * 50,
    ]
)
ODD_NUMBERS = st.sampled_from([0, -1, 2**31, 2**63, 10**400, -(10**400), 0.0, -0.0, 1e308, 5e-324, 0.1])


def nested(levels: int, *, in_lists: bool = False) -> Any:
    """Return a value of so many levels."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if in_lists else {"a": value}
    return value


ODD_VALUES = st.one_of(
    st.sampled_from([None, True, False, [], {}, [[]], [None], {"": None}, {"type": "text"}, {"id": []}]),
    ODD_NUMBERS,
    ODD_TEXT,
    st.sampled_from([60, 90]).flatmap(lambda levels: st.booleans().map(lambda way: nested(levels, in_lists=way))),
    json_values(),
)


def fuzzed(examples: int) -> settings:
    """Return the settings of a test with so many examples, unless more are asked for."""
    return settings(
        max_examples=int(_MANY) if _MANY else examples,
        derandomize=not _MANY,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@contextmanager
def in_time() -> Iterator[None]:
    """Check that a block takes less than a second of this thread's time, and end one that does not end at all."""
    before = signal.signal(signal.SIGALRM, _stuck)
    signal.setitimer(signal.ITIMER_REAL, _STUCK_SECONDS)
    started = time.thread_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.thread_time() - started < MOST_SECONDS


def check_told(error: ToolevalError, most: int = 200_000) -> None:
    """Check that an error says something, at no greater length than what it speaks of may explain."""
    assert 0 < len(str(error).strip()) < most


def _stuck(_: int, __: FrameType | None) -> None:
    raise AssertionError(f"no end within {_STUCK_SECONDS:g} s")


@st.composite
def mutations(draw: st.DrawFn, values: st.SearchStrategy[Any], odd: st.SearchStrategy[Any] = ODD_VALUES) -> Any:
    """Draw a JSON value and change up to three of its places: other values, keys left out, added, members twice."""
    value = copy.deepcopy(draw(values))
    for _ in range(draw(st.integers(0, 3))):
        value = _mutated(draw, value, odd)
    return value


def _mutated(draw: st.DrawFn, value: Any, odd: st.SearchStrategy[Any]) -> Any:
    way = draw(st.sampled_from(list(places(value))))
    if not way:
        return copy.deepcopy(draw(odd))
    parent = value
    for step in way[:-1]:
        parent = parent[step]
    last = way[-1]
    match draw(st.sampled_from(["replace", "replace", "leave out", "add", "wrap"])):
        case "replace":
            parent[last] = copy.deepcopy(draw(odd))
        case "leave out":
            del parent[last]
        case "wrap":
            parent[last] = [parent[last], copy.deepcopy(parent[last])]
        case "add" if isinstance(parent, dict):
            parent[draw(ODD_TEXT | st.sampled_from(list(parent)))] = copy.deepcopy(draw(odd))
        case _:
            parent.append(copy.deepcopy(draw(odd)))
    return value


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a JSON value, and to itself."""
    yield ()
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in members:
        for rest in places(inner):
            yield (step, *rest)


def with_texts_replaced(value: Any, text: str) -> Iterator[Any]:
    """Yield a JSON value once for each text in it, that text replaced."""
    for way in places(value):
        changed = copy.deepcopy(value)
        parent = changed
        for step in way[:-1]:
            parent = parent[step]
        if way and isinstance(parent[way[-1]], str):
            parent[way[-1]] = text
            yield changed


@st.composite
def spoilt_texts(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> bytes:
    """Draw the JSON text of a value with something cut out of it or put in, as bytes that may be no UTF-8."""
    text = json.dumps(draw(values), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    data = text.encode("utf-8", "surrogatepass")
    start = draw(st.integers(0, len(data)))
    end = min(len(data), start + draw(st.integers(0, 8)))
    inserted = draw(
        st.binary(max_size=6)
        | st.sampled_from(
            [b"NaN", b"-", b"\xff", b"\\ud800", b"[" * 5000, b"9" * 5000, b"1e999", b"{", b'"', b"\xef\xbb\xbf"]
        )
    )
    return data[:start] + inserted + data[end:]
