from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.gold import (
    CacheWorkload,
    DiscoveryRow,
    ErgonomicsCase,
    InvocationScenario,
    PerformanceWorkload,
    Request,
    TokensWorkload,
)
from pytest_tooleval.cases.gold_files import (
    load_discovery,
    load_ergonomics,
    load_invocation,
    load_workloads,
    slug_of,
)
from pytest_tooleval.errors import CaseError

REFS = ("chat.post_message", "wiki.search_pages", "wiki.delete_page")
LOADERS = {
    "rows.jsonl": load_discovery,
    "scenarios.json": load_invocation,
    "ergonomics.json": load_ergonomics,
    "workloads.json": load_workloads,
}
ROW = {"intent": "send a message", "category": "lexical", "acceptable": ["chat.post_message"], "rationale": "r"}
SCENARIO = {
    "name": "post",
    "toolRef": "chat.post_message",
    "arguments": {},
    "expectedOutcome": "success",
    "rationale": "r",
}
FIND = {"name": "find", "kind": "find", "query": "send", "rationale": "r"}


@pytest.fixture
def load(tmp_path):
    """Load a file of the given name, whose form it tells, with the given text or values."""

    def loaded(name: str, content: object) -> list:
        path = tmp_path / name
        if not isinstance(content, str):
            content = "\n".join(map(json.dumps, content)) if name == "rows.jsonl" else json.dumps(content)
        path.write_text(content)
        return LOADERS[name](path, Path("evals") / name, REFS)

    return loaded


def refusal(load, name: str, content: object) -> list[str]:
    with pytest.raises(CaseError) as caught:
        load(name, content)
    return [str(problem).removeprefix(f"evals/{name}") for problem in caught.value.problems]


def ids(load, *rows: dict[str, object]) -> list[str]:
    return [row.id for row in load("rows.jsonl", [{**ROW, **row} for row in rows])]


def test_a_row_and_where_it_stands(load, tmp_path):
    text = """
{"intent": "Send  a message!", "category": "ambiguous", "acceptable": ["chat.post_message", "wiki.search_pages"],\
 "rationale": "Either.", "k": 3, "_note": "x"}

{"id": "nothing", "intent": "fly", "category": "no_match", "acceptable": [], "rationale": "No wings."}
"""
    path = tmp_path / "rows.jsonl"

    first, second = load("rows.jsonl", text)

    assert first == DiscoveryRow(
        id="send-a-message",
        intent="Send  a message!",
        category="ambiguous",
        acceptable=("chat.post_message", "wiki.search_pages"),
        rationale="Either.",
        source=Source(path, 2, 0),
        k=3,
    )
    assert second == DiscoveryRow(
        id="nothing",
        intent="fly",
        category="no_match",
        acceptable=(),
        rationale="No wings.",
        source=Source(path, 4, 1),
        k=1,
    )
    assert (first.family, first.tags) == ("discovery", ("ambiguous",))


@pytest.mark.parametrize(
    ("intent", "slug"),
    [
        ("Send a message", "send-a-message"),
        ("  List: all [open] issues/PRs?  ", "list-all-open-issues-prs"),
        ("a::b\tc\nd", "a-b-c-d"),
        ("read_file", "read_file"),
        ("发送消息 到 频道", "发送消息-到-频道"),
        ("Größe ÄNDERN", "grösse-ändern"),
        ("Найди файл", "найди-файл"),
        ("???", "row"),
        ("🚀", "row"),
        ("word " * 30, "word-word-word-word-word-word-word-word-word-word-word-word"),
        ("x" * 100, "x" * 60),
        ("ab " + "x" * 100, "ab"),
    ],
)
def test_the_slug_of_an_intent(intent, slug):
    assert slug_of(intent) == slug


def test_two_rows_with_one_intent_are_told_apart(load):
    assert ids(load, {"intent": "find it"}, {"intent": "Find it!"}, {"intent": "find it"}) == [
        "find-it",
        "find-it-2",
        "find-it-3",
    ]


