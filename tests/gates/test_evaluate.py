from __future__ import annotations

import time

import pytest

from pytest_tooleval.gates.evaluate import GateResult, evaluate_gates
from pytest_tooleval.gates.plan import NO_SEMANTIC_LEG, PlannedGate
from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.measures.measurement import Measurement

COMPARATORS = {
    "accuracy": "min",
    "passRate": "min",
    "mustPass": "min",
    "redundant": "max",
    "errors": "max",
    "tokens": "max",
}


def planned(
    metric: str,
    threshold: float,
    cases: int,
    selected: int | None = None,
    *,
    skipped: int = 0,
    scope: str = "overall",
    ids: tuple[str, ...] = (),
    target: str = "m",
    broken: bool = False,
) -> PlannedGate:
    gate = Gate("tool_use", scope, metric, COMPARATORS[metric], threshold, "evals", "evals/thresholds.json", 1, ids)
    return PlannedGate(gate, target, cases, cases if selected is None else selected, skipped, broken)


def measured(
    case_id: str, verdict: str = "passed", *, trial: int = 1, target: str = "m", tags=(), deferred=False, **record
) -> Measurement:
    fields = {
        "pass": verdict == "passed",
        "accuracy": float(verdict == "passed"),
        "calls": 1,
        "redundant": 0,
        "errors": 0,
        "tokens": 10,
        "latencySeconds": 0.1,
    }
    if verdict in {"error", "skipped"}:
        fields |= {"pass": None, "accuracy": None}
    return Measurement(
        "tool_use",
        f"n::{case_id}",
        "evals",
        "f",
        0,
        case_id,
        target,
        trial,
        tags,
        verdict,
        deferred=deferred,
        record=fields | record,
    )


def many(**counts: int) -> list[Measurement]:
    return [measured(f"{verdict}-{n}", verdict) for verdict, count in counts.items() for n in range(count)]


def evaluate(gate: PlannedGate, measurements: list[Measurement], min_measured: float = 1.0) -> GateResult:
    (result,) = evaluate_gates([gate], iter(measurements), min_measured)
    return result


def state(result: GateResult) -> str:
    return "passed" if result.passed else "skipped" if result.skipped else "failed"


@pytest.mark.parametrize(
    ("metric", "threshold", "record", "kept"),
    [
        ("passRate", 0.5, {}, True),
        ("passRate", 0.51, {}, False),
        ("accuracy", 0.5, {}, True),
        ("accuracy", 0.6, {}, False),
        ("redundant", 4, {"redundant": 2}, True),
        ("redundant", 3.9, {"redundant": 2}, False),
        ("errors", 0, {"errors": 0}, True),
        ("errors", 0, {"errors": 1}, False),
        ("tokens", 20, {"tokens": 10}, True),
        ("tokens", 19, {"tokens": 10}, False),
    ],
)
def test_a_threshold_includes_its_bound(metric, threshold, record, kept):
    result = evaluate(planned(metric, threshold, 2), [measured("a", **record), measured("b", "missed", **record)])
    assert (state(result), result.failed) == (("passed", False) if kept else ("failed", True))


@pytest.mark.parametrize(
    ("metric", "threshold", "actual", "kept"),
    [
        ("accuracy", 0.3, 0.1 + 0.2, True),
        ("accuracy", 0.1 + 0.2, 0.3, True),
        ("accuracy", 0.8, 0.7999, False),
        ("accuracy", 0.8, 0.79999999, False),
        ("accuracy", 0.0, 0.0, True),
        ("errors", 0.3, 0.1 + 0.2, True),
        ("errors", 0.3, 0.30001, False),
        ("tokens", 1_000_000_000, 1_000_000_000, True),
        ("tokens", 1_000_000_000, 1_000_000_001, False),
        ("accuracy", 0.8, float("nan"), False),
        ("accuracy", 0.0, float("nan"), False),
        ("errors", 5, float("nan"), False),
        ("tokens", 5, float("inf"), False),
    ],
)
def test_the_noise_of_floating_point_is_tolerated_and_rounding_is_not(metric, threshold, actual, kept):
    assert evaluate(planned(metric, threshold, 1), [measured("a", **{metric: actual})]).passed is kept


