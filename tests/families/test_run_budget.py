from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.families.budget import Budget, check_prices
from pytest_tooleval.measures.cost import Billing
from pytest_tooleval.measures.outcome import CaseOutcome


def outcome(tokens: int | None = 100, cost: float | None = 0.5, **record: Any) -> CaseOutcome:
    return CaseOutcome(passed=True, record={"tokens": tokens, "cost": cost, "turns": 1, "attempts": 1, **record})


def spend(budget: Budget, target: str = "m", **fields: Any) -> CaseOutcome:
    return budget.measured(target, lambda: outcome(**fields))


def test_cases_are_begun_until_the_tokens_are_spent():
    budget = Budget(max_tokens=10_000)
    began = 0
    for _ in range(10):
        measured = spend(budget, tokens=3_411)
        began += not measured.skipped
    assert began == 3
    assert measured == CaseOutcome(passed=False, skipped="the budget of 10000 tokens is spent: 10233 used")


def test_cases_are_begun_until_the_dollars_are_spent():
    budget = Budget(max_cost=1.2)
    outcomes = [spend(budget, cost=0.5) for _ in range(4)]
    assert [measured.skipped for measured in outcomes] == ["", "", "", "the budget of $1.2 is spent: $1.5 used"]


def test_exactly_all_is_all():
    budget = Budget(max_tokens=100)
    assert spend(budget, tokens=100).skipped == ""
    assert spend(budget).skipped == "the budget of 100 tokens is spent: 100 used"


def test_both_limits_hold():
    budget = Budget(max_tokens=1_000, max_cost=1.0)
    spend(budget, tokens=1, cost=2.0)
    assert budget.why_spent("m") == "the budget of $1 is spent: $2 used"


def test_without_limits_everything_is_begun_and_nothing_is_asked_of_a_record():
    budget = Budget()
    assert [budget.measured("m", lambda: CaseOutcome(passed=True)).skipped for _ in range(3)] == ["", "", ""]
    assert spend(budget, tokens=None, cost=None).passed


def test_the_budget_is_that_of_all_targets():
    budget = Budget(max_tokens=150)
    spend(budget, "a", tokens=100)
    spend(budget, "b", tokens=100)
    assert budget.why_spent("a") == budget.why_spent("c") == "the budget of 150 tokens is spent: 200 used"


def test_what_errored_and_what_was_skipped_after_a_reply_is_spent():
    budget = Budget(max_tokens=150)
    measured = outcome(tokens=80)
    budget.measured("m", lambda: CaseOutcome(False, measured.record, error="HTTP 500"))
    budget.measured("m", lambda: CaseOutcome(False, measured.record, skipped="nothing decided"))
    assert budget.why_spent("m") == "the budget of 150 tokens is spent: 160 used"


@pytest.mark.parametrize(
    "fields",
    [
        {"turns": 0, "tokens": None, "cost": None, "attempts": 5},  # requests that failed
        {"turns": 3, "tokens": None, "cost": None, "attempts": 0},  # a script: nothing was sent
        {"turns": 3, "tokens": 500, "cost": 9.0, "attempts": 0},  # replies that were kept from an earlier run
    ],
)
def test_what_was_never_answered_or_sent_spends_nothing(fields):
    budget = Budget(max_tokens=100, max_cost=1.0)
    spend(budget, **fields)
    assert budget.why_spent("m") == ""


def test_a_target_that_does_not_say_what_it_uses_is_not_run_any_further():
    budget = Budget(max_tokens=1_000)
    assert spend(budget, "silent", tokens=None).skipped == ""
    reason = "the budget of 1000 tokens cannot be kept: silent does not say how many it uses"
    assert spend(budget, "silent").skipped == reason
    assert spend(budget, "other").skipped == ""


def test_a_target_whose_runs_have_no_price_is_not_run_any_further():
    budget = Budget(max_cost=5.0)
    spend(budget, "odd", cost=None)
    assert budget.why_spent("odd") == "the budget of $5 cannot be kept: what a run of odd costs is not known"
    assert budget.why_spent("other") == ""


def test_what_nobody_bills_costs_nothing_and_yet_uses_tokens():
    budget = Budget(max_tokens=150, max_cost=1.0, unbilled={"ollama:x"})
    spend(budget, "ollama:x", tokens=100, cost=None)
    assert budget.why_spent("ollama:x") == ""
    spend(budget, "ollama:x", tokens=100, cost=None)
    assert budget.why_spent("ollama:x") == "the budget of 150 tokens is spent: 200 used"