def test_a_slug_never_takes_an_id_that_another_row_has(load):
    rows = [
        {"intent": "a"},
        {"intent": "a 2"},
        {"intent": "a"},
        {"intent": "b", "id": "a"},
        {"intent": "a", "id": "a-4"},
        {"intent": "a"},
    ]
    found = ids(load, *rows)
    assert found == ["a-2", "a-2-2", "a-3", "a", "a-4", "a-5"]
    assert len(set(found)) == len(rows)


def test_many_rows_with_one_intent_take_time_in_proportion(load):
    rows = [ROW] * 20_000
    started = time.process_time()
    found = load("rows.jsonl", rows)
    assert time.process_time() - started < 6
    assert len({row.id for row in found}) == 20_000


UNKNOWN_ROW_KEYS = "acceptable, category, id, intent, k, rationale"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"acceptable": ["chat.post_mesage"]},
            ":1 at /acceptable/0: the catalog has no tool 'chat.post_mesage' (did you mean 'chat.post_message'?)",
        ),
        (
            {"acceptable": ["chat.post_message", "zzz"]},
            ":1 at /acceptable/1: the catalog has no tool 'zzz'",
        ),
        (
            {"acceptable": ["chat.post_message", "chat.post_message"]},
            ':1 at /acceptable: found a list (["chat.post_message", "chat.post_message"]); '
            "each name may stand only once",
        ),
        ({"acceptable": []}, ":1 at /acceptable: is empty; a lexical row names at least one tool"),
        (
            {"category": "no_match"},
            ":1 at /acceptable: a no_match row has no acceptable tool; expected []",
        ),
        ({"acceptable": "chat.post_message"}, ':1 at /acceptable: found "chat.post_message"; expected a list'),
        (
            {"category": "lexcal"},
            ':1 at /category: found "lexcal"; expected one of: lexical, semantic, no_match, ambiguous, wrong_server '
            "(did you mean 'lexical'?)",
        ),
        ({"intent": ""}, ':1 at /intent: found ""; expected what is searched for, not blank'),
        ({"intent": " \t"}, ':1 at /intent: found " \\t"; expected what is searched for, not blank'),
        ({"intent": 5}, ":1 at /intent: found 5; expected a string"),
        ({"rationale": " "}, ':1 at /rationale: found " "; expected why, not blank'),
        ({"k": 0}, ":1 at /k: found 0; expected at least 1"),
        ({"k": True}, ":1 at /k: found true; expected a whole number"),
        (
            {"id": "a::b"},
            ":1 at /id: found \"a::b\"; expected a name without brackets, slashes, '::', control characters and outer "
            "spaces",
        ),
        ({"intnt": "x"}, ":1 at /intnt: unknown key 'intnt' (did you mean 'intent'?)"),
        ({"zzzzz": "x"}, f":1 at /zzzzz: unknown key 'zzzzz'; known are: {UNKNOWN_ROW_KEYS}"),
    ],
)
def test_a_row_that_is_refused(load, row, message):
    assert refusal(load, "rows.jsonl", [{**ROW, **row}]) == [message]


@pytest.mark.parametrize("key", ["intent", "category", "acceptable", "rationale"])
def test_a_row_without_a_key_that_it_needs(load, key):
    row = {name: value for name, value in ROW.items() if name != key}
    assert refusal(load, "rows.jsonl", [row]) == [f":1: the key {key!r} is missing"]


def test_every_fault_of_a_file_is_in_one_report(load):
    text = "\n".join(
        [
            json.dumps(ROW),
            "{not json",
            json.dumps({**ROW, "acceptable": ["nope"], "k": 2}),
            "",
            json.dumps([ROW]),
            json.dumps({**ROW, "category": "x", "rationale": ""}),
            '{"intent": "\\ud800", "category": "lexical", "acceptable": ["chat.post_message"], "rationale": "r"}',
            '{"intent": NaN}',
            json.dumps(ROW) + " 1",
        ]
    )
    assert refusal(load, "rows.jsonl", text) == [
        ":2: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        ":7: is not strict JSON: a string holds half of a surrogate pair (\\ud800 to \\udfff)",
        ":8: is not strict JSON: NaN is not a JSON number",
        f":9: is not JSON: Extra data (column {len(json.dumps(ROW)) + 2})",
        ":3 at /acceptable/0: the catalog has no tool 'nope'",
        ":5: found a list ([" + json.dumps(ROW)[:59] + "…); expected a row, which is an object",
        ':6 at /category: found "x"; expected one of: lexical, semantic, no_match, ambiguous, wrong_server',
        ':6 at /rationale: found ""; expected why, not blank',
    ]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_a_row(load, content):
    assert refusal(load, "rows.jsonl", content) == [":1: is empty; expected a JSON object on each line"]


