from __future__ import annotations

import re

import pytest
from chat_samples import chat_answer
from loopback import as_json, serving

USAGE = {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420}
ANSWER = as_json(chat_answer({"content": "Hello."}, usage=USAGE))
SPENT = re.compile(r"the budget of 2000 tokens is spent: (\d+) used")


@pytest.fixture
def twenty(suite):
    suite.write("fixtures/all.json", [{"id": f"n{i:02}", "task": "Greet.", "expected": []} for i in range(20)])
    return suite


def target(server) -> list[str]:
    return ["--provider", "openai:m", "--provider-url", server.url]


@pytest.mark.parametrize(("workers", "at_a_time"), [((), 1), (("-n", "2"), 1), ((), 4)])
def test_a_run_ends_asking_once_its_tokens_are_spent(twenty, workers, at_a_time):
    with serving(ANSWER) as server:
        document = twenty.result(
            *target(server), "--tooleval-max-tokens", "2000", "--tooleval-concurrency", str(at_a_time), *workers
        )
    together = at_a_time * (2 if workers else 1)
    assert 5 <= len(server.asked) < 5 + together
    cases = document["toolUse"]["cases"]
    skipped = [case["reason"] for case in cases if case["verdict"] == "skipped"]
    assert len(skipped) == 20 - len(server.asked)
    used = {int(SPENT.fullmatch(reason)[1]) for reason in skipped}
    assert min(used) >= 2_000
    assert max(used) <= 420 * len(server.asked)


def test_without_a_limit_everything_is_asked(twenty):
    with serving(ANSWER) as server:
        assert twenty.run(*target(server)).ret == 0
    assert len(server.asked) == 20


def test_a_server_that_does_not_say_what_it_uses_is_not_asked_on(twenty):
    with serving(as_json(chat_answer({"content": "Hello."}))) as server:
        document = twenty.result(*target(server), "--tooleval-max-tokens", "2000", "--tooleval-concurrency", "1")
    assert len(server.asked) == 1
    assert {case["reason"] for case in document["toolUse"]["cases"][1:]} == {
        "the budget of 2000 tokens cannot be kept: openai:m does not say how many it uses"
    }


def test_a_limit_of_cost_needs_a_known_price(twenty):
    with serving(ANSWER) as server:
        result = twenty.run(*target(server), "--tooleval-max-cost", "5")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no price is known for openai:m; limit the tokens with --tooleval-max-tokens*"])
    assert server.asked == []


def test_mock_costs_nothing(suite):
    suite.passing("a")
    suite.passing("b")
    suite.run("--tooleval-max-cost", "1", "--tooleval-max-tokens", "1").assert_outcomes(passed=2)
