from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cassette_samples import EVERYTHING, FRAME, GREP, REPLY, cassettes
from hypothesis import given, settings

from pytest_tooleval.providers.cassette import Asked, Cassette, Exchange, Frame, Label, cassette_text
from pytest_tooleval.providers.cassette_reader import decode_cassette
from pytest_tooleval.providers.provider import Sampling
from pytest_tooleval.transcript import AssistantMessage, ToolCall, Usage, UserMessage

SHOWN = Path("cassettes/c.json")


def encoded(cassette: Cassette) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(cassette_text(cassette))
    return document


def one(reply: AssistantMessage) -> Cassette:
    return Cassette(Label("c", "t"), (Exchange(Asked(FRAME, 0, ()), reply),))


def test_a_cassette_is_readable() -> None:
    assert encoded(EVERYTHING) == {
        "format": "tooleval-cassette/v1",
        "case": "find-main",
        "target": "openai:gpt-x",
        "trial": 2,
        "exchanges": [
            {
                "request": {
                    "system": "Be brief.",
                    "sampling": {
                        "tool_choice": "required",
                        "temperature": 0.5,
                        "max_output_tokens": 64,
                        "seed": 7,
                    },
                    "tools": [
                        {
                            "name": "grep",
                            "description": ["Search.", "Line by line."],
                            "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}},
                        }
                    ],
                    "messages": [{"role": "user", "text": "Find main."}],
                },
                "reply": {
                    "text": ["Looking.", ""],
                    "calls": [
                        {
                            "id": "call_1",
                            "name": "grep",
                            "arguments": {"pattern": "main"},
                            "raw": '{"pattern":"main"}',
                            "raw_name": "functions.grep",
                            "extra": {"extra_content": {"thought_signature": "Wg=="}},
                        },
                        {"id": "call_2", "name": "grep", "arguments": None, "raw": "{oops"},
                    ],
                    "finish": "length",
                    "usage": {
                        "input": 5,
                        "cache_read": 4,
                        "cache_write": 3,
                        "output": 2,
                        "reasoning": 1,
                        "reported_total": 15,
                    },
                    "opaque": {"reasoning_details": [{"data": "QUJD=="}]},
                    "attempts": 2,
                    "notes": ["grep was sent without a part of its schema"],
                },
            },
            {
                "request": {
                    "dropped": 1,
                    "messages": [
                        {"role": "assistant", "text": "Looking.", "finish": "stop", "usage": None, "attempts": 0},
                        {"role": "tool", "call_id": "call_1", "name": "grep", "text": "a.py:1: main"},
                        {"role": "tool", "call_id": "call_2", "name": "grep", "is_error": True, "text": "no JSON"},
                    ],
                },
                "reply": {"text": "a.py", "finish": "stop", "usage": None, "attempts": 1},
            },
        ],
    }


def differs_from_defaults(record: Any) -> bool:
    defaults = {field.name: field.default for field in fields(record) if field.default is not MISSING}
    return all(getattr(record, name) != default for name, default in defaults.items())


@pytest.mark.parametrize(
    "record", [REPLY, REPLY.calls[0], REPLY.usage, FRAME.sampling], ids=lambda r: type(r).__name__
)
def test_the_sample_has_every_field_filled(record: Any) -> None:
    assert is_dataclass(record)
    assert differs_from_defaults(record)


def test_the_sample_comes_back() -> None:
    assert decode_cassette(cassette_text(EVERYTHING), SHOWN) == EVERYTHING


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cassettes())
def test_any_cassette_comes_back_and_gives_the_same_bytes(cassette: Cassette) -> None:
    text = cassette_text(cassette)
    decoded = decode_cassette(text, SHOWN)
    assert decoded == cassette
    assert cassette_text(decoded) == text


@pytest.mark.parametrize(
    ("frame", "again"),
    [
        (FRAME, set()),
        (replace(FRAME, system="Be long."), {"system"}),
        (replace(FRAME, sampling=Sampling()), {"sampling"}),
        (replace(FRAME, tools=()), {"tools"}),
        (replace(FRAME, tools=(replace(GREP, parameters={"type": "object"}),)), {"tools"}),
        (Frame("", Sampling(), ()), {"system", "sampling", "tools"}),
    ],
)
def test_what_stays_the_same_is_written_once(frame: Frame, again: set[str]) -> None:
    exchanges = [Exchange(Asked(each, 0, ()), AssistantMessage("x")) for each in (FRAME, frame, frame)]
    requests = [each["request"] for each in encoded(Cassette(Label("c", "t"), tuple(exchanges)))["exchanges"]]
    assert [set(request) - {"messages"} for request in requests] == [{"system", "sampling", "tools"}, again, set()]


def test_numbers_that_python_takes_for_equal_are_another_schema() -> None:
    frames = [replace(FRAME, tools=(replace(GREP, parameters={"default": value}),)) for value in (1, True, 1.0)]
    cassette = Cassette(Label("c", "t"), tuple(Exchange(Asked(f, 0, ()), AssistantMessage()) for f in frames))
    defaults = [each["request"]["tools"][0]["parameters"]["default"] for each in encoded(cassette)["exchanges"]]
    assert [repr(value) for value in defaults] == ["1", "True", "1.0"]


def test_a_line_that_changes_is_a_line_of_the_difference() -> None:
    texts = [cassette_text(one(AssistantMessage(f"one\n{word}\nthree"))).splitlines() for word in ("two", "zwei")]
    differing = [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]]
    assert [[line.strip() for line in pair] for pair in differing] == [['"two",', '"zwei",']]


@pytest.mark.parametrize(
    ("arguments", "raw", "is_shown"),
    [
        ({"a": "é"}, '{"a": "é"}', False),
        ({"a": 1}, '{"a":1}', True),
        ({}, "", True),
        ({}, "{}", False),
        (None, "{", True),
        (None, "", False),
    ],
)
def test_raw_arguments_are_shown_where_they_are_not_the_usual_text(
    arguments: Any, raw: str, *, is_shown: bool
) -> None:
    (call,) = encoded(one(AssistantMessage(calls=(ToolCall("i", "n", arguments, raw, "n"),))))["exchanges"][0][
        "reply"
    ]["calls"]
    assert ("raw" in call) is is_shown
    assert "raw_name" not in call


def test_text_stays_as_people_read_it() -> None:
    text = cassette_text(one(AssistantMessage("größer → 名前")))
    assert "größer → 名前" in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (AssistantMessage(opaque={"data": b"x"}), TypeError),
        (AssistantMessage(opaque={"data": float("nan")}), ValueError),
        (AssistantMessage(usage=Usage(input=10**5000)), ValueError),
    ],
)
def test_what_is_no_json_is_refused(reply: AssistantMessage, error: type[Exception]) -> None:
    with pytest.raises(error):
        cassette_text(one(reply))


def test_messages_that_are_not_there_are_an_empty_list() -> None:
    cassette = Cassette(Label("c", "t"), (Exchange(Asked(FRAME, 0, (UserMessage(""),)), AssistantMessage()),))
    assert encoded(cassette)["exchanges"][0]["request"]["messages"] == [{"role": "user", "text": ""}]