def test_ids_that_stand_twice(load):
    rows = [{**ROW, "id": "x"}, {**ROW, "id": "y"}, {**ROW, "id": "x"}]
    assert refusal(load, "rows.jsonl", rows) == [":3: the name 'x' is taken on line 1; give it another"]


def test_a_scenario_and_where_it_stands(load, tmp_path):
    text = """{
 "version": 1,
 "_note": "x",
 "scenarios": [
  {"name": "ok", "toolRef": "chat.post_message", "arguments": {"a": 1}, "expectedOutcome": "success",
   "rationale": "r"},
  {"name": "mend", "toolRef": "chat.post_message", "arguments": {}, "expectedOutcome": "repair",
   "expectedError": "ARGUMENT_VALIDATION_FAILED", "corrected": {"a": 1}, "rationale": "r"},
  {"name": "drift", "toolRef": "chat.post_message", "arguments": {}, "expectedOutcome": "error",
   "expectedError": "TOOL_SCHEMA_CHANGED", "liveSchema": {"type": "object"}, "rationale": "r"},
  {"name": "gone", "toolRef": "chat.nope", "arguments": {}, "expectedOutcome": "error",
   "expectedError": "TOOL_NOT_FOUND", "rationale": "r"}
 ]
}"""
    found = load("scenarios.json", text)
    path = tmp_path / "scenarios.json"

    assert found == [
        InvocationScenario("ok", "chat.post_message", {"a": 1}, "success", "r", Source(path, 5, 0)),
        InvocationScenario(
            "mend",
            "chat.post_message",
            {},
            "repair",
            "r",
            Source(path, 7, 1),
            expected_error="ARGUMENT_VALIDATION_FAILED",
            corrected={"a": 1},
        ),
        InvocationScenario(
            "drift",
            "chat.post_message",
            {},
            "error",
            "r",
            Source(path, 9, 2),
            expected_error="TOOL_SCHEMA_CHANGED",
            live_schema={"type": "object"},
        ),
        InvocationScenario(
            "gone", "chat.nope", {}, "error", "r", Source(path, 11, 3), expected_error="TOOL_NOT_FOUND"
        ),
    ]


REPAIR = {"expectedOutcome": "repair", "expectedError": "ARGUMENT_VALIDATION_FAILED", "corrected": {}}


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (
            {"toolRef": "chat.post"},
            ":1 at /scenarios/0/toolRef: the catalog has no tool 'chat.post' (did you mean 'chat.post_message'?)",
        ),
        (
            {"expectedError": "CONFIG_ERROR"},
            ":1 at /scenarios/0/expectedError: a scenario that is to succeed expects no error",
        ),
        (
            {"expectedOutcome": "error"},
            ":1 at /scenarios/0: a scenario with the outcome 'error' needs 'expectedError'",
        ),
        (
            {"expectedOutcome": "repair", "corrected": {}},
            ":1 at /scenarios/0: a scenario with the outcome 'repair' needs 'expectedError'",
        ),
        (
            {"expectedOutcome": "repair", "expectedError": "ARGUMENT_VALIDATION_FAILED"},
            ":1 at /scenarios/0: a scenario with the outcome 'repair' needs 'corrected', the arguments of the second call",
        ),
        (
            {"corrected": {}},
            ":1 at /scenarios/0/corrected: a scenario with the outcome 'success' makes no second call",
        ),
        (
            {"expectedOutcome": "error", "expectedError": "TOOL_SCHEMA_CHANGED"},
            ":1 at /scenarios/0: a scenario that expects 'TOOL_SCHEMA_CHANGED' needs 'liveSchema', what the server has now",
        ),
        (
            {**REPAIR, "expectedError": "DOWNSTREAM_SERVER_OFFLINE"},
            ":1 at /scenarios/0/expectedError: other arguments do not mend DOWNSTREAM_SERVER_OFFLINE; "
            "a repair is of ARGUMENT_VALIDATION_FAILED or TOOL_SCHEMA_CHANGED",
        ),
        (
            {"expectedOutcome": "eror", "expectedError": "CONFIG_ERROR"},
            ':1 at /scenarios/0/expectedOutcome: found "eror"; expected one of: success, repair, error '
            "(did you mean 'error'?)",
        ),
        ({"arguments": [1]}, ":1 at /scenarios/0/arguments: found a list ([1]); expected an object"),
        ({"rationale": ""}, ':1 at /scenarios/0/rationale: found ""; expected why, not blank'),
        (
            {"liveschema": {}},
            ":1 at /scenarios/0/liveschema: unknown key 'liveschema' (did you mean 'liveSchema'?)",
        ),
    ],
)
def test_a_scenario_that_is_refused(load, scenario, message):
    assert refusal(load, "scenarios.json", {"scenarios": [{**SCENARIO, **scenario}]}) == [message]


