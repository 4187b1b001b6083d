"""Values cut to fit a number of bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.broker.budget import cut_value, first_fitting
from pytest_tooleval.broker.envelope import json_size


def test_what_fits_is_left_as_it_is() -> None:
    value = {"a": [1, 2, 3]}

    shown, notice = cut_value(value, 100)

    assert shown is value
    assert notice == ""


@pytest.mark.parametrize(
    "value",
    [
        "x" * 50_000,
        '中\n"\\' * 20_000,
        list(range(100_000)),
        [{"id": i, "text": "y" * 500} for i in range(500)],
        {f"key{i}": i for i in range(50_000)},
        {"k" * 50_000: 1},
        [[[["z" * 3000] * 10] * 10] * 10],
        {"content": [{"type": "text", "text": "t" * 100_000}]},
    ],
)
@pytest.mark.parametrize("room", [100, 2000, 7000])
def test_what_does_not_fit_is_cut_and_says_so(value: Any, room: int) -> None:
    shown, notice = cut_value(value, room)

    assert json_size(shown) <= room
    assert notice


def test_most_of_the_room_is_used() -> None:
    text, _ = cut_value("é" * 50_000, 7000)
    block, _ = cut_value({"content": [{"type": "text", "text": "t" * 100_000}]}, 7000)

    assert json_size(text) > 6990
    assert json_size(block) > 5900


@settings(max_examples=100, deadline=None)
@given(json_values(), st.integers(100, 400))
def test_it_always_fits(value: Any, room: int) -> None:
    shown, notice = cut_value(value, room)

    assert json_size(shown) <= room
    assert bool(notice) == (shown != value)


def test_the_first_answer_that_fits_is_taken_and_no_later_one_is_made() -> None:
    def explode() -> dict[str, Any]:
        raise AssertionError

    assert first_fitting([lambda: {"a": "x" * 50}, lambda: {"a": "x"}, explode], 20) == {"a": "x"}
    assert first_fitting([lambda: {"a": "x" * 50}], 20) is None
