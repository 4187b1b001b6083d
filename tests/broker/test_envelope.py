"""Envelopes: error types, next steps, size, and what JSON makes of odd values."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest

from pytest_tooleval.broker.envelope import (
    DISPOSITIONS,
    ERROR_TYPES,
    ErrorType,
    canonical_json,
    encodable,
    error_type,
    failure,
    is_deep,
    json_size,
    json_text,
    plain_json,
    success,
)


def test_every_type_has_a_disposition() -> None:
    assert set(DISPOSITIONS) == set(ERROR_TYPES)


@pytest.mark.parametrize("kind", ERROR_TYPES)
def test_every_type_says_what_to_do_and_never_to_just_try_again(kind: ErrorType) -> None:
    error = failure(kind, "it broke", ref="chat.post", server="chat")["error"]

    assert error["type"] == kind
    assert (error["toolRef"], error["serverId"], error["message"]) == ("chat.post", "chat", "it broke")
    assert error["retryable"] is False
    assert any(
        step in error["agentInstruction"] for step in ("findTool", "describeTool", "callTool", "ell the user")
    )
    assert "retry" not in error["agentInstruction"].casefold()
    assert "{" not in error["agentInstruction"]


def test_names_that_are_not_known_are_null() -> None:
    error = failure("CONFIG_ERROR", "no")["error"]

    assert error["toolRef"] is None
    assert error["serverId"] is None


def test_a_failure_is_small_whatever_its_texts_are() -> None:
    long = "\ud800é" * 100_000

    envelope = failure("TOOL_NOT_FOUND", long, ref=long, server=long, instruction=long)

    assert json_size(envelope) < 6000
    json_text(envelope).encode()


def test_success_leaves_out_none_but_for_fields_whose_null_says_something() -> None:
    assert success(a=1, b=None, result=None) == {"ok": True, "a": 1, "result": None}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [({"ok": True}, None), (failure("CONFIG_ERROR", "x"), "CONFIG_ERROR"), ({"error": "text"}, None)],
)
def test_error_type(answer: dict[str, Any], expected: str | None) -> None:
    assert error_type(answer) == expected


def test_size_is_that_of_the_text_in_utf_8() -> None:
    assert json_text({"a": "é中"}) == '{"a":"é中"}'
    assert json_size({"a": "é中"}) == len('{"a":"é中"}'.encode())


def test_canonical_json_ignores_the_order_of_keys_and_keeps_kinds_apart() -> None:
    assert canonical_json({"b": 1, "a": 2}) == canonical_json({"a": 2, "b": 1})
    assert len({canonical_json(value) for value in (1, 1.0, True, "1")}) == 4


def test_halves_of_surrogate_pairs_are_replaced_wherever_they_stand() -> None:
    assert encodable({"\ud800": ["\udfff", 1]}) == {"\ufffd": ["\ufffd", 1]}


def test_what_can_be_encoded_is_left_as_it_is() -> None:
    value = {"a": ["\x00\u2028", None]}

    assert encodable(value) is value


@pytest.mark.parametrize(
    ("value", "expected", "is_replaced"),
    [
        ({"a": [1, "x", None, True]}, {"a": [1, "x", None, True]}, False),
        ((1, 2), [1, 2], False),
        ({1: "x"}, {"1": "x"}, False),
        ([math.nan, math.inf], [None, None], True),
        ({"d": date(2025, 1, 31)}, {"d": "2025-01-31"}, True),
        (b"x", "b'x'", True),
        ("\ud800", "\ufffd", True),
    ],
)
def test_plain_json(value: Any, expected: Any, is_replaced: bool) -> None:
    assert plain_json(value) == (expected, is_replaced)


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_values_without_a_json_form_are_refused() -> None:
    circular: list[Any] = []
    circular.append(circular)

    for value in (circular, _nested(300), _nested(100_000), {(1, 2): 3}):
        with pytest.raises(ValueError, match=r"."):
            plain_json(value)


@pytest.mark.parametrize(("levels", "expected"), [(0, False), (3, False), (200, False), (201, True)])
def test_depth(levels: int, expected: bool) -> None:
    assert is_deep(_nested(levels)) is expected
