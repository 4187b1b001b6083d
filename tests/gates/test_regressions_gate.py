"""The gate on regressions: one for each corpus, over all families whose cases are compared, and all targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tooleval.gates.evaluate import Regressed, evaluate_gates
from pytest_tooleval.gates.plan import NO_BASELINE, PlannedCase, PlannedGate, plan_gates
from pytest_tooleval.gates.thresholds import Gate, load_thresholds
from pytest_tooleval.measures.measurement import Measurement

GATE = Gate("regressions", "overall", "regressions", "max", 1, "evals", "evals/thresholds.json", 3)
ON = {"tool_use": ["m", "n"], "discovery": ["lexical"]}


def case(
    family: str, case_id: str, target: str, *, corpus: str = "evals", selected: bool = True, skipped: str = ""
):
    return PlannedCase(family, corpus, case_id, (), target, selected, skipped)


def measured(family: str, case_id: str, target: str, verdict: str = "passed", *, deferred: bool = False):
    return Measurement(
        family,
        f"{family}{case_id}{target}",
        "evals",
        family,
        0,
        case_id,
        target,
        verdict=verdict,
        deferred=deferred,
    )


CASES = [
    case("tool_use", "a", "m"),
    case("tool_use", "a", "n"),
    case("discovery", "row", "lexical"),
    case("performance", "performance", "broker", skipped="other processes would be timed too"),
    case("tool_use", "other", "m", corpus="evals/sub"),
]
MEASURED = [measured("tool_use", "a", "m"), measured("tool_use", "a", "n"), measured("discovery", "row", "lexical")]
WHOLE = PlannedGate(GATE, "", 3, 3, 0, labelled=False)


def test_it_stands_at_the_top_of_the_file(tmp_path):
    path = tmp_path / "thresholds.json"
    path.write_text(
        json.dumps({"version": 1, "regressionsMax": 1, "discovery": {"overall": {"top1Min": 1}}}, indent=1)
    )
    gates = load_thresholds(path, Path("evals/thresholds.json"), "evals")
    assert gates[-1] == GATE
    assert [gate.name for gate in gates] == ["discovery.overall.top1", "regressions"]
    assert Gate.from_plain(json.loads(json.dumps(GATE.to_plain()))) == GATE


def test_it_is_planned_once_over_every_compared_case_of_its_corpus():
    assert plan_gates([GATE], CASES, ON, has_baseline=True) == [WHOLE]
    assert WHOLE.name == "regressions"


def test_without_a_baseline_it_is_skipped_whatever_is_selected():
    (planned,) = plan_gates([GATE], [case("tool_use", "a", "m", selected=False)], ON)
    (result,) = evaluate_gates([planned], [], 1.0)
    assert (result.skipped, result.actual, result.passed) == (NO_BASELINE, None, False)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (case("discovery", "row", "lexical", selected=False), "not evaluated: 2 of 3 cases selected"),
        (case("discovery", "row", "lexical", skipped="why"), "not evaluated: 1 of 3 cases skipped"),
    ],
)
def test_it_needs_every_case(changed, reason):
    (planned,) = plan_gates([GATE], [*CASES[:2], changed], ON, has_baseline=True)
    skipped = [measured("discovery", "row", "lexical", "skipped")] if changed.skipped else []
    (result,) = evaluate_gates([planned], [*MEASURED[:2], *skipped], 1.0, {"evals": Regressed(3)})
    assert (result.skipped, result.failed) == (reason, False)


@pytest.mark.parametrize(
    ("against", "actual", "passed", "detail"),
    [
        ({"evals": Regressed(3)}, 0.0, True, ""),
        ({"evals": Regressed(3, ("a",))}, 1.0, True, ""),
        (
            {"evals": Regressed(3, ("a", "row"))},
            2.0,
            False,
            "regressions is 2, expected at most 1; regressed: a, row",
        ),
        (
            {"evals": Regressed(0)},
            None,
            False,
            "no data: the baseline holds no case of the corpus on the same target",
        ),
        (
            {"evals/sub": Regressed(9)},
            None,
            False,
            "no data: the baseline holds no case of the corpus on the same target",
        ),
    ],
)
def test_regressions_are_counted(against, actual, passed, detail):
    (result,) = evaluate_gates([WHOLE], MEASURED, 1.0, against)
    assert (result.actual, result.passed, result.detail, result.skipped) == (actual, passed, detail, "")


def test_an_errored_case_on_one_target_is_not_made_up_for_by_another():
    errored = [measured("tool_use", "a", "m", "error"), *MEASURED[1:]]
    (result,) = evaluate_gates([WHOLE], errored, 1.0, {"evals": Regressed(2)})
    assert (result.passed, result.detail) == (False, "not measured: 2 of 3 cases measured")


def test_it_decides_about_no_miss():
    missed = measured("tool_use", "a", "m", "missed", deferred=True)
    assert not WHOLE.judges(missed)
    assert PlannedGate.from_plain(json.loads(json.dumps(WHOLE.to_plain()))) == WHOLE


def test_a_corpus_without_cases_fails():
    (planned,) = plan_gates([GATE], [], ON, has_baseline=True)
    (result,) = evaluate_gates([planned], [], 1.0, {})
    assert result.detail == "no cases: none of evals is in the scope 'overall'"