def test_a_repair_of_a_tool_that_is_not_there_is_refused(load):
    scenario = {**SCENARIO, **REPAIR, "toolRef": "wiki.nope", "expectedError": "TOOL_NOT_FOUND"}
    assert refusal(load, "scenarios.json", {"scenarios": [scenario]}) == [
        ":1 at /scenarios/0/toolRef: the catalog has no tool 'wiki.nope'",
        ":1 at /scenarios/0/expectedError: other arguments do not mend TOOL_NOT_FOUND; "
        "a repair is of ARGUMENT_VALIDATION_FAILED or TOOL_SCHEMA_CHANGED",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scenarios.json", {}, ":1: the key 'scenarios' is missing"),
        (
            "scenarios.json",
            {"scenarios": []},
            ":1 at /scenarios: is empty (a list ([])) and so says nothing: fill it or leave it out",
        ),
        ("scenarios.json", [SCENARIO], ":1: found a list; expected an object"),
        ("scenarios.json", "5", ":1: found 5; expected an object"),
        (
            "scenarios.json",
            {"version": 2, "scenarios": [SCENARIO]},
            ":1 at /version: found 2; expected 1, the version of this format",
        ),
        (
            "scenarios.json",
            '{"scenarios": [\n' + json.dumps(SCENARIO) + ",\n" + json.dumps(SCENARIO) + "]}",
            ":3: the name 'post' is taken on line 2; give it another",
        ),
        (
            "scenarios.json",
            {"scenarios": [SCENARIO, SCENARIO]},
            ":1: the name 'post' is taken on line 1; give it another",
        ),
        ("ergonomics.json", {"cases": [FIND, FIND]}, ":1: the name 'find' is taken on line 1; give it another"),
        ("ergonomics.json", {"scenarios": []}, ":1: the key 'cases' is missing"),
        ("ergonomics.json", "[]", ":1: found a list; expected an object"),
        ("workloads.json", "[]", ":1: found a list; expected an object"),
        ("workloads.json", "null", ":1: found null; expected an object"),
    ],
)
def test_a_file_of_another_shape(load, name, content, message):
    assert refusal(load, name, content)[0] == message


