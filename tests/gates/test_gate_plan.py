from __future__ import annotations

import json
import time

import pytest

from pytest_tooleval.gates.plan import NO_SEMANTIC_LEG, PlannedCase, PlannedGate, plan_gates
from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.measures.measurement import Measurement

ON_M = {"tool_use": ["m"]}


def gate(
    scope: str = "overall", metric: str = "passRate", corpus: str = "evals", ids: tuple[str, ...] = ()
) -> Gate:
    return Gate("tool_use", scope, metric, "min", 1, corpus, f"{corpus}/thresholds.json", 1, ids)


def case(
    case_id: str, *tags: str, target: str = "m", selected: bool = True, skipped: str = "", corpus: str = "evals"
) -> PlannedCase:
    return PlannedCase("tool_use", corpus, case_id, tags, target, selected, skipped)


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
        [gate(), gate("smoke"), gate("nobody"), gate(metric="mustPass", ids=("b", "c"))],
        cases,
        {"tool_use": ["n", "m"]},
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
    assert counts(plan_gates([gate("smoke")], [case("a", "smoke", "smoke")], ON_M))[0][1] == 1


def test_a_corpus_with_files_that_could_not_be_loaded_is_not_whole():
    cases = [case("a"), case("b", corpus="evals/sub")]
    planned = plan_gates([gate(), gate(corpus="evals/sub")], cases, ON_M, frozenset({"evals/sub"}))

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


def gold_gate(
    metric: str = "top1", scope: str = "overall", family: str = "discovery", *, semantic: bool = False
) -> Gate:
    return Gate(
        family, scope, metric, "min", 1, "evals", "evals/thresholds.json", 1, requires_semantic_leg=semantic
    )


def row(row_id: str, *tags: str, family: str = "discovery", target: str = "lexical") -> PlannedCase:
    return PlannedCase(family, "evals", row_id, tags, target, selected=True)


def test_a_gold_gate_names_its_target_only_where_there_are_several():
    gates = [gold_gate(), gold_gate("firstCallSuccess", family="invocation"), gate()]
    cases = [row("a"), row("a", family="invocation", target="broker"), case("a")]
    families = {"invocation": ["broker"], "tool_use": ["m"]}

    one = plan_gates(gates, cases, {"discovery": ["lexical"], **families})
    two = plan_gates(gates, cases, {"discovery": ["lexical", "mine:rank"], **families})

    assert [each.name for each in one] == [
        "discovery.overall.top1",
        "invocation.firstCallSuccess",
        "tool_use.overall.passRate[m]",
    ]
    assert [(each.name, each.cases) for each in two] == [
        ("discovery.overall.top1[lexical]", 1),
        ("discovery.overall.top1[mine:rank]", 0),
        ("invocation.firstCallSuccess", 1),
        ("tool_use.overall.passRate[m]", 1),
    ]


def test_a_gate_is_not_planned_for_a_family_without_targets():
    assert plan_gates([gold_gate()], [row("a")], {"tool_use": ["m"]}) == []


def test_a_gate_that_wants_meaning_is_known_to_miss_its_leg():
    gates = [gold_gate(semantic=True), gold_gate()]
    targets = {"discovery": ["lexical", "hybrid"]}
    planned = plan_gates(gates, [row("a")], targets, without_semantic_leg=frozenset({"lexical"}))

    assert [each.missing_leg for each in planned] == [NO_SEMANTIC_LEG, "", "", ""]


@pytest.mark.parametrize(
    ("governing", "measurement", "judged"),
    [
        (gold_gate("top1"), {"tags": ("lexical",)}, True),
        (gold_gate("wrongServerRate"), {"tags": ("lexical",)}, True),
        (gold_gate(""), {"tags": ("lexical",)}, True),
        (gold_gate("", "lexical"), {"tags": ("lexical",)}, True),
        (gold_gate("", "semantic"), {"tags": ("lexical",)}, False),
        (gold_gate("top1", semantic=True), {"tags": ("lexical",)}, True),
        (gold_gate("top1"), {"target": "other"}, False),
        (gold_gate("top1"), {"corpus": "evals/sub"}, False),
        (gold_gate("top1"), {"family": "tool_use"}, False),
        (gold_gate("parityRate", family="ergonomics"), {"family": "ergonomics", "target": "lexical"}, True),
        (gate(), {"family": "discovery", "target": "m"}, False),
    ],
)
def test_a_missed_row_is_left_to_whatever_looks_at_its_scope(governing, measurement, judged):
    fields = {"family": "discovery", "corpus": "evals", "target": "lexical", **measurement}
    missed_row = Measurement(nodeid="n", file="f", index=0, id="a", verdict="missed", **fields)
    assert PlannedGate(governing, "m" if governing == gate() else "lexical", 1, 1, 0).judges(missed_row) is judged


def test_a_planned_gate_survives_a_process_boundary():
    sent = PlannedGate(
        gate(metric="mustPass", ids=("a", "b")), "m", 3, 2, 1, broken_files=True, labelled=False, missing_leg="x"
    )
    assert PlannedGate.from_plain(json.loads(json.dumps(sent.to_plain()))) == sent


def test_many_gates_over_many_cases_take_time_in_proportion():
    cases = [case(f"c{n}", f"tag{n % 500}") for n in range(20_000)]
    gates = [gate(f"tag{n}", metric) for n in range(500) for metric in ("passRate", "accuracy")]
    gates.append(gate(metric="mustPass", ids=tuple(each.id for each in cases)))
    started = time.process_time()

    planned = plan_gates(gates, cases, ON_M)

    assert {each.cases for each in planned[:-1]} == {40}
    assert planned[-1].cases == 20_000
    assert time.process_time() - started < 2
