from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from json_values import TEXT, json_values

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.jsontext import decode_document, pointer_text
from pytest_tooleval.cases.load import FIXTURE_SCHEMA, cases_of
from pytest_tooleval.errors import CaseError, Problem
from pytest_tooleval.gates.thresholds import load_thresholds

SMALL = fuzzed(150)
FILE = Path("fixtures/some-name.json")

KEYS = st.sampled_from(
    [
        *("id", "task", "files", "git", "expected", "verifier", "tool_permission", "tools_deny", "tags", "pages"),
        *("mock", "max_turns", "exact", "must_include", "avoid", "max_calls", "min_calls", "args", "args_exact"),
        *("in_order", "any_order", "no_calls", "answer", "contains", "regex", "exists", "equals", "calls", "text"),
        *("name", "arguments", "$regex", "$any_of", "$type", "$any", "_note", "edit", "../x", "http://x"),
    ]
)
NAMES = st.sampled_from(["file_read", "grep", "glob", "mcp__fs__read"])
LISTS = st.lists(NAMES, max_size=3)
DISTINCT = st.lists(NAMES, min_size=1, max_size=3, unique=True)
ANY_VALUE = json_values(KEYS | TEXT)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["path", "limit"]), json_values(st.sampled_from(["x", "y"])), max_size=2
)
WORDS = st.text("abc ", min_size=1, max_size=4)
PATHS = st.sampled_from(["a.txt", "src/app.py", "deep/er/b.json"])
ANSWERS = st.fixed_dictionaries({"contains": WORDS | st.lists(WORDS, min_size=1)}, optional={"regex": WORDS})
VERIFIERS = st.fixed_dictionaries(
    {"exact": LISTS | st.lists(LISTS, min_size=1, max_size=2)},
    optional={
        "must_include": DISTINCT,
        "in_order": st.lists(NAMES, min_size=1, max_size=2),
        "max_calls": st.integers(9, 20),
        "min_calls": st.integers(1, 3),
        "args": st.dictionaries(NAMES, ARGUMENTS, min_size=1, max_size=2),
        "answer": ANSWERS,
        "files": st.dictionaries(PATHS, st.fixed_dictionaries({"equals": TEXT}), min_size=1, max_size=2),
    },
)
TURNS = st.fixed_dictionaries(
    {"text": TEXT},
    optional={
        "calls": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"arguments": ARGUMENTS | TEXT}), min_size=1, max_size=2
        )
    },
)
FIXTURES = st.fixed_dictionaries(
    {"task": WORDS.filter(str.strip), "expected": LISTS | st.lists(LISTS, min_size=1, max_size=2)},
    optional={
        "id": st.text("abcäö-_. ", min_size=1, max_size=6).filter(lambda name: name == name.strip()),
        "description": TEXT,
        "files": st.dictionaries(PATHS, TEXT, max_size=3),
        "git": st.booleans(),
        "verifier": VERIFIERS,
        "tool_permission": st.dictionaries(
            st.sampled_from(["edit", "bash"]), st.sampled_from(["allow", "ask", "deny"])
        ),
        "tools_deny": DISTINCT,
        "tags": st.lists(st.sampled_from(["smoke", "slow"]), unique=True),
        "max_turns": st.integers(1, 50),
        "pages": st.dictionaries(st.sampled_from(["http://x.org", "https://y.org/z"]), TEXT, min_size=1),
        "mock": st.lists(TURNS, min_size=1, max_size=3),
        "_note": ANY_VALUE,
    },
)


def load(text: str) -> list[ToolUseCase] | tuple[Problem, ...]:
    """Return what a file of this text gives: cases, or the problems of a CaseError; nothing else may be raised."""
    try:
        return cases_of(decode_document(text, FILE), FILE)
    except CaseError as error:
        return error.problems


def check_outcome(text: str) -> None:
    found = load(text)
    assert found
    for each in found:
        if isinstance(each, Problem):
            assert each.message.strip()
            assert each.line is not None
            assert 1 <= each.line <= text.count("\n") + 1
        else:
            assert each.task.strip()
            assert each.expected is not None or each.verifier is not None


@SMALL
@given(ANY_VALUE, st.sampled_from([None, 2]))
def test_any_json_value_gives_cases_or_problems(value: Any, indent: int | None) -> None:
    check_outcome(json.dumps(value, indent=indent))


@SMALL
@given(
    st.lists(
        st.sampled_from(['{"task"', ":", '"t"', ",", "}", "[", "]", "\n", "NaN", "1e999", '"\\ud800"', " ", "5"])
    )
)
def test_any_text_gives_cases_or_problems(pieces: list[str]) -> None:
    check_outcome("".join(pieces))