@pytest.mark.parametrize(
    ("gate", "measurements", "detail"),
    [
        (
            planned("passRate", 0.8, 3),
            many(passed=2, missed=1),
            "passRate is 0.666667, expected at least 0.8; missed: missed-0",
        ),
        (planned("errors", 0, 1), [measured("a", errors=3)], "errors is 3, expected at most 0"),
        (
            planned("tokens", 1_200_000, 1),
            [measured("a", tokens=1_234_567)],
            "tokens is 1234567, expected at most 1200000",
        ),
        (
            planned("accuracy", 0.8, 1),
            [measured("a", accuracy=0.79999999)],
            "accuracy is 0.79999999, expected at least 0.8",
        ),
        (
            planned("accuracy", 0.9, 3),
            [measured("a", "missed", accuracy=0.0), measured("b", "missed", accuracy=1.0), measured("c")],
            "accuracy is 0.666667, expected at least 0.9; missed: a",
        ),
        (
            planned("passRate", 1, 1),
            [measured("a", "missed", trial=1), measured("a", "missed", trial=2)],
            "passRate is 0, expected at least 1; missed: a",
        ),
    ],
)
def test_a_gate_that_fails_says_what_missed(gate, measurements, detail):
    assert evaluate(gate, measurements).detail == detail


def test_a_gate_that_is_kept_has_its_number_and_nothing_to_say():
    assert evaluate(planned("passRate", 0.5, 2), many(passed=1, missed=1)) == GateResult(
        planned("passRate", 0.5, 2), 0.5, passed=True
    )


@pytest.mark.parametrize(
    ("gate", "detail"),
    [
        (planned("passRate", 0.0, 0), "no cases: none of evals is in the scope 'overall'"),
        (planned("errors", 9, 0, scope="smoke"), "no cases: none of evals is in the scope 'smoke'"),
        (planned("mustPass", 1, 0, ids=("a", "b")), "no cases: there is none with the id a, b"),
    ],
)
@pytest.mark.parametrize("min_measured", [0.0, 1.0])
def test_a_scope_without_cases_fails(gate, detail, min_measured):
    result = evaluate(gate, [], min_measured)
    assert (result.failed, result.actual, result.detail) == (True, None, detail)


def test_a_partial_scope_is_not_evaluated():
    result = evaluate(planned("passRate", 1.0, 10, 3), many(passed=2, missed=1))
    assert (state(result), result.skipped) == ("skipped", "not evaluated: 3 of 10 cases selected")


def test_a_scope_with_skipped_cases_is_not_evaluated():
    result = evaluate(planned("passRate", 0.1, 4), many(passed=2, skipped=2))
    assert (state(result), result.skipped) == ("skipped", "not evaluated: 2 of 4 cases skipped")


@pytest.mark.parametrize("cases", [0, 5])
def test_a_corpus_with_files_that_could_not_be_loaded_is_not_evaluated(cases):
    result = evaluate(planned("passRate", 0.1, cases, broken=True), many(passed=cases))
    assert (state(result), result.skipped) == ("skipped", "not evaluated: files of the corpus could not be loaded")


def test_misses_that_were_left_to_a_gate_are_not_lost_when_it_cannot_be_evaluated():
    measurements = [measured("a", "missed", trial=t, deferred=True) for t in (1, 2)] + [measured("b", "skipped")]
    result = evaluate(planned("passRate", 0.0, 2), measurements)

    assert (state(result), result.detail) == ("failed", "not evaluated: 1 of 2 cases skipped, and a missed")


def test_deferred_misses_of_a_partial_run_leave_the_gate_skipped():
    result = evaluate(planned("passRate", 1.0, 3, 1), [measured("a", "missed", deferred=True)])
    assert (state(result), result.skipped) == ("skipped", "not evaluated: 1 of 3 cases selected")


@pytest.mark.parametrize(
    ("passed", "errored", "min_measured", "outcome"),
    [
        (7, 3, 1.0, "not measured: 7 of 10 cases measured"),
        (7, 3, 0.71, "not measured: 7 of 10 cases measured"),
        (7, 3, 0.7, "passed"),
        (7, 3, 0.1 + 0.2 + 0.4, "passed"),
        (10, 0, 1.0, "passed"),
        (0, 10, 1.0, "not measured: 0 of 10 cases measured"),
        (0, 10, 0.0, "no data: no case of the scope has a value for passRate"),
    ],
)
def test_errored_cases_count_as_not_measured(passed, errored, min_measured, outcome):
    result = evaluate(planned("passRate", 1.0, 10), many(passed=passed, error=errored), min_measured)
    assert (result.detail or state(result)) == outcome
    assert not result.skipped


