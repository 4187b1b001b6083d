from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cassette_samples import EVERYTHING
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.cases.jsontext import pointer_text
from pytest_tooleval.errors import CaseError
from pytest_tooleval.providers.cassette import Cassette, cassette_text
from pytest_tooleval.providers.cassette_reader import decode_cassette

SHOWN = Path("cassettes/c.json")
TEXT = cassette_text(EVERYTHING)
FIRST = ("exchanges", 0)
CALL = (*FIRST, "reply", "calls", 0)


def fault_in(text: str) -> str:
    with pytest.raises(CaseError) as failed:
        decode_cassette(text, SHOWN)
    (problem,) = failed.value.problems
    return str(problem)


def changed(path: tuple[str | int, ...], value: Any = None, *, remove: bool = False) -> str:
    """Return the sample with one value replaced, added or removed."""
    document = json.loads(TEXT)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return json.dumps(document, indent=2)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "tooleval-cassette/v2", "is a cassette of another version: \"tooleval-cassette/v2\", expected 'tooleval-cassette/v1'"),
        (("format",), ["v1"], "is a cassette of another version: a list"),
        (("trial",), 0, "found 0; expected a whole number of at least 1"),
        (("case",), 5, "found 5; expected a string"),
        (("exchanges",), {}, "found an object ({}); expected a list"),
        ((*FIRST,), [], "found a list ([]); expected an object"),
        ((*FIRST, "seconds"), 1.5, "unknown key 'seconds'; known are: request, reply"),
        ((*FIRST, "request", "sytem"), "x", "unknown key 'sytem' (did you mean 'system'?)"),
        ((*FIRST, "request", "sampling", "temperature"), True, "found true; expected a number"),
        ((*FIRST, "request", "sampling", "tool_choice"), "any", 'found "any"; expected one of: auto, required, none'),
        ((*FIRST, "request", "tools", 0, "parameters"), None, "found null; expected an object"),
        ((*FIRST, "request", "tools", 0, "description", 1), 2, "found 2; expected a string"),
        ((*FIRST, "request", "messages", 0, "role"), "system", 'found "system"; expected one of: user, tool, assistant'),
        ((*FIRST, "request", "messages", 0, "text"), None, "found null; expected a string, or a list of lines"),
        (("exchanges", 1, "request", "dropped"), -1, "found -1; expected a whole number of at least 0"),
        (("exchanges", 1, "request", "messages", 2, "is_error"), 1, "found 1; expected true or false"),
        ((*FIRST, "reply", "finish"), "done", 'found "done"; expected one of: stop, length, refusal'),
        ((*FIRST, "reply", "usage", "input"), 1.0, "found 1.0; expected a whole number"),
        ((*FIRST, "reply", "attempts"), -1, "found -1; expected a whole number of at least 0"),
        ((*CALL, "arguments"), "{}", 'found "{}"; expected an object'),
        ((*CALL, "raw"), {}, "found an object ({}); expected a string"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_line_and_place(
    path: tuple[str | int, ...], value: Any, message: str
) -> None:
    text = changed(path, value)
    fault = fault_in(text)
    place, _, said = fault.partition(": ")
    assert said.startswith(message)
    shown, _, pointer = place.partition(" at ")
    assert pointer == pointer_text(path)
    line = int(shown.removeprefix("cassettes/c.json:"))
    last = path[-1]
    assert isinstance(last, int) or f'"{last}"' in text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("trial",), "cassettes/c.json:1: the key 'trial' is missing"),
        ((*FIRST, "reply"), "at /exchanges/0: the key 'reply' is missing"),
        ((*FIRST, "request", "tools"), "at /exchanges/0/request: the key 'tools' is missing"),
        ((*FIRST, "reply", "usage"), "at /exchanges/0/reply: the key 'usage' is missing"),
        (("exchanges", 1, "request", "messages", 1, "call_id"), "at /exchanges/1/request/messages/1: the key 'call_id'"),
        ((*CALL, "id"), "at /exchanges/0/reply/calls/0: the key 'id' is missing"),
    ],
)  # fmt: skip
def test_a_missing_key_is_named_with_its_place(path: tuple[str | int, ...], place: str) -> None:
    assert place in fault_in(changed(path, remove=True))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "cassettes/c.json:1: is empty"),
        ("[]", "cassettes/c.json:1: is no cassette"),
        ("null", "cassettes/c.json:1: is no cassette"),
        ('{"schema": "tooleval/v1"}', "is no cassette: it is no object with the 'format' 'tooleval-cassette/v1'"),
        (TEXT[:100], "cassettes/c.json:"),
        (TEXT.replace('"trial": 2', '"trial": 2, "trial": 2'), "cassettes/c.json:5: is not strict JSON: the key 'trial'"),
        (TEXT.replace('"trial": 2', '"trial": NaN'), "cassettes/c.json:5: is not strict JSON: NaN"),
        (TEXT.replace('"a.py"', '"\\ud800"'), "is not strict JSON: a string holds half of a surrogate pair"),
        (TEXT.replace('"a.py"', "[" * 100_000 + "]" * 100_000), "is nested deeper than 200 levels"),
        ("<<<<<<< HEAD\n" + TEXT, "cassettes/c.json:1: is not JSON"),
    ],
)  # fmt: skip
def test_what_is_no_cassette_is_refused(text: str, fault: str) -> None:
    assert fault in fault_in(text)


def test_an_empty_cassette_is_one() -> None:
    assert decode_cassette(changed(("exchanges",), []), SHOWN).exchanges == ()


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, member in members for place in places(member, (*path, key)))]


PLACES = places(json.loads(TEXT))[1:]


def read(text: str) -> Cassette | str:
    """Return the cassette, or what is wrong with it; anything else that is raised is a fault of the reader."""
    try:
        return decode_cassette(text, SHOWN)
    except CaseError as error:
        return str(error)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(PLACES), json_values())
def test_a_damaged_cassette_is_read_or_refused_at_a_place(path: tuple[str | int, ...], value: Any) -> None:
    found = read(changed(path, value))
    if isinstance(found, str):
        assert found.startswith("cassettes/c.json:")
    else:
        assert decode_cassette(cassette_text(found), SHOWN) == found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, len(TEXT)), st.integers(0, 40), st.text('{}[]",:\\x0\n é', max_size=5))
def test_a_torn_cassette_is_read_or_refused(start: int, length: int, inserted: str) -> None:
    found = read(TEXT[:start] + inserted + TEXT[start + length :])
    assert isinstance(found, Cassette) or found.startswith("cassettes/c.json:")
