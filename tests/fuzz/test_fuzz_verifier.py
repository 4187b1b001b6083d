from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st
from json_values import TEXT, json_values

from pytest_tooleval.cases.case import FileCheck, Source, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.matching import ABSENT, call_key, equal, matches
from pytest_tooleval.measures.verify import (
    Behaviour,
    CalledTool,
    FileState,
    Mismatch,
    verify,
)

SMALL = fuzzed(150)
NAME = st.sampled_from("abc")
NAMES = st.lists(NAME, max_size=5).map(tuple)
KEYS = st.sampled_from(["x", "y", "$any", "$x"])
CLOSE = st.sampled_from([0, 1, 1.0, -0.0, True, False, "1", "", "true", None, 2, 2.0])
VALUES = json_values(KEYS, CLOSE) | json_values(KEYS)
MATCHERS = st.one_of(
    st.builds(lambda operand: {"$equals": operand}, VALUES),
    st.builds(lambda operand: {"$default": operand}, VALUES),
    st.builds(lambda options: {"$any_of": options}, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(lambda name: {"$type": name}, st.sampled_from(["integer", "string", ["null", "object"]])),
    st.builds(lambda pattern: {"$regex": pattern}, st.sampled_from(["", "^a", "[ab]+", "."])),
    st.builds(lambda path: {"$path": path}, st.sampled_from(["a", "./a", "/w/a", "", "/"])),
    st.just({"$any": True}),
    st.just({"$absent": True}),
)
EXPECTED = st.dictionaries(st.sampled_from("xyz"), VALUES | MATCHERS | st.lists(MATCHERS, max_size=2), max_size=3)
ARGUMENTS = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3)
TEXT_CHECKS = st.builds(
    TextCheck,
    st.lists(TEXT).map(tuple),
    st.lists(TEXT).map(tuple),
    st.none() | st.sampled_from(["a", "^$", "(b|c)+"]),
)
FILE_CHECKS = st.builds(FileCheck, st.none() | st.booleans(), st.none() | TEXT, TEXT_CHECKS)
COUNTS = st.none() | st.integers(0, 5)
VERIFIERS = st.builds(
    Verifier,
    exact=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    must_include=NAMES,
    avoid=NAMES,
    max_calls=COUNTS,
    min_calls=COUNTS,
    args=st.dictionaries(NAME, EXPECTED, max_size=2),
    args_exact=st.dictionaries(NAME, EXPECTED, max_size=2),
    in_order=NAMES,
    any_order=st.none() | NAMES,
    no_calls=st.booleans(),
    answer=st.none() | TEXT_CHECKS,
    files=st.dictionaries(st.sampled_from(["p", "q"]), FILE_CHECKS, max_size=2),
)
STATES = st.builds(FileState, TEXT) | st.builds(
    FileState, st.none(), st.sampled_from(["does not exist", "is a folder"])
)
BEHAVIOURS = st.builds(
    Behaviour,
    calls=st.lists(st.builds(CalledTool, NAME, st.none() | ARGUMENTS), max_size=5),
    answer=TEXT,
    files=st.dictionaries(st.sampled_from(["p", "q"]), STATES, max_size=2),
    worktree=st.sampled_from(["", "/w"]),
)


def case(verifier: Verifier) -> ToolUseCase:
    return ToolUseCase("c", "t", Source(Path("c.json")), verifier=verifier)


def by_names(*names: str) -> Behaviour:
    return Behaviour([CalledTool(name, {}) for name in names], "done")


@SMALL
@given(VERIFIERS, BEHAVIOURS)
def test_any_verifier_with_any_behaviour_gives_mismatches_in_words(
    verifier: Verifier, behaviour: Behaviour
) -> None:
    found = verify(case(verifier), behaviour)

    assert all(isinstance(mismatch, Mismatch) for mismatch in found)
    assert {mismatch.kind for mismatch in found} <= {"missing", "unexpected", "different"}
    assert all(mismatch.what.strip() for mismatch in found)
    assert found == verify(case(verifier), behaviour)