def test_an_interrupted_run_counts_what_never_ended_as_not_measured():
    result = evaluate(planned("passRate", 0.5, 10), many(passed=4))
    assert result.detail == "not measured: 4 of 10 cases measured"


def test_rates_are_over_the_measured_cases():
    result = evaluate(planned("passRate", 0.75, 10), many(passed=6, missed=2, error=2), 0.8)
    assert (result.passed, result.actual) == (True, 0.75)


@pytest.mark.parametrize(
    ("metric", "record", "target", "expected"),
    [
        ("accuracy", {"accuracy": None}, "m", "failed: no data: no case of the scope has a value for accuracy"),
        ("tokens", {"tokens": None}, "m", "failed: no data: no case of the scope has a value for tokens"),
        ("tokens", {"tokens": None}, "mock", "skipped: not evaluated: the provider mock uses no tokens"),
    ],
)
def test_a_metric_without_data(metric, record, target, expected):
    result = evaluate(planned(metric, 0, 1, target=target), [measured("a", target=target, **record)])
    assert (result.actual, f"{state(result)}: {result.detail or result.skipped}") == (None, expected)


@pytest.mark.parametrize(
    ("measurements", "actual", "detail"),
    [
        ([measured("a"), measured("b")], 2, ""),
        ([measured("a"), measured("b", "missed")], 1, "mustPass is 1, expected at least 2; not passed: b"),
        (
            [measured("a", "missed"), measured("b", "missed")],
            0,
            "mustPass is 0, expected at least 2; not passed: a, b",
        ),
        (
            [measured("a"), measured("b", trial=1), measured("b", "missed", trial=2)],
            1,
            "mustPass is 1, expected at least 2; not passed: b",
        ),
        ([measured("a"), measured("b", trial=1), measured("b", "error", trial=2)], 2, ""),
        ([measured("a"), measured("b", "error")], 1, "mustPass is 1, expected at least 2; not passed: b"),
    ],
)
def test_cases_that_must_pass(measurements, actual, detail):
    gate = planned("mustPass", 2, 2, ids=("a", "b"))
    result = evaluate(gate, [*measurements, measured("other", "missed")], min_measured=0.5)

    assert (result.actual, result.detail, result.passed) == (actual, detail, not detail)


def test_must_pass_with_an_errored_case_is_not_measured():
    gate = planned("mustPass", 2, 2, ids=("a", "b"))
    assert evaluate(gate, [measured("a"), measured("b", "error")]).detail == "not measured: 1 of 2 cases measured"


def test_gates_see_only_their_own_scope():
    measurements = [
        measured("a", tags=("smoke",)),
        measured("b", "missed"),
        measured("a", "missed", target="n", tags=("smoke",)),
        measured("b", "missed", target="n"),
    ]
    gates = [
        planned("passRate", 1, 1, scope="smoke"),
        planned("passRate", 1, 2),
        planned("passRate", 0, 1, scope="smoke", target="n"),
    ]

    assert [result.actual for result in evaluate_gates(gates, measurements, 1.0)] == [1.0, 0.5, 0.0]


def test_trials_are_averaged_per_case_before_the_threshold():
    measurements = [measured("a", "missed", trial=t) for t in range(1, 10)] + [measured("b")]
    assert evaluate(planned("passRate", 0.5, 2), measurements).passed


def gold_gate(
    family: str,
    metric: str,
    threshold: float,
    cases: int,
    *,
    scope: str = "overall",
    comparator: str = "min",
    **keys: object,
) -> PlannedGate:
    gate = Gate(family, scope, metric, comparator, threshold, "evals", "evals/thresholds.json", 1)
    selected = keys.pop("selected", cases)
    return PlannedGate(gate, "lexical", cases, selected, 0, labelled=False, **keys)


def row(
    row_id: str, category: str = "lexical", verdict: str = "passed", *, deferred: bool = False, **record
) -> Measurement:
    fields = {"category": category, "rank": 1, "decision": "use", "wrongServer": None, "pass": verdict == "passed"}
    return Measurement(
        "discovery",
        f"n::{row_id}",
        "evals",
        "f",
        0,
        row_id,
        "lexical",
        tags=(category,),
        verdict=verdict,
        deferred=deferred,
        record=fields | record if verdict in {"passed", "missed"} else {},
    )


