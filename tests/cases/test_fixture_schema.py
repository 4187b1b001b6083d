from __future__ import annotations

import json

import pytest

from pytest_tooleval.cases.schema import SCHEMA_NAMES, Fault, Schema, describe, schema_text
from pytest_tooleval.errors import ToolevalError

FIXTURE = Schema("fixture", "fixture")
KNOWN_KEYS = (
    "$schema, description, expected, files, git, id, max_turns, mcp, mock, pages, tags, task, timeout, "
    "tool_permission, tools_deny, verifier"
)


def faults(**keys: object) -> list[Fault]:
    return FIXTURE.faults({"task": "t", **keys})


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_the_published_schemas_are_schemas(name):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(json.loads(schema_text(name)))


def test_a_schema_that_does_not_exist():
    with pytest.raises(ToolevalError) as caught:
        schema_text("fixtures")
    known = ", ".join(SCHEMA_NAMES)
    assert str(caught.value) == f"no schema 'fixtures' (did you mean 'fixture'?); there are: {known}"


@pytest.mark.parametrize(
    "value",
    [
        {"task": "t"},
        {"task": "t", "expected": [], "_note": 1, "$schema": "x"},
        {"task": "t", "expected": [["a"], []], "verifier": {"exact": [["a"]], "_why": "x", "max_calls": 2.0}},
        {"task": "t", "pages": {"https://x.org": {"body": "", "status": 404}, "http://y": "text"}},
        {"task": "t", "tags": ["smoke", "a.b-c+d_1"], "id": "päge 1: ünïcode"},
        {"task": "t", "mcp": ["git", {"server": "time"}, {"server": "web", "tools": ["get_*", "put"]}]},
        {"task": "t", "mock": [{"text": ""}, {"calls": [{"name": "a"}, {"name": "b", "arguments": "{oops"}]}]},
    ],
)
def test_valid_fixtures(value):
    assert FIXTURE.is_valid(value)
    assert FIXTURE.faults(value) == []