@SMALL
@given(FIXTURES, st.data())
def test_a_fixture_with_one_value_exchanged_gives_cases_or_problems(
    fixture: dict[str, Any], data: st.DataObject
) -> None:
    changed = copy.deepcopy(fixture)
    *way, last = data.draw(st.sampled_from(places(changed)))
    parent: Any = changed
    for step in way:
        parent = parent[step]
    parent[last] = data.draw(ANY_VALUE)

    check_outcome(json.dumps([changed], indent=1))
    if not FIXTURE_SCHEMA.is_valid(changed):
        assert FIXTURE_SCHEMA.faults(changed)


def places(value: Any) -> list[tuple[str | int, ...]]:
    """Return the path of every value inside a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(step, *rest) for step, inner in members for rest in [(), *places(inner)]]


@SMALL
@given(FIXTURES)
def test_a_valid_fixture_loads_and_keeps_its_values(fixture: dict[str, Any]) -> None:
    found = load(json.dumps(fixture))

    assert isinstance(found, list), found
    (case,) = found
    assert case.id == fixture.get("id", "some-name")
    assert case.task == fixture["task"]
    assert case.expected == sequences(fixture["expected"])
    assert case.files == fixture.get("files", {})
    assert case.git is fixture.get("git", False)
    assert case.tags == tuple(fixture.get("tags", ()))
    assert case.tools_deny == tuple(fixture.get("tools_deny", ()))
    assert case.tool_permission == fixture.get("tool_permission", {})
    assert case.max_turns == fixture.get("max_turns")
    assert {url: page.body for url, page in case.pages.items()} == fixture.get("pages", {})
    assert (case.mock is None) == ("mock" not in fixture)
    for turn, given_turn in zip(case.mock or (), fixture.get("mock", ()), strict=True):
        assert turn.text == given_turn["text"]
        assert [(call.name, call.arguments) for call in turn.calls] == [
            (call["name"], call.get("arguments", {})) for call in given_turn.get("calls", ())
        ]
    check_verifier(case, fixture.get("verifier"))


def check_verifier(case: ToolUseCase, given_verifier: dict[str, Any] | None) -> None:
    if given_verifier is None:
        assert case.verifier is None
        return
    assert case.verifier is not None
    assert case.verifier.exact == sequences(given_verifier["exact"])
    assert case.verifier.must_include == tuple(given_verifier.get("must_include", ()))
    assert case.verifier.in_order == tuple(given_verifier.get("in_order", ()))
    assert case.verifier.max_calls == given_verifier.get("max_calls")
    assert case.verifier.min_calls == given_verifier.get("min_calls")
    assert case.verifier.args == given_verifier.get("args", {})
    assert (case.verifier.answer is None) == ("answer" not in given_verifier)
    equals = {path: check.equals for path, check in case.verifier.files.items()}
    assert equals == {path: check["equals"] for path, check in given_verifier.get("files", {}).items()}


def sequences(value: list[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, value)) if value and isinstance(value[0], list) else (tuple(value),)


@SMALL
@given(json_values(st.text('ab"~/\\{[\n', max_size=3)))
def test_the_line_of_every_value_agrees_with_a_count_by_hand(value: Any) -> None:
    text = json.dumps(value, indent=2)
    document = decode_document(text, FILE)

    for pointer, line in lines(value, 1):
        assert document.line_of(pointer) == line, pointer_text(pointer)


def lines(value: Any, line: int) -> list[tuple[tuple[str | int, ...], int]]:
    """Return the line of every value in the text that `json.dumps` writes with an indent."""
    found: list[tuple[tuple[str | int, ...], int]] = [((), line)]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in members:
        line += 1
        found += [((step, *pointer), place) for pointer, place in lines(inner, line)]
        line += json.dumps(inner, indent=2).count("\n")
    return found


GATE_KEYS = st.sampled_from(
    ["tool_use", "version", "overall", "smoke", "passRateMin", "errorsMax", "must_pass", "_note"]
)


@SMALL
@given(json_values(GATE_KEYS))
def test_any_threshold_file_gives_gates_or_problems(tmp_path_factory: Any, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "thresholds.json"
    path.write_text(json.dumps(value))
    try:
        gates = load_thresholds(path, Path("thresholds.json"), ".")
    except CaseError as error:
        problems = error.problems
    else:
        assert len({gate.name for gate in gates}) == len(gates)
        return
    assert problems
    assert all(problem.message for problem in problems)
