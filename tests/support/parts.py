"""Runs that were measured in one piece or in parts, made of measurements by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_tooleval.gates.evaluate import evaluate_gates
from pytest_tooleval.gates.plan import PlannedCase, PlannedGate, plan_gates
from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.measures.measurement import Measurement, Verdict
from pytest_tooleval.reports.result_file import document_of
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.whole_run import WholeCorpus, WholeRun

ORIGIN = {"gitCommit": "abc", "host": "h", "versions": {"pytest-tooleval": "1"}}
TIME = "2026-01-02T03:04:05+00:00"
FILE = "evals/fixtures/all.json"


def case(case_id: str, verdict: Verdict = "passed", target: str = "m", trial: int = 1, *tags: str) -> Measurement:
    passed = {"passed": True, "missed": False}.get(verdict)
    record: dict[str, Any] = {
        "status": "ok",
        "pass": passed,
        "accuracy": None if passed is None else float(passed),
        "calls": 2,
        "redundant": 0,
        "errors": 0,
        "tokens": 10 * trial,
        "latencySeconds": 0.5,
    }
    return Measurement(
        family="tool_use",
        nodeid=f"{FILE}::{case_id}[{target}-t{trial}]",
        corpus="evals",
        file=FILE,
        index=int(case_id.strip("abcdefghijklmnopqrstuvwxyz") or 0),
        id=case_id,
        target=target,
        trial=trial,
        tags=tags,
        verdict=verdict,
        reason="" if verdict == "passed" else f"{case_id} is {verdict}",
        record={} if verdict == "skipped" else record,
    )


def gate(metric: str = "passRate", threshold: float = 0.5, scope: str = "overall", **more: Any) -> Gate:
    return Gate("tool_use", scope, metric, "min", threshold, "evals", "evals/thresholds.json", 1, **more)


def whole_run(measurements: Sequence[Measurement], trials: int = 1, **more: Any) -> WholeRun:
    targets = tuple(dict.fromkeys(sorted(m.target for m in measurements)))
    corpora = {"evals": WholeCorpus(len(measurements), "d")}
    return WholeRun(("evals",), corpora, {"tool_use": targets}, trials, options={"seed": 7}, **more)


def planned(
    every: Sequence[Measurement], selected: Iterable[Measurement], gates: Sequence[Gate], whole: WholeRun
) -> list[PlannedGate]:
    """Return the gates as a run plans them that covers a part of the cases."""
    chosen = {m.nodeid for m in selected}
    cases: dict[tuple[str, str], list[Measurement]] = {}
    for m in every:
        cases.setdefault((m.id, m.target), []).append(m)
    known = [
        PlannedCase(
            family="tool_use",
            corpus="evals",
            id=case_id,
            tags=trials[0].tags,
            target=target,
            selected=all(m.nodeid in chosen for m in trials),
            skipped=trials[0].reason if trials[0].verdict == "skipped" else "",
        )
        for (case_id, target), trials in cases.items()
    ]
    return plan_gates(gates, known, {"tool_use": whole.targets["tool_use"]})


def run_document(
    every: Sequence[Measurement],
    selected: Sequence[Measurement],
    gates: Sequence[Gate] = (),
    whole: WholeRun | None = None,
    *,
    defer: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Return the result file of a run of some of the cases, whose gates leave misses to a later evaluation or not."""
    whole = whole or whole_run(every)
    plan = planned(every, selected, gates, whole)
    measured = [
        replace(m, deferred=m.verdict == "missed" and any(g.judges(m) and (g.whole or defer) for g in plan))
        for m in selected
    ]
    targets = tuple(name for name in whole.targets["tool_use"] if any(m.target == name for m in measured))
    positions = {name: position for position, name in enumerate(targets)}
    ordered = tuple(sorted(measured, key=lambda m: m.order(positions)))
    results = tuple(evaluate_gates(plan, ordered, whole.min_measured))
    fields = {"selected": len(selected), "planned": tuple(plan), "whole": whole, **more}
    return document_of(SuiteResult(ordered, results, targets, **fields), TIME, ORIGIN)