@SMALL
@given(NAMES, NAMES)
@example(("a", "b", "a"), ("a", "a", "b"))
def test_names_agree_with_plain_oracles(wanted: tuple[str, ...], called: tuple[str, ...]) -> None:
    subsequences = {
        tuple(called[index] for index in chosen)
        for size in range(len(called) + 1)
        for chosen in itertools.combinations(range(len(called)), size)
    }
    oracles = [
        (Verifier(exact=(wanted,)), wanted == called),
        (Verifier(in_order=wanted), wanted in subsequences),
        (Verifier(any_order=wanted), sorted(wanted) == sorted(called)),
        (Verifier(must_include=wanted), all(called.count(name) > 0 for name in wanted)),
        (Verifier(avoid=wanted), not any(name in wanted for name in called)),
        (Verifier(max_calls=len(wanted)), len(called) <= len(wanted)),
        (Verifier(min_calls=len(wanted)), len(called) >= len(wanted)),
        (Verifier(no_calls=True), called == ()),
    ]
    for verifier, passes in oracles:
        assert (verify(case(verifier), by_names(*called)) == []) is passes, verifier


def tagged(value: Any) -> Any:
    """Return a value in which kinds are spelled out, so that Python's own equality is the right one."""
    if isinstance(value, bool | str) or value is None:
        return type(value).__name__, value
    if isinstance(value, int | float):
        return "number", Fraction(value)
    if isinstance(value, list):
        return "list", [tagged(member) for member in value]
    return "object", {key: tagged(member) for key, member in value.items()}


def respelled(value: Any) -> Any:
    """Return the same JSON value with numbers of the other type and keys in another order."""
    if isinstance(value, int) and not isinstance(value, bool) and float(value) == value:
        return float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [respelled(member) for member in value]
    if isinstance(value, dict):
        return {key: respelled(value[key]) for key in reversed(value)}
    return value


@SMALL
@given(VALUES)
def test_equality_is_reflexive_and_does_not_see_spelling(value: Any) -> None:
    assert equal(value, value)
    assert equal(value, respelled(value))
    assert equal(respelled(value), value)
    assert call_key("t", value) == call_key("t", respelled(value))


@SMALL
@given(VALUES, VALUES)
@example([True], [1])
@example({"x": 0}, {"x": False})
@example("1", 1)
def test_equality_agrees_with_an_oracle_that_tells_kinds_apart(left: Any, right: Any) -> None:
    same = tagged(left) == tagged(right)

    assert equal(left, right) is same
    assert equal(right, left) is same
    assert (call_key("t", left) == call_key("t", right)) is same
    assert matches({"$equals": left}, right) is same


@SMALL
@given(json_values(st.sampled_from(["x", "y"]), CLOSE), json_values(st.sampled_from(["x", "y"]), CLOSE))
def test_a_value_without_matchers_is_matched_by_equality(expected: Any, actual: Any) -> None:
    assert matches(expected, actual) is equal(expected, actual)
    assert matches(expected, respelled(expected))
    assert not matches(expected, ABSENT)


@SMALL
@given(st.lists(VALUES | MATCHERS, min_size=1, max_size=3), VALUES | st.just(ABSENT))
def test_any_of_is_met_when_an_option_is(options: list[Any], actual: Any) -> None:
    assert matches({"$any_of": options}, actual) is any(matches(option, actual) for option in options)


@SMALL
@given(EXPECTED, st.lists(ARGUMENTS, min_size=1, max_size=4))
def test_arguments_are_met_when_one_call_meets_each(expected: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    behaviour = Behaviour([CalledTool("t", arguments) for arguments in calls], "done")
    meeting = [
        arguments
        for arguments in calls
        if all(matches(value, arguments.get(name, ABSENT)) for name, value in expected.items())
    ]

    assert (verify(case(Verifier(args={"t": expected})), behaviour) == []) is bool(meeting)
    exactly = any(set(arguments) <= set(expected) for arguments in meeting)
    assert (verify(case(Verifier(args_exact={"t": expected})), behaviour) == []) is exactly
