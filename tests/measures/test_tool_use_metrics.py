from __future__ import annotations

import pytest

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_use import ToolUseTotals, count_errors, redundant_calls, total
from pytest_tooleval.transcript import Run, ToolCall, TraceEntry


def entry(name: str, arguments: dict | None, raw: str = "", outcome: str = "ok") -> TraceEntry:
    return TraceEntry(1, ToolCall("i", name, arguments, raw), outcome, "")


@pytest.mark.parametrize(
    ("trace", "count"),
    [
        ([], 0),
        ([entry("a", {"n": 12}), entry("a", {"n": 12.0})], 1),
        ([entry("a", {"n": 1}), entry("a", {"n": True})], 0),
        ([entry("a", {"n": 1}), entry("a", {"n": "1"})], 0),
        ([entry("a", {"x": 1, "y": 2}), entry("a", {"y": 2, "x": 1})], 1),
        ([entry("a", {"l": [1, 2]}), entry("a", {"l": [2, 1]})], 0),
        ([entry("a", {}), entry("b", {})], 0),
        ([entry("a", {}), entry("b", {}), entry("a", {}), entry("a", {})], 2),
        ([entry("a", None, "{oops"), entry("a", None, "{oops")], 1),
        ([entry("a", None, "{oops"), entry("a", None, "{oop")], 0),
        ([entry("a", None, "{}"), entry("a", {})], 0),
        ([entry("a", {}, outcome="error"), entry("a", {}, outcome="ok")], 1),
    ],
)
def test_redundant_calls_repeat_name_and_arguments(trace, count):
    assert redundant_calls(trace) == count


@pytest.mark.parametrize(
    ("status", "outcomes", "count"),
    [
        ("ok", [], 0),
        ("ok", ["ok", "error", "denied", "unknown_tool", "invalid_arguments"], 4),
        ("truncated", ["ok"], 0),
        ("error", ["ok", "error"], 2),
        ("error", [], 1),
    ],
)
def test_errors_are_tool_results_that_are_errors_and_the_infrastructures_own(status, outcomes, count):
    assert count_errors(Run(status, trace=tuple(entry("a", {}, outcome=outcome) for outcome in outcomes))) == count


def measured(
    case_id: str, trial: int = 1, corpus: str = "evals", verdict: str | None = None, **record
) -> Measurement:
    fields = {
        "pass": True,
        "accuracy": 1.0,
        "calls": 1,
        "redundant": 0,
        "errors": 0,
        "tokens": 10,
        "latencySeconds": 0.5,
    }
    fields |= record
    verdict = verdict or ("passed" if fields["pass"] else "missed")
    return Measurement("tool_use", "n", corpus, "f", 0, case_id, "m", trial, verdict=verdict, record=fields)


def unmeasured(case_id: str, verdict: str = "error", trial: int = 1) -> Measurement:
    nothing = {
        "pass": None,
        "accuracy": None,
        "calls": 3,
        "redundant": 1,
        "errors": 1,
        "tokens": 99,
        "latencySeconds": 9.0,
    }
    return measured(case_id, trial, verdict=verdict, **nothing)


def test_totals_of_nothing_are_unknown_and_not_zero():
    assert total([]) == ToolUseTotals(0, 0, None, None, None, None, None, None, None)


def test_totals_of_cases():
    totals = total(
        [
            measured("a", calls=2, redundant=1),
            measured("b", **{"pass": False}, accuracy=0.0, errors=2, tokens=20),
        ]
    )
    assert totals == ToolUseTotals(2, 2, 0.5, 0.5, 3.0, 1.0, 2.0, 30.0, 1.0)


@pytest.mark.parametrize("verdict", ["error", "skipped"])
def test_what_was_not_measured_is_left_out_of_every_number(verdict):
    totals = total([measured("a"), measured("b", **{"pass": False}, accuracy=0.0), unmeasured("c", verdict)])
    assert totals == ToolUseTotals(3, 2, 0.5, 0.5, 2.0, 0.0, 0.0, 20.0, 1.0)


def test_nothing_measured_at_all():
    assert total([unmeasured("a"), unmeasured("b", "skipped")]) == ToolUseTotals(2, 0, *[None] * 7)


def test_trials_are_averaged_per_case_first():
    trials = [
        measured("often", n, **{"pass": n == 1}, accuracy=float(n == 1), calls=n, tokens=30) for n in (1, 2, 3, 4)
    ]
    totals = total([*trials, measured("once", calls=1, tokens=10)])

    assert (totals.n, totals.measured) == (2, 2)
    assert totals.pass_rate == (0.25 + 1) / 2
    assert totals.accuracy == (0.25 + 1) / 2
    assert totals.calls == 2.5 + 1
    assert totals.tokens == 30 + 10


def test_trials_that_errored_are_left_out_of_their_case():
    totals = total([measured("a", 1), unmeasured("a", trial=2), measured("a", 3, **{"pass": False})])
    assert (totals.n, totals.measured, totals.pass_rate, totals.calls) == (1, 1, 0.5, 1.0)


def test_accuracy_is_over_the_cases_that_expect_a_sequence():
    totals = total([measured("a", accuracy=None), measured("b", accuracy=0.0), measured("c", accuracy=None)])
    assert totals.accuracy == 0.0
    assert total([measured("a", accuracy=None)]).accuracy is None


def test_tokens_are_unknown_when_one_run_does_not_say():
    totals = total([measured("a", tokens=10), measured("b", tokens=None)])
    assert (totals.tokens, totals.calls) == (None, 2.0)
    assert total([measured("a", 1, tokens=10), measured("a", 2, tokens=None)]).tokens is None


def test_an_id_of_two_corpora_is_two_cases():
    assert total([measured("a", corpus="one"), measured("a", corpus="two")]).n == 2
