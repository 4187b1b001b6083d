"""The metrics of tool use: of one run, and of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any

from pytest_tooleval.measures.matching import call_key
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.transcript import Run, TraceEntry


def redundant_calls(trace: Sequence[TraceEntry]) -> int:
    """Return how many calls repeat an earlier one: the same tool with equal arguments."""
    keys = Counter(call_key(entry.call.name, _compared(entry)) for entry in trace)
    return sum(times - 1 for times in keys.values())


def _compared(entry: TraceEntry) -> Any:
    return entry.call.raw_arguments if entry.call.arguments is None else entry.call.arguments


def count_errors(run: Run) -> int:
    """Return the tool results that are errors, and one more when the infrastructure ended the run."""
    return sum(entry.failed for entry in run.trace) + (run.status == "error")


@dataclass(frozen=True, slots=True)
class ToolUseTotals:
    """Metrics over the cases of one target; trials are averaged per case first.

    Attributes:
        n: cases.
        measured: cases of which at least one trial was measured; the other numbers are over these.
        accuracy: mean share of runs whose called names equal an expected sequence, over the cases that expect
            one; None when none does.
        pass_rate: mean share of runs that pass; None when nothing was measured.
        calls: tool calls in all; None when nothing was measured, as for the following.
        redundant: calls that repeat an earlier one of their run.
        errors: tool results that are errors.
        tokens: tokens in all; None when a run does not say.
        seconds: wall time of the runs in all.

    """

    n: int
    measured: int
    accuracy: float | None
    pass_rate: float | None
    calls: float | None
    redundant: float | None
    errors: float | None
    tokens: float | None
    seconds: float | None


def tool_use_metrics(measurements: Iterable[Measurement]) -> dict[str, float | None]:
    """Return the totals by the names that they have in the result file."""
    totals = total(measurements)
    return {
        "accuracy": totals.accuracy,
        "passRate": totals.pass_rate,
        "calls": totals.calls,
        "redundant": totals.redundant,
        "errors": totals.errors,
        "tokens": totals.tokens,
    }


def total(measurements: Iterable[Measurement]) -> ToolUseTotals:
    """Aggregate the measurements of one target."""
    by_case: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in measurements:
        by_case.setdefault((measurement.corpus, measurement.id), []).append(measurement)
    cases = [measured for trials in by_case.values() if (measured := [m for m in trials if m.measured])]
    return ToolUseTotals(
        n=len(by_case),
        measured=len(cases),
        accuracy=_mean(_per_case(cases, "accuracy", skip_null=True)),
        pass_rate=_mean(_per_case(cases, "pass")),
        calls=_sum(_per_case(cases, "calls")),
        redundant=_sum(_per_case(cases, "redundant")),
        errors=_sum(_per_case(cases, "errors")),
        tokens=_sum(_per_case(cases, "tokens")),
        seconds=_sum(_per_case(cases, "latencySeconds")),
    )


def _per_case(cases: Sequence[Sequence[Measurement]], key: str, *, skip_null: bool = False) -> list[float | None]:
    """Return each case's mean over its trials; None where a trial has no value."""
    means: list[float | None] = []
    for trials in cases:
        values = [trial.record.get(key) for trial in trials]
        known = [float(value) for value in values if value is not None]
        if len(known) == len(values):
            means.append(fmean(known))
        elif not skip_null:
            means.append(None)
    return means


def _mean(values: Sequence[float | None]) -> float | None:
    return _reduce(values, fmean)


def _sum(values: Sequence[float | None]) -> float | None:
    return _reduce(values, fsum)


def _reduce(values: Sequence[float | None], function: Callable[[list[float]], float]) -> float | None:
    known = [value for value in values if value is not None]
    return function(known) if known and len(known) == len(values) else None
