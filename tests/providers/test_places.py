from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.providers.places import Places, with_texts
from pytest_tooleval.transcript import AssistantMessage, ToolCall, ToolMessage

HERE = Places("/tmp/tooleval-a/1/work", "/tmp/tooleval-a/1/home", "/tmp/tooleval-a/1/tmp")
THERE = Places("/var/x/27/work", "/var/x/27/home", "/var/x/27/tmp")
ODD = Places('/tmp/a "b"/\\work', "/tmp/é{~tmp}/home", "/tmp/é{~tmp}/home/tmp")

PIECES = st.sampled_from(
    ["{worktree}", "{~worktree}", "{~~home}", "{", "}", "~", "{tmp", "worktree}", "/", "a", "\\", '"', "{x}", "é"]
)
PATHS = st.sampled_from([getattr(each, name) for each in (HERE, ODD) for name in ("worktree", "home", "tmp")])
TEXTS = st.lists(PIECES | PATHS | st.text(st.characters(exclude_categories=("Cs",)), max_size=4)).map("".join)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("/tmp/tooleval-a/1/work/src/app.py:3", "{worktree}/src/app.py:3"),
        ("file:///tmp/tooleval-a/1/work", "file://{worktree}"),
        ("HOME=/tmp/tooleval-a/1/home TMPDIR=/tmp/tooleval-a/1/tmp", "HOME={home} TMPDIR={tmp}"),
        ("f'{worktree}/x' of {home}", "f'{~worktree}/x' of {~home}"),
        ("{~worktree}", "{~~worktree}"),
        ("{name} {worktrees}", "{name} {worktrees}"),
        ("/tmp/tooleval-a/2/work", "/tmp/tooleval-a/2/work"),
        ("half \ud800 of a pair", "half \ufffd of a pair"),
    ],
)
def test_paths_get_names(text: str, spelled: str) -> None:
    assert HERE.spell(text) == spelled


def test_a_text_comes_back_with_the_paths_of_another_run() -> None:
    spelled = HERE.spell("cat /tmp/tooleval-a/1/work/a > /tmp/tooleval-a/1/home/{tmp}")
    assert THERE.restore(spelled) == "cat /var/x/27/work/a > /var/x/27/home/{tmp}"
    assert Places().restore(spelled) == "cat {worktree}/a > {home}/{tmp}"


def test_a_folder_in_another_one_is_told_from_it() -> None:
    nested = Places("/w", "/w/home", "/w/home/tmp")
    assert nested.spell("/w/home/tmp/x /w/home/x /w/x") == "{tmp}/x {home}/x {worktree}/x"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS, st.sampled_from([HERE, THERE, ODD, Places()]))
def test_spelling_loses_nothing(text: str, places: Places) -> None:
    assert places.restore(places.spell(text)) == text


@settings(max_examples=100, deadline=None, derandomize=True)
@given(json_values(TEXTS, st.none() | st.booleans() | st.integers() | TEXTS), st.sampled_from([HERE, ODD]))
def test_the_raw_arguments_of_a_call_stay_those_of_its_arguments(value: Any, places: Places) -> None:
    arguments = {"value": value}
    call = ToolCall("c", "t", arguments, json.dumps(arguments, ensure_ascii=False), "t", {"extra": [value]})
    spelled = places.spelled(call)
    assert json.loads(spelled.raw_arguments) == spelled.arguments
    assert places.restored(spelled) == call


def test_every_text_of_a_record_is_changed_and_the_record_is_not() -> None:
    call = ToolCall("ID", "NAME", {"KEY": ["A", 1, None, {"B": True}]}, "RAW", "NAME", {"X": ("Y",)})
    reply = AssistantMessage("TEXT", (call,), opaque={"S": "T"}, attempts=3)
    lowered = ToolCall("id", "name", {"key": ["a", 1, None, {"b": True}]}, "'raw'", "name", {"x": ("y",)})
    assert with_texts(reply, str.lower, lambda text: f"'{text.lower()}'") == AssistantMessage(
        "text", (lowered,), opaque={"s": "t"}, attempts=3
    )
    assert call.arguments == {"KEY": ["A", 1, None, {"B": True}]}
    assert with_texts(ToolMessage("I", "N", "R", is_error=True), str.lower, str) == ToolMessage(
        "i", "n", "r", is_error=True
    )


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="the key 1 of an object is no text"):
        with_texts({1: "a"}, str, str)


def test_other_values_are_left_alone() -> None:
    assert with_texts((1, 2.5, None, True, Path("x")), str.upper, str.upper) == (1, 2.5, None, True, Path("x"))
