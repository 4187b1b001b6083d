from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_tooleval.providers.wire import (
    CallIds,
    broken,
    decode_arguments,
    encode_arguments,
    is_double_encoded,
    made_id,
    offered_name,
    token_count,
    well_formed,
)
from pytest_tooleval.transcript import AssistantMessage, ToolCall

DEEP = "[" * 200_000


@pytest.mark.parametrize(
    ("raw", "arguments", "text"),
    [
        ('{"path":"b.md"}', {"path": "b.md"}, '{"path":"b.md"}'),
        ({"path": "b.md"}, {"path": "b.md"}, '{"path": "b.md"}'),
        ('"{\\"path\\": 1}"', {"path": 1}, '"{\\"path\\": 1}"'),
        ("", {}, ""),
        (" \n", {}, " \n"),
        ("null", {}, "null"),
        ('""', {}, '""'),
        (None, {}, ""),
        ("{}", {}, "{}"),
        ('{"path": "b.', None, '{"path": "b.'),
        ("[1]", None, "[1]"),
        ([1], None, "[1]"),
        (7, None, "7"),
        (False, None, "false"),
        ('"plain"', None, '"plain"'),
        ('{"n": NaN}', None, '{"n": NaN}'),
        ('{"n": 1e999}', None, '{"n": 1e999}'),
        ({"n": float("inf")}, None, '{"n": Infinity}'),
        (DEEP, None, DEEP),
        ('{"t": "\\ud83d\\ude00"}', {"t": "😀"}, '{"t": "\\ud83d\\ude00"}'),
        ('{"t\\ud800": "a\\udc00b"}', {"t\ufffd": "a\ufffdb"}, '{"t\\ud800": "a\\udc00b"}'),
        ('{"t": "\ud800"}', {"t": "\ufffd"}, '{"t": "\ufffd"}'),
    ],
)
def test_arguments_as_they_come(raw: Any, arguments: dict[str, Any] | None, text: str) -> None:
    assert decode_arguments(raw) == (arguments, text)


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{"path":"b.md"}', '{"path":"b.md"}'),
        ({"path": "b.md"}, '{"path": "b.md"}'),
        ('"{\\"path\\": 1}"', '{"path": 1}'),
        ("", "{}"),
        (None, "{}"),
        ("null", "{}"),
        ('{"path": "b.', "{}"),
        ('{"t": "\\ud800"}', '{"t": "\ufffd"}'),
    ],
)
def test_arguments_go_back_as_one_json_text(raw: Any, sent: str) -> None:
    arguments, text = decode_arguments(raw)
    assert encode_arguments(ToolCall("c", "f", arguments, text)) == sent
    assert isinstance(json.loads(sent), dict)


@pytest.mark.parametrize(
    ("raw", "double"), [('"{\\"a\\": 1}"', True), ('{"a": 1}', False), ('"plain"', False), ("", False)]
)
def test_double_encoding_is_told(raw: str, double: bool) -> None:
    assert is_double_encoded(ToolCall("c", "f", *decode_arguments(raw))) is double


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    value = {"a\udfff": ["x\ud83d\ude00\ud83dy", 1, None, {"b": "é\udc80"}]}
    clean = well_formed(value)
    assert clean == {"a\ufffd": ["x😀\ufffdy", 1, None, {"b": "é\ufffd"}]}
    json.dumps(clean, ensure_ascii=False).encode()


def test_new_ids_are_kept_and_others_made() -> None:
    earlier = [AssistantMessage(calls=(ToolCall("run:0", "run", {}),))]
    given = ["run:0", "run:1", "run:1", "", "  ", None, 7, {"odd": 1}]
    ids = CallIds(earlier)
    taken = [ids.take(one) for one in given]
    assert [taken[1], taken[6]] == ["run:1", "7"]
    assert len({*taken, "run:0"}) == len(given) + 1
    made = taken[:1] + taken[2:6] + taken[7:]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in made)


def test_an_id_that_would_not_be_taken_back_is_replaced() -> None:
    ids = CallIds([], re.compile(r"[a-z]+-[0-9]"))
    assert [ids.take("ab-1"), ids.take("ab-12"), ids.take("ab-1")] == ["ab-1", made_id(0, 1), made_id(0, 2)]


@pytest.mark.parametrize(
    ("counts", "number"),
    [
        ({"n": 7}, 7),
        ({"n": 7.0}, 7),
        ({"n": 0}, 0),
        ({"n": True}, None),
        ({"n": -1}, None),
        ({"n": "7"}, None),
        ({"n": float("nan")}, None),
        ({"n": float("inf")}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_number_of_tokens(counts: Any, number: int | None) -> None:
    assert token_count(counts, "n") == number


def test_a_broken_answer_may_be_sound_the_next_time() -> None:
    error = broken("it has no end")
    assert (str(error), error.transient) == ("the answer breaks the protocol: it has no end", True)


def test_made_ids_are_the_same_again_and_differ_between_turns() -> None:
    first, again = CallIds([]), CallIds([])
    assert first.take(None) == again.take(None) == made_id(0, 0)
    assert CallIds([AssistantMessage()]).take(None) == made_id(1, 0)
    assert made_id(0, 1) != made_id(1, 0)


def test_a_made_id_avoids_one_that_the_provider_used() -> None:
    taken = AssistantMessage(calls=(ToolCall(made_id(1, 0), "f", {}),))
    assert CallIds([taken]).take(None) == made_id(1, 0, salt=1)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("grep", "grep"),
        ("functions.grep", "grep"),
        ("default_api:grep", "grep"),
        ("tools/grep", "grep"),
        ("functions.fs.read", "fs.read"),
        ("functions.unknown", "functions.unknown"),
        ("elsewhere.grep", "elsewhere.grep"),
        ("tools.list", "tools.list"),
        ("read", "read"),
        ("", ""),
    ],
)
def test_offered_name(raw: str, name: str) -> None:
    assert offered_name(raw, ["grep", "fs.read", "tools.list", "list"]) == name
