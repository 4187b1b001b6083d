from __future__ import annotations

from typing import Any

import pytest

COUNTING = """
import itertools
from pytest_tooleval.transcript import AssistantMessage

class Counting:
    numbers = itertools.count(1)
    def cannot_run(self, case): return None
    def close(self): pass
    def reply(self, case, request): return AssistantMessage(f"reply {next(self.numbers)}")

def pytest_tooleval_register_providers(providers):
    providers.add("counting", lambda settings: Counting())
"""


def answers(document: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {(case["id"], case["trial"]): case["answer"] for case in document["toolUse"]["cases"]}


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "workers"])
def test_each_trial_is_asked_for_itself_and_replayed_in_its_own_place(
    suite: Any, pytester: pytest.Pytester, workers: list[str]
) -> None:
    pytester.makeconftest(COUNTING)
    for name in ("a", "b"):
        suite.fixture(name, verifier={"answer": {"contains": ["reply"]}})
    options = ["--provider", "counting", "--tooleval-trials", "5"]
    recorded = answers(suite.result("--tooleval-record", "--tooleval-concurrency", "4", *options))
    assert len(recorded) == 10
    assert len(set(recorded.values())) == 10
    replayed = suite.result("--tooleval-replay", *options, *workers)
    assert answers(replayed) == recorded
    more = suite.result("--tooleval-record", "--tooleval-replay", *options[:2], "--tooleval-trials", "6")
    assert {key: answer for key, answer in answers(more).items() if key[1] < 6} == recorded
