from __future__ import annotations

import json
import time

import pytest

from pytest_tooleval.gates.plan import PlannedCase, PlannedGate, plan_gates
from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.measures.measurement import Measurement


def gate(
    scope: str = "overall", metric: str = "passRate", corpus: str = "evals", ids: tuple[str, ...] = ()
) -> Gate:
    return Gate("tool_use", scope, metric, "min", 1, corpus, f"{corpus}/thresholds.json", 1, ids)


def case(
    case_id: str, *tags: str, target: str = "m", selected: bool = True, skipped: str = "", corpus: str = "evals"
) -> PlannedCase:
    return PlannedCase(corpus, case_id, tags, target, selected, skipped)


def counts(planned: list[PlannedGate]) -> list[tuple[str, int, int, int, bool]]:
    return [(each.name, each.cases, each.selected, each.skipped, each.whole) for each in planned]


def test_gates_are_counted_for_each_target():
    cases = [
        case("a", "smoke"),
        case("b", "smoke", selected=False),
        case("c", skipped="no script"),
        case("d", selected=False, skipped="no script"),
        case("a", "smoke", target="n"),
        case("other", "smoke", corpus="evals/sub"),
    ]
    planned = plan_gates(
        [gate(), gate("smoke"), gate("nobody"), gate(metric="mustPass", ids=("b", "c"))], cases, ["n", "m"]
    )

    assert counts(planned) == [
        ("tool_use.overall.passRate[n]", 1, 1, 0, True),
        ("tool_use.overall.passRate[m]", 4, 2, 1, False),
        ("tool_use.smoke.passRate[n]", 1, 1, 0, True),
        ("tool_use.smoke.passRate[m]", 2, 1, 0, False),
        ("tool_use.nobody.passRate[n]", 0, 0, 0, True),
        ("tool_use.nobody.passRate[m]", 0, 0, 0, True),
        ("tool_use.overall.mustPass[n]", 0, 0, 0, True),
        ("tool_use.overall.mustPass[m]", 2, 1, 1, False),
    ]


def test_a_tag_that_stands_twice_counts_a_case_once():
    assert counts(plan_gates([gate("smoke")], [case("a", "smoke", "smoke")], ["m"]))[0][1] == 1


def test_a_corpus_with_files_that_could_not_be_loaded_is_not_whole():
    cases = [case("a"), case("b", corpus="evals/sub")]
    planned = plan_gates([gate(), gate(corpus="evals/sub")], cases, ["m"], frozenset({"evals/sub"}))

    assert [(each.broken_files, each.whole) for each in planned] == [(False, True), (True, False)]


@pytest.mark.parametrize(
    ("cases", "selected", "skipped", "broken", "whole"),
    [
        (3, 3, 0, False, True),
        (3, 2, 0, False, False),
        (3, 3, 1, False, False),
        (3, 3, 0, True, False),
        (0, 0, 0, False, True),
    ],
)
def test_whether_a_run_covers_the_whole_scope(cases, selected, skipped, broken, whole):
    assert PlannedGate(gate(), "m", cases, selected, skipped, broken).whole is whole


def missed(
    case_id: str = "a",
    target: str = "m",
    corpus: str = "evals",
    accuracy: float | None = 0.0,
    tags: tuple[str, ...] = (),
) -> Measurement:
    return Measurement(
        "tool_use", "n", corpus, "f", 0, case_id, target, tags=tags, verdict="missed", record={"accuracy": accuracy}
    )


@pytest.mark.parametrize(
    ("governing", "measurement", "judged"),
    [
        (gate(), missed(), True),
        (gate(), missed(target="n"), False),
        (gate(), missed(corpus="evals/sub"), False),
        (gate("smoke"), missed(), False),
        (gate("smoke"), missed(tags=("smoke",)), True),
        (gate(metric="accuracy"), missed(accuracy=0.0), True),
        (gate(metric="accuracy"), missed(accuracy=1.0), False),
        (gate(metric="accuracy"), missed(accuracy=None), False),
        (gate(metric="mustPass", ids=("a",)), missed("a"), True),
        (gate(metric="mustPass", ids=("a",)), missed("b"), False),
        (gate(metric="redundant"), missed(), False),
        (gate(metric="errors"), missed(), False),
        (gate(metric="tokens"), missed(), False),
    ],
)
def test_a_miss_is_left_only_to_a_gate_whose_number_it_changes(governing, measurement, judged):
    assert PlannedGate(governing, "m", 1, 1, 0).judges(measurement) is judged


def test_a_planned_gate_survives_a_process_boundary():
    sent = PlannedGate(gate(metric="mustPass", ids=("a", "b")), "m", 3, 2, 1, broken_files=True)
    assert PlannedGate.from_plain(json.loads(json.dumps(sent.to_plain()))) == sent


def test_many_gates_over_many_cases_take_time_in_proportion():
    cases = [case(f"c{n}", f"tag{n % 500}") for n in range(20_000)]
    gates = [gate(f"tag{n}", metric) for n in range(500) for metric in ("passRate", "accuracy")]
    gates.append(gate(metric="mustPass", ids=tuple(each.id for each in cases)))
    started = time.process_time()

    planned = plan_gates(gates, cases, ["m"])

    assert {each.cases for each in planned[:-1]} == {40}
    assert planned[-1].cases == 20_000
    assert time.process_time() - started < 2