@pytest.mark.parametrize(
    ("keys", "path", "message"),
    [
        ({"expcted": []}, ("expcted",), "unknown key 'expcted' (did you mean 'expected'?)"),
        ({"zzz": 1}, ("zzz",), f"unknown key 'zzz'; known are: {KNOWN_KEYS}"),
        (
            {"verifier": {"must_inclde": ["a"]}},
            ("verifier", "must_inclde"),
            "unknown key 'must_inclde' (did you mean 'must_include'?)",
        ),
        (
            {"verifier": {"answer": {"_note": "x", "contains": "y"}}},
            ("verifier", "answer", "_note"),
            "unknown key '_note'; known are: contains, not_contains, regex",
        ),
        (
            {"tool_permission": {"_x": 1}},
            ("tool_permission", "_x"),
            "unknown key '_x'; known are: bash, edit, list, mcp, read, web",
        ),
        (
            {"verifier": [{"contains": "x"}]},
            ("verifier",),
            'found a list ([{"contains": "x"}]); expected an object',
        ),
        ({"mcp": []}, ("mcp",), "is empty (a list ([])) and so says nothing: fill it or leave it out"),
        ({"mcp": "git"}, ("mcp",), 'found "git"; expected a list'),
        (
            {"mcp": [{"servr": "git"}]},
            ("mcp", 0),
            'found an object ({"servr": "git"}); expected a server\'s name, or an object with \'server\' and '
            "'tools' (names or globs of its tools)",
        ),
        (
            {"expected": "grep"},
            ("expected",),
            'found "grep"; expected a list of tool names, or a list of such lists',
        ),
        (
            {"expected": [["a"], "b"]},
            ("expected",),
            'found a list ([["a"], "b"]); expected a list of tool names, or a list of such lists',
        ),
        (
            {"tool_permission": {"edit": "alow"}},
            ("tool_permission", "edit"),
            "found \"alow\"; expected one of: allow, ask, deny (did you mean 'allow'?)",
        ),
        (
            {"tool_permission": {"edit": True}},
            ("tool_permission", "edit"),
            "found true; expected one of: allow, ask, deny",
        ),
        ({"max_turns": 0}, ("max_turns",), "found 0; expected at least 1"),
        ({"max_turns": True}, ("max_turns",), "found true; expected a whole number"),
        ({"max_turns": 1.5}, ("max_turns",), "found 1.5; expected a whole number"),
        ({"verifier": {"max_calls": "2"}}, ("verifier", "max_calls"), 'found "2"; expected a whole number'),
        ({"verifier": {}}, ("verifier",), "is empty (an object ({})) and so says nothing: fill it or leave it out"),
        (
            {"verifier": {"must_include": []}},
            ("verifier", "must_include"),
            "is empty (a list ([])) and so says nothing: fill it or leave it out",
        ),
        (
            {"verifier": {"no_calls": False}},
            ("verifier", "no_calls"),
            "found false; expected true: the model answers without a tool",
        ),
        ({"tools_deny": ["a", "a"]}, ("tools_deny",), 'found a list (["a", "a"]); each name may stand only once'),
        (
            {"verifier": {"answer": {"contains": ""}}},
            ("verifier", "answer", "contains"),
            'found ""; expected a text that is not empty, or a list of such texts',
        ),
        (
            {"verifier": {"answer": {"contains": 5}}},
            ("verifier", "answer", "contains"),
            "found 5; expected a text that is not empty, or a list of such texts",
        ),
        ({"verifier": {"args": {"grep": "x"}}}, ("verifier", "args", "grep"), 'found "x"; expected an object'),
        ({"mock": [{"calls": [{"arguments": {}}]}]}, ("mock", 0, "calls", 0), "the key 'name' is missing"),
        (
            {"mock": [{"calls": [{"name": "a", "arguments": []}]}]},
            ("mock", 0, "calls", 0, "arguments"),
            "found a list ([]); expected an object or a string",
        ),
        (
            {"pages": {"ftp://x": "a"}},
            ("pages",),
            'found "ftp://x"; expected a URL that begins with http:// or https://',
        ),
        (
            {"pages": {"http://x": {"status": 200}}},
            ("pages", "http://x"),
            'found an object ({"status": 200}); expected the page\'s text, or an object with body, status and content_type',
        ),
        (
            {"id": "a[b]"},
            ("id",),
            "found \"a[b]\"; expected a name without brackets, slashes, '::', control characters and outer spaces, unique in the suite; defaults to the file's stem",
        ),
        (
            {"tags": ["xfail"]},
            ("tags", 0),
            'found "xfail"; expected a name that begins with a letter and goes on with letters, digits and _ . + -, and has no meaning of its own in pytest',
        ),
        ({"files": {"a": None}}, ("files", "a"), "found null; expected a string"),
        ({"description": "x" * 5, "git": "yes"}, ("git",), 'found "yes"; expected true or false'),
    ],
)
def test_a_fault_says_where_what_was_found_and_what_is_expected(keys, path, message):
    assert faults(**keys) == [Fault(path, message)]


@pytest.mark.parametrize(
    "value", ["a::b", "a/b", "a\\b", " a", "a ", "a\n", "a\x00", "a\x7f", "", "\u2003a", "a]", 5, None]
)
def test_names_that_cannot_be_an_id(value):
    assert [fault.path for fault in faults(id=value)] == [("id",)]


@pytest.mark.parametrize("value", ["", "  ", "\n\t", None, 5, ["t"]])
def test_a_task_says_something(value):
    assert [fault.path for fault in FIXTURE.faults({"task": value})] == [("task",)]


def test_a_missing_task():
    assert FIXTURE.faults({"id": "a"}) == [Fault((), "the key 'task' is missing")]


def test_faults_come_in_the_order_of_the_value():
    mock = [{"text": "a"}] * 2 + [{"text": 2}] + [{"text": "a"}] * 7 + [{"text": 10}]
    value = {"zzzzz": 1, "mock": mock, "task": "", "git": 1}

    assert [fault.path for fault in FIXTURE.faults(value)] == [
        ("zzzzz",),
        ("mock", 2, "text"),
        ("mock", 10, "text"),
        ("task",),
        ("git",),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("é", '"é"'),
        (1.0, "1.0"),
        (["a"], 'a list (["a"])'),
        ({}, "an object ({})"),
        ("x" * 70, '"' + "x" * 59 + "…"),
    ],
)
def test_values_are_described_in_json(value, text):
    assert describe(value) == text