def test_a_limit_that_is_not_set_asks_nothing_of_a_record():
    budget = Budget(max_tokens=1_000)
    spend(budget, cost=None)
    assert budget.why_spent("m") == ""


def test_threads_lose_nothing():
    budget = Budget(max_tokens=10**9)

    def work() -> None:
        for _ in range(200):
            spend(budget, tokens=1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spend(budget, tokens=10**9)
    assert budget.why_spent("m") == f"the budget of 1000000000 tokens is spent: {10**9 + 1600} used"


def test_processes_share_a_budget_through_a_ledger(tmp_path):
    ledger = tmp_path / "spent.jsonl"
    first, second = Budget(max_tokens=250, ledger=ledger), Budget(max_tokens=250, ledger=ledger)
    assert not ledger.exists()
    assert second.why_spent("m") == ""
    for budget in (first, second, first):
        assert spend(budget).skipped == ""
    reason = "the budget of 250 tokens is spent: 300 used"
    assert (first.why_spent("m"), second.why_spent("m")) == (reason, reason)
    assert Budget(max_tokens=250, ledger=ledger).why_spent("m") == reason


def test_a_target_that_does_not_say_is_known_to_every_process(tmp_path):
    ledger = tmp_path / "spent.jsonl"
    spend(Budget(max_tokens=250, ledger=ledger), "silent", tokens=None)
    assert "silent does not say" in Budget(max_tokens=250, ledger=ledger).why_spent("silent")


def _spend_often(ledger: Path) -> None:
    budget = Budget(max_tokens=10**9, ledger=ledger)
    for _ in range(300):
        spend(budget, "m" * 500, tokens=1)


def test_lines_of_several_processes_do_not_mix(tmp_path):
    ledger = tmp_path / "spent.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spend_often, args=(ledger,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert sum(json.loads(line)["tokens"] for line in ledger.read_text().splitlines()) == 600
    assert Budget(max_tokens=600, ledger=ledger).why_spent("m").endswith("600 used")


def test_a_line_that_is_being_written_is_waited_for(tmp_path):
    ledger = tmp_path / "spent.jsonl"
    line = json.dumps({"target": "m", "tokens": 70, "cost": None}) + "\n"
    budget = Budget(max_tokens=100, ledger=ledger)
    ledger.write_text(line + line[:20])
    assert budget.why_spent("m") == ""
    ledger.write_text(line + line)
    assert budget.why_spent("m") == "the budget of 100 tokens is spent: 140 used"


def test_a_ledger_that_cannot_be_kept_ends_the_spending(tmp_path):
    nowhere = Budget(max_tokens=100, ledger=tmp_path / "missing" / "spent.jsonl")
    kept = spend(nowhere, tokens=1)
    assert (kept.passed, kept.skipped) == (True, "")
    assert spend(nowhere).skipped.startswith("the budget cannot be kept: what is spent cannot be noted: ")

    ledger = tmp_path / "spent.jsonl"
    robbed = Budget(max_tokens=100, ledger=ledger)
    spend(robbed, tokens=1)
    assert robbed.why_spent("m") == ""
    ledger.unlink()
    assert robbed.why_spent("m").endswith("spent.jsonl was removed or cut")

    ledger.write_text("nonsense\n")
    assert Budget(max_tokens=100, ledger=ledger).why_spent("m").startswith("the budget cannot be kept: ")


def test_what_nobody_bills_is_told_from_what_has_a_price():
    pytest.importorskip("genai_prices")
    targets = [
        ("openai:gpt-4o", Billing("openai", "gpt-4o")),
        ("ollama:qwen3", Billing("ollama", "qwen3")),
        ("mock", Billing("mock", "")),
    ]
    assert check_prices(targets) == {"ollama:qwen3", "mock"}


def test_a_target_without_a_price_is_refused_by_name():
    pytest.importorskip("genai_prices")
    targets = [
        ("openai:gpt-4o", Billing("openai", "gpt-4o")),
        ("openai:mine", Billing("openai", "mine", "http://localhost:8080/v1")),
        ("lab:x", Billing("lab", "x")),
    ]
    with pytest.raises(ConfigError, match="no price is known for openai:mine, lab:x; limit the tokens"):
        check_prices(targets)


def test_without_the_price_list_the_install_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert check_prices([("mock", Billing("mock", ""))]) == {"mock"}
    with pytest.raises(ConfigError, match=r"pip install 'pytest-tooleval\[prices\]'"):
        check_prices([("openai:gpt-4o", Billing("openai", "gpt-4o"))])
