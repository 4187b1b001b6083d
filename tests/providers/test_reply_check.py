from __future__ import annotations

import json
from typing import Any

import pytest
from cassette_samples import REPLIES
from hypothesis import given, settings
from json_values import json_values

from pytest_tooleval.providers.reply_check import is_json, reply_fault
from pytest_tooleval.transcript import AssistantMessage, ToolCall, Usage


def with_call(**keys: Any) -> AssistantMessage:
    return AssistantMessage(calls=(ToolCall(**{"id": "1", "name": "grep", "arguments": {}, **keys}),))


def nested(levels: int) -> Any:
    return json.loads('{"a":' * levels + "1" + "}" * levels)


def in_a_circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["a"] = [circle, circle]
    return circle


@settings(max_examples=50, deadline=None, derandomize=True)
@given(REPLIES)
def test_a_reply_of_the_right_types_has_no_fault(reply: AssistantMessage) -> None:
    assert reply_fault(reply) == ""


@pytest.mark.parametrize(
    "reply",
    [
        AssistantMessage(),
        AssistantMessage(calls=[ToolCall("1", "grep", {"x": float("nan"), "y": (1, 2)})]),  # type: ignore[arg-type]
        with_call(arguments=None),
        with_call(arguments=nested(100)),
        AssistantMessage(notes=["odd"]),  # type: ignore[arg-type]
        AssistantMessage("half \ud800", usage=Usage(reported_total=None)),
    ],
)
def test_what_can_be_used_is_let_pass(reply: AssistantMessage) -> None:
    assert reply_fault(reply) == ""


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (AssistantMessage(None), "its text is of the type NoneType; expected a str"),  # type: ignore[arg-type]
        (AssistantMessage(calls=5), "its calls is of the type int; expected a tuple of ToolCalls"),  # type: ignore[arg-type]
        (AssistantMessage(finish="end"), "its finish is 'end'; expected one of: stop, length, refusal"),  # type: ignore[arg-type]
        (AssistantMessage(usage={}), "its usage is of the type dict; expected a Usage or None"),  # type: ignore[arg-type]
        (AssistantMessage(opaque=5), "its opaque is of the type int; expected a mapping"),  # type: ignore[arg-type]
        (AssistantMessage(attempts="2"), "its attempts is '2'; expected a whole number"),  # type: ignore[arg-type]
        (AssistantMessage(notes=(1,)), "its notes is of the type tuple; expected a tuple of str"),  # type: ignore[arg-type]
        (
            AssistantMessage(usage=Usage(input=10**500)),
            "its usage: its input is of the type int; expected a number of tokens",
        ),
        (
            AssistantMessage(usage=Usage(output=float("inf"))),  # type: ignore[arg-type]
            "its usage: its output is inf; expected a number of tokens",
        ),
        (
            AssistantMessage(usage=Usage(reported_total="9")),  # type: ignore[arg-type]
            "its usage: its reported_total is '9'; expected a number of tokens or None",
        ),
        (AssistantMessage(calls=("x",)), "its call 1: found str; expected a ToolCall"),  # type: ignore[arg-type]
        (with_call(id=5), "its call 1: its id is of the type int; expected a str"),
        (with_call(name=None), "its call 1: its name is of the type NoneType; expected a str"),
        (with_call(extra=[]), "its call 1: its extra is of the type list; expected a mapping"),
    ],
)
def test_a_fault_is_named_with_what_was_expected(reply: AssistantMessage, fault: str) -> None:
    assert reply_fault(reply) == fault


@pytest.mark.parametrize(
    "arguments",
    [[], "{}", {1: 2}, {"a": {1, 2}}, {"a": b"x"}, {"a": {None: 1}}, {"a": 10**5000}, nested(101), in_a_circle()],
    ids=["list", "text", "number as key", "set", "bytes", "null as key", "long number", "deep", "circle"],
)
def test_arguments_are_an_object_of_json(arguments: Any) -> None:
    assert reply_fault(with_call(arguments=arguments)) == (
        f"its call 1: its arguments is {'of the type ' + type(arguments).__name__ if arguments != '{}' else repr('{}')}; "
        "expected None or an object of JSON values, on 100 levels at most"
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(json_values())
def test_what_json_gives_is_json(value: Any) -> None:
    assert is_json(value)