ROWS = [
    row("a"),
    row("b", verdict="missed", rank=2),
    row("c", "wrong_server", "missed", rank=4, wrongServer=True),
    row("d", "no_match", rank=None, decision="no_good_match"),
    row("e", "no_match", "missed", rank=None),
]


@pytest.mark.parametrize(
    ("gate", "actual", "passed"),
    [
        (gold_gate("discovery", "top1", 1 / 3, 5), 1 / 3, True),
        (gold_gate("discovery", "top1", 0.34, 5), 1 / 3, False),
        (gold_gate("discovery", "top3", 2 / 3, 5), 2 / 3, True),
        (gold_gate("discovery", "mrr", 0.58, 5), (1 + 1 / 2 + 1 / 4) / 3, True),
        (gold_gate("discovery", "mrr", 0.59, 5), (1 + 1 / 2 + 1 / 4) / 3, False),
        (gold_gate("discovery", "top1", 0.5, 2, scope="lexical"), 0.5, True),
        (gold_gate("discovery", "wrongServerRate", 0, 1, scope="wrong_server", comparator="max"), 1, False),
        (gold_gate("discovery", "wrongServerRate", 1, 5, comparator="max"), 1, True),
        (gold_gate("discovery", "noMatchCorrectness", 0.5, 2, scope="no_match"), 0.5, True),
    ],
)
def test_gates_over_discovery(gate, actual, passed):
    result = evaluate(gate, ROWS)
    assert (result.actual, result.passed) == (pytest.approx(actual), passed)


def test_a_metric_that_no_row_of_the_scope_has_fails_the_gate():
    gate = gold_gate("discovery", "wrongServerRate", 1, 2, scope="lexical", comparator="max")
    assert evaluate(gate, ROWS).detail == "no data: no case of the scope has a value for wrongServerRate"


def test_an_errored_row_is_left_out_of_the_rate_and_counts_as_not_measured():
    rows = [*ROWS, row("f", verdict="error")]
    gate = gold_gate("discovery", "top1", 0.5, 3, scope="lexical")

    assert evaluate(gate, rows).detail == "not measured: 2 of 3 cases measured"
    assert evaluate(gate, rows, 0.6).actual == 0.5


def test_a_scope_that_is_only_tracked_gives_no_result():
    assert evaluate_gates([gold_gate("discovery", "", 0, 5)], ROWS, 1.0) == []


@pytest.mark.parametrize("selected", [2, 1])
def test_a_gate_whose_leg_did_not_run_is_skipped_whatever_waits_for_it(selected):
    gate = gold_gate("discovery", "top1", 1, 2, scope="lexical", missing_leg=NO_SEMANTIC_LEG, selected=selected)
    result = evaluate(gate, [row("a"), row("b", verdict="missed", deferred=True)])
    assert (state(result), result.skipped) == ("skipped", "semantic leg did not run")


def test_a_gate_over_no_row_fails_even_where_its_leg_did_not_run():
    gate = gold_gate("discovery", "top1", 0, 0, scope="semantic", missing_leg=NO_SEMANTIC_LEG)
    assert evaluate(gate, ROWS).detail == "no cases: none of evals is in the scope 'semantic'"


def test_a_long_list_of_misses_is_cut():
    rows = [row(f"m{number}", verdict="missed", rank=None) for number in range(30)]
    named = ", ".join(f"m{number}" for number in range(20))
    detail = evaluate(gold_gate("discovery", "top1", 0.5, 30), rows).detail
    assert detail == f"top1 is 0, expected at least 0.5; missed: {named} and 10 more"


def test_many_gates_over_many_cases_take_time_in_proportion():
    measurements = [measured(f"c{n}", tags=(f"tag{n % 500}",)) for n in range(10_000)]
    gates = [planned("passRate", 1, 20, scope=f"tag{n}") for n in range(500)]
    gates.append(planned("mustPass", 10_000, 10_000, ids=tuple(m.id for m in measurements)))
    started = time.process_time()

    results = evaluate_gates(gates, measurements, 1.0)

    assert all(result.passed for result in results)
    assert time.process_time() - started < 5
