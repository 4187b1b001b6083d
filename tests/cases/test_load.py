from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pytest_tooleval.cases.case import (
    FileCheck,
    Page,
    ScriptedCall,
    ScriptedTurn,
    ServerUse,
    Source,
    TextCheck,
    ToolUseCase,
    Verifier,
)
from pytest_tooleval.cases.load import load_fixture_file
from pytest_tooleval.errors import CaseError

SHOWN = Path("evals/fixtures/f.json")


@pytest.fixture
def load(tmp_path):
    """Load the cases of a file with the given text or value."""

    def loaded(content: object, name: str = "f.json") -> list[ToolUseCase]:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return load_fixture_file(path, SHOWN)

    return loaded


@pytest.fixture
def problems(load):
    """Load a file that has to be refused, and return what is said of it."""

    def refused(content: object, name: str = "f.json") -> list[str]:
        with pytest.raises(CaseError) as caught:
            load(content, name)
        return [str(problem) for problem in caught.value.problems]

    return refused


def test_the_least_fixture(load, tmp_path):
    assert load({"task": "Say hello.", "expected": []}, "say-hello.json") == [
        ToolUseCase("say-hello", "Say hello.", Source(tmp_path / "say-hello.json", 1, 0), expected=((),))
    ]


def test_every_key_of_a_fixture(load, tmp_path):
    fixture = {
        "$schema": "fixture.schema.json",
        "_note": "x",
        "id": "all",
        "description": "d",
        "task": "t",
        "files": {"a/b.txt": "x"},
        "git": True,
        "expected": ["grep"],
        "verifier": {"no_calls": True, "_why": "y"},
        "tool_permission": {"edit": "ask"},
        "tools_deny": ["web_fetch"],
        "mcp": ["time", {"server": "git", "tools": ["git_*"]}],
        "tags": ["smoke"],
        "max_turns": 3.0,
        "pages": {
            "https://x.org": "text",
            "https://y.org": {"body": "b", "status": 404.0, "content_type": "text/plain"},
        },
        "mock": [{"text": "a", "calls": [{"name": "grep"}, {"name": "glob", "arguments": "{oops"}]}, {"text": ""}],
    }

    assert load(fixture) == [
        ToolUseCase(
            id="all",
            task="t",
            source=Source(tmp_path / "f.json"),
            description="d",
            files={"a/b.txt": "x"},
            git=True,
            expected=(("grep",),),
            verifier=Verifier(no_calls=True),
            tool_permission={"mcp": "allow", "edit": "ask"},
            tools_deny=("web_fetch",),
            mcp=(ServerUse("time"), ServerUse("git", ("git_*",))),
            tags=("smoke",),
            max_turns=3,
            pages={"https://x.org": Page("text"), "https://y.org": Page("b", 404, "text/plain")},
            mock=(
                ScriptedTurn("a", (ScriptedCall("grep", {}), ScriptedCall("glob", "{oops"))),
                ScriptedTurn(""),
            ),
        )
    ]


@pytest.mark.parametrize(
    ("keys", "permission"),
    [
        ({}, {}),
        ({"mcp": ["git"]}, {"mcp": "allow"}),
        ({"mcp": ["git"], "tool_permission": {"mcp": "ask"}}, {"mcp": "ask"}),
        ({"mcp": ["git"], "tool_permission": {"web": "deny"}}, {"mcp": "allow", "web": "deny"}),
        ({"tool_permission": {"mcp": "deny"}}, {"mcp": "deny"}),
    ],
)
def test_naming_a_server_allows_its_category(load, keys, permission):
    (case,) = load({"task": "t", "expected": [], **keys})
    assert case.tool_permission == permission


def test_every_key_of_a_verifier(load):
    verifier = {
        "exact": [["a", "b"], ["b"]],
        "must_include": ["a"],
        "avoid": ["c"],
        "max_calls": 4.0,
        "min_calls": 1,
        "args": {"a": {"path": {"$path": "x"}}},
        "args_exact": {"a": {}},
        "in_order": ["a", "b"],
        "any_order": ["b", "a"],
        "answer": {"contains": "x", "not_contains": ["y", "z"], "regex": "^x"},
        "files": {"p": {"exists": True}, "q": {"equals": "", "contains": ["m"]}, "r": {"exists": False}},
    }
    (case,) = load({"task": "t", "verifier": verifier})

    assert case.verifier == Verifier(
        exact=(("a", "b"), ("b",)),
        must_include=("a",),
        avoid=("c",),
        max_calls=4,
        min_calls=1,
        args={"a": {"path": {"$path": "x"}}},
        args_exact={"a": {}},
        in_order=("a", "b"),
        any_order=("b", "a"),
        answer=TextCheck(("x",), ("y", "z"), "^x"),
        files={
            "p": FileCheck(exists=True),
            "q": FileCheck(equals="", text=TextCheck(("m",))),
            "r": FileCheck(exists=False),
        },
    )


