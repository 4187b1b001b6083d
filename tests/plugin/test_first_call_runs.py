from __future__ import annotations

import json

import pytest
from chat_samples import chat_answer
from loopback import as_json, serving

USAGE = {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420}
GREP = {"calls": [{"name": "grep", "arguments": {"pattern": "port"}}]}


@pytest.fixture
def mixed(suite):
    suite.fixture("right", expected=["grep", "file_read"], mock=[GREP, {"text": "8443"}])
    suite.fixture("wrong", expected=["file_read"], mock=[GREP, {"text": "8443"}])
    suite.fixture("looks", verifier={"must_include": ["file_read"]}, mock=[GREP, {"text": "8443"}])
    suite.fixture("end", verifier={"answer": {"contains": "8443"}}, mock=[{"text": "8443"}])
    return suite


def verdicts(document):
    return {case["id"]: (case["verdict"], case["reason"]) for case in document["toolUse"]["cases"]}


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_first_turns_pass_miss_or_are_skipped(mixed, workers):
    document = mixed.result("--tooleval-first-call", *workers)
    found = verdicts(document)
    assert {case_id: verdict for case_id, (verdict, _) in found.items()} == {
        "right": "passed",
        "wrong": "missed",
        "looks": "skipped",
        "end": "skipped",
    }
    assert found["looks"][1] == "the first turn decides nothing of what the case checks: must_include"
    assert found["end"][1] == "the first turn decides nothing of what the case checks: answer"
    totals = document["toolUse"]["byTarget"]["mock"]
    assert (totals["n"], totals["measured"], totals["passRate"], totals["accuracy"]) == (4, 2, 0.5, 0.5)
    assert document["toolUse"]["confusion"]["mock"]["pairs"] == [
        {"expected": "file_read", "called": "grep", "count": 1},
        {"expected": "grep", "called": "grep", "count": 1},
    ]


def test_the_summary_says_that_nothing_was_run(mixed):
    result = mixed.run("--tooleval-first-call")
    result.stdout.fnmatch_lines(["note: only first calls were asked for: no tool was run"])
    result.assert_outcomes(passed=1, failed=1, skipped=2)
    assert "no tool was run" not in mixed.run().stdout.str()


def test_the_failure_says_what_was_not_judged(suite):
    verifier = {"avoid": ["grep"], "answer": {"contains": "8443"}}
    suite.fixture("a", verifier=verifier, mock=[GREP, {"text": "8443"}])
    result = suite.run("--tooleval-first-call")
    result.stdout.fnmatch_lines(["*grep(*) -> not run", "not judged from the first turn:", "  answer"])


def test_a_run_of_first_calls_is_no_baseline(suite, pytester):
    suite.passing("a")
    result = suite.run("--tooleval-first-call", "--tooleval-snapshot", "kept")
    assert result.ret == 0
    assert list((pytester.path / "kept" / "snapshots").glob("*.json"))
    assert not (pytester.path / "kept" / "snapshots" / "baseline.json").exists()
    result.stdout.fnmatch_lines(["*only first calls were asked for*"])


def test_a_server_is_asked_once_a_case(suite):
    suite.fixture("a", expected=["grep", "file_read"])
    suite.fixture("b", expected=["grep"])
    calls = [
        {"id": "1", "type": "function", "function": {"name": "grep", "arguments": json.dumps({"pattern": "x"})}}
    ]
    answer = as_json(chat_answer({"content": None, "tool_calls": calls}, "tool_calls", usage=USAGE))
    with serving(answer) as server:
        document = suite.result("--tooleval-first-call", "--provider", "openai:m", "--provider-url", server.url)
    assert len(server.asked) == 2
    totals = document["toolUse"]["byTarget"]["openai:m"]
    assert (totals["passRate"], totals["tokens"], totals["tokensPerSolved"], totals["cost"]) == (1, 840, 420, None)