def test_an_ergonomics_case_and_where_it_stands(load, tmp_path):
    text = """{"cases": [
 {"name": "f", "kind": "find", "query": "", "expectDecision": "empty_query", "rationale": "r"},
 {"name": "d", "kind": "describe", "toolRef": "no.such", "expectErrorType": "TOOL_NOT_FOUND", "rationale": "r"},
 {"name": "c", "kind": "call", "toolRef": "chat.post_message", "arguments": {"a": 1}, "rationale": "r"}]}"""
    path = tmp_path / "ergonomics.json"

    assert load("ergonomics.json", text) == [
        ErgonomicsCase("f", "find", "r", Source(path, 2, 0), expect_decision="empty_query"),
        ErgonomicsCase(
            "d", "describe", "r", Source(path, 3, 1), tool_ref="no.such", expect_error_type="TOOL_NOT_FOUND"
        ),
        ErgonomicsCase("c", "call", "r", Source(path, 4, 2), tool_ref="chat.post_message", arguments={"a": 1}),
    ]


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        ({"kind": "find"}, [":1 at /cases/0: a 'find' request needs 'query'"]),
        ({"kind": "describe"}, [":1 at /cases/0: a 'describe' request needs 'toolRef'"]),
        (
            {"kind": "call", "query": "x"},
            [
                ":1 at /cases/0: a 'call' request needs 'toolRef'",
                ":1 at /cases/0/query: a 'call' request has 'toolRef', and no 'query'",
            ],
        ),
        (
            {"kind": "find", "query": "x", "arguments": {}},
            [":1 at /cases/0/arguments: a 'find' request has no arguments"],
        ),
        (
            {"kind": "finds", "query": "x"},
            [":1 at /cases/0/kind: found \"finds\"; expected one of: find, describe, call (did you mean 'find'?)"],
        ),
        (
            {"kind": "find", "query": "x", "expectDecision": "used"},
            [
                ':1 at /cases/0/expectDecision: found "used"; expected one of: use, ambiguous, no_good_match, '
                "catalog_empty, empty_query (did you mean 'use'?)"
            ],
        ),
    ],
)
def test_an_ergonomics_case_that_is_refused(load, case, messages):
    assert refusal(load, "ergonomics.json", {"cases": [{"name": "x", "rationale": "r", **case}]}) == messages


WORKLOADS_TEXT = """{
 "version": 1,
 "tokens": {"query": "send", "toolRef": "chat.post_message", "arguments": {"a": 1}},
 "performance": {"queries": ["a", "b"]},
 "cache": {
  "calls": [
   {"operation": "find", "query": "send"},
   {"operation": "describe", "toolRef": "chat.post_message"},
   {"operation": "call", "toolRef": "chat.post_message"},
   {"operation": "call", "toolRef": "chat.post_message", "arguments": {}}
  ]
 }
}"""


def test_workloads_and_where_they_stand(load, tmp_path):
    path = tmp_path / "workloads.json"
    assert load("workloads.json", WORKLOADS_TEXT) == [
        TokensWorkload("send", "chat.post_message", {"a": 1}, Source(path, 3, 0)),
        CacheWorkload(
            (
                Request("find", query="send"),
                Request("describe", tool_ref="chat.post_message"),
                Request("call", tool_ref="chat.post_message"),
                Request("call", tool_ref="chat.post_message", arguments={}),
            ),
            Source(path, 5, 1),
        ),
        PerformanceWorkload(("a", "b"), 100, Source(path, 4, 2)),
    ]


def test_workloads_that_a_file_leaves_out(load):
    (only,) = load("workloads.json", {"performance": {"queries": ["a"], "iterations": 7}})
    assert (only.family, only.id, only.iterations) == ("performance", "performance", 7)
    assert load("workloads.json", {"_note": "none wanted"}) == []


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (
            {"tokens": {"query": "send", "toolRef": "chat.post", "arguments": {}}},
            [":1 at /tokens/toolRef: the catalog has no tool 'chat.post' (did you mean 'chat.post_message'?)"],
        ),
        ({"tokens": {"query": "send", "toolRef": "x"}}, [":1 at /tokens: the key 'arguments' is missing"]),
        (
            {"cache": {"calls": [{"operation": "find", "toolRef": "wiki.nope"}]}},
            [
                ":1 at /cache/calls/0: a 'find' request needs 'query'",
                ":1 at /cache/calls/0/toolRef: a 'find' request has 'query', and no 'toolRef'",
                ":1 at /cache/calls/0/toolRef: the catalog has no tool 'wiki.nope'",
            ],
        ),
        (
            {"performance": {"queries": [""], "iterations": 0}},
            [
                ':1 at /performance/queries/0: found ""; expected a query, not blank',
                ":1 at /performance/iterations: found 0; expected at least 1",
            ],
        ),
        ({"token": {}}, [":1 at /token: unknown key 'token' (did you mean 'tokens'?)"]),
    ],
)
def test_workloads_that_are_refused(load, content, messages):
    assert refusal(load, "workloads.json", content) == messages