@pytest.mark.parametrize(
    ("value", "sequences"),
    [
        ([], ((),)),
        (["a", "a"], (("a", "a"),)),
        ([["a"], []], (("a",), ())),
        ([[]], ((),)),
        ([["a", "b"]], (("a", "b"),)),
    ],
)
def test_expected_is_a_sequence_or_a_list_of_acceptable_ones(load, value, sequences):
    (case,) = load({"task": "t", "expected": value})
    assert case.expected == sequences


def test_a_list_of_fixtures_keeps_order_line_and_index(load):
    cases = load(
        '[\n{"id": "b", "task": "t", "expected": []},\n\n{"task": "t",\n "expected": []}\n]', "file-stem.json"
    )

    assert [(case.id, case.source.line, case.source.index) for case in cases] == [("b", 2, 0), ("file-stem", 4, 1)]


def test_every_fault_of_a_file_is_reported_with_line_and_pointer(problems):
    text = """[
      {"id": "a", "task": "t",
       "expcted": [], "expected": []},
      {"id": "b", "task": "t",
       "verifier": {"args": {"grep": {
          "pattern": {"$regx": "x"}}}}},
      5
    ]"""

    assert problems(text) == [
        f"{SHOWN}:3 at /0/expcted: unknown key 'expcted' (did you mean 'expected'?)",
        (
            f"{SHOWN}:6 at /1/verifier/args/grep/pattern/$regx: unknown matcher '$regx' (did you mean '$regex'?); "
            'a value that really is such an object is {"$equals": …}'
        ),
        f"{SHOWN}:7 at /2: found 5; expected a fixture, which is an object with 'task'",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", ":1: is an empty list; expected at least one fixture"),
        ("5", ":1: found 5; expected a fixture, which is an object with 'task'"),
        ("null", ":1: found null; expected a fixture, which is an object with 'task'"),
        ('[["x"]]', ":1 at /0: found a list ([\"x\"]); expected a fixture, which is an object with 'task'"),
        ({"expected": []}, ":1: the key 'task' is missing"),
        ({"task": "t"}, ":1: checks nothing: give it 'expected' or a 'verifier', or every run would pass"),
        (
            {"task": "t", "verifier": {"_why": "x"}},
            ":1: checks nothing: give it 'expected' or a 'verifier', or every run would pass",
        ),
        (
            {"task": "t", "verifier": {"answer": {"_note": "x"}}},
            ":1 at /verifier/answer/_note: unknown key '_note'; known are: contains, not_contains, regex",
        ),
        (
            {"task": "t", "expected": [], "files": {"../x": "a"}},
            ":1 at /files/..~1x: '../x' holds '..'; give a path inside the worktree, as src/app.py",
        ),
    ],
)
def test_a_file_that_is_refused(problems, content, message):
    assert problems(content) == [f"{SHOWN}{message}"]


def test_a_verifier_of_notes_beside_expected_is_no_verifier(load):
    (case,) = load({"task": "t", "expected": ["a"], "verifier": {"_why": "x"}})
    assert case.verifier is None


def test_ids_in_one_file_are_unique(problems):
    text = '[{"id": "a", "task": "t", "expected": []},\n{"id": "a", "task": "t", "expected": []}]'
    assert problems(text) == [f"{SHOWN}:2: the id 'a' is taken by the fixture on line 1; give it another"]


def test_only_one_fixture_of_a_list_can_go_without_id(problems):
    text = '[{"task": "t", "expected": []},\n{"task": "u", "expected": []},\n{"task": "v", "expected": []}]'
    assert problems(text)[0] == f"{SHOWN}:2: 3 fixtures of this list have no 'id'; give each one"


def test_a_file_name_that_cannot_be_an_id(problems):
    assert problems({"task": "t", "expected": []}, "a[1].json") == [
        f"{SHOWN}:1: the file's name 'a[1]' cannot be an id; give the fixture an 'id'"
    ]


def test_many_faulty_fixtures_take_time_in_proportion(problems):
    text = json.dumps([{"task": "t " * 50, "expcted": [], "id": f"c{n}"} for n in range(6_000)], indent=1)
    started = time.process_time()

    found = problems(text)

    assert len(found) == 6_000
    assert found[-1] == f"{SHOWN}:29999 at /5999/expcted: unknown key 'expcted' (did you mean 'expected'?)"
    assert time.process_time() - started < 10
