"""A planned gate and the run's measurements to a result."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pytest_tooleval.gates.plan import PlannedGate
from pytest_tooleval.gates.scopes import Scopes
from pytest_tooleval.gates.thresholds import REGRESSIONS
from pytest_tooleval.measures.gold import GOLD_METRICS
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_sets import is_scripted
from pytest_tooleval.measures.tool_use import tool_use_metrics

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Regressed:
    """How a corpus fares against the baseline.

    Attributes:
        compared: how many of its cases stand in both.
        ids: those that passed in the baseline and miss now.

    """

    compared: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of one gate on one target.

    Attributes:
        planned: the gate.
        actual: the metric's value, or None without data.
        passed: whether the gate is kept; False when it was skipped.
        skipped: why it was not evaluated, else empty.
        detail: why it failed, in words, else empty.

    """

    planned: PlannedGate
    actual: float | None = None
    passed: bool = False
    skipped: str = ""
    detail: str = ""

    @property
    def summary(self) -> str:
        """The detail without the cases that it names."""
        return self.detail.partition("; ")[0]

    @property
    def failed(self) -> bool:
        """Whether the gate was evaluated and is not kept."""
        return not self.passed and not self.skipped


def evaluate_gates(
    planned: Sequence[PlannedGate],
    measurements: Iterable[Measurement],
    min_measured: float,
    against: Mapping[str, Regressed] | None = None,
) -> list[GateResult]:
    """Evaluate every gate over the measurements of a finished run.

    Args:
        planned: the gates, and how much of their scope was to be run.
        measurements: one for each item that ended.
        min_measured: the least share of a scope that must have been measured; the others errored.
        against: for each corpus how it fares against the baseline, where there is one.

    """
    known = against or {}
    scopes = Scopes(measurements)
    demanding = [gate for gate in planned if not gate.gate.tracked_only]
    return [
        _evaluate(gate, scopes.of(gate.gate, gate.target), min_measured, known.get(gate.gate.corpus, Regressed(0)))
        for gate in demanding
    ]


def _evaluate(
    planned: PlannedGate, scope: Sequence[Measurement], min_measured: float, regressed: Regressed
) -> GateResult:
    if planned.cases == 0 and not planned.broken_files:
        return GateResult(planned, detail=_no_cases(planned))
    skipped = _why_skipped(planned, scope)
    if skipped:
        return _unevaluated(planned, scope, skipped)
    actual = _actual(planned, scope, regressed)
    measured = len({_case(measurement) for measurement in scope if measurement.measured})
    demanded = planned.cases * min_measured
    if measured < demanded and not _close(measured, demanded):
        detail = f"not measured: {measured} of {planned.cases} cases measured"
        return GateResult(planned, actual, detail=detail)
    if actual is None:
        return _without_data(planned)
    passed = _keeps(planned, actual)
    detail = "" if passed else _why_failed(planned, actual, scope, regressed)
    return GateResult(planned, actual, passed, detail=detail)


def _case(measurement: Measurement) -> tuple[str, ...]:
    """Return what the trials of one case on one target have in common."""
    return measurement.family, measurement.file, measurement.id, measurement.target


def _no_cases(planned: PlannedGate) -> str:
    if planned.gate.ids:
        return f"no cases: there is none with the id {', '.join(planned.gate.ids)}"
    return f"no cases: none of {planned.gate.corpus} is in the scope {planned.gate.scope!r}"


def _why_skipped(planned: PlannedGate, scope: Sequence[Measurement]) -> str:
    if planned.missing_leg:
        return planned.missing_leg
    if planned.broken_files:
        return "not evaluated: files of the corpus could not be loaded"
    if planned.selected < planned.cases:
        return f"not evaluated: {planned.selected} of {planned.cases} cases selected"
    skipped = len({_case(m) for m in scope if m.verdict == "skipped"})
    if skipped:
        return f"not evaluated: {skipped} of {planned.cases} cases skipped"
    return ""


def _unevaluated(planned: PlannedGate, scope: Sequence[Measurement], reason: str) -> GateResult:
    """Skip the gate, or fail it when misses were left to it that now nobody would count."""
    waiting = dict.fromkeys(m.id for m in scope if m.deferred and planned.judges(m))
    if waiting and planned.whole and not planned.missing_leg:
        return GateResult(planned, detail=f"{reason}, and {_named(waiting)} missed")
    return GateResult(planned, skipped=reason)


def _without_data(planned: PlannedGate) -> GateResult:
    if planned.gate.metric == "tokens" and is_scripted(planned.target):
        return GateResult(planned, skipped="not evaluated: the provider mock uses no tokens")
    if planned.gate.family == REGRESSIONS:
        return GateResult(planned, detail="no data: the baseline holds no case of the corpus on the same target")
    return GateResult(planned, detail=f"no data: no case of the scope has a value for {planned.gate.metric}")


def _actual(planned: PlannedGate, scope: Sequence[Measurement], regressed: Regressed) -> float | None:
    gate = planned.gate
    if gate.family == REGRESSIONS:
        return float(len(regressed.ids)) if regressed.compared else None
    if gate.metric == "mustPass":
        return float(len(gate.ids) - len(_not_passed(planned, scope)))
    metrics = tool_use_metrics if gate.family == "tool_use" else GOLD_METRICS[gate.family]
    return metrics(scope)[gate.metric]


def _not_passed(planned: PlannedGate, scope: Sequence[Measurement]) -> list[str]:
    """Return the ids that must pass and were not measured, or did not pass each time that they were."""
    missed = {measurement.id for measurement in scope if measurement.verdict == "missed"}
    passed = {measurement.id for measurement in scope if measurement.verdict == "passed"}
    return [case_id for case_id in planned.gate.ids if case_id in missed or case_id not in passed]


def _keeps(planned: PlannedGate, actual: float) -> bool:
    threshold = planned.gate.threshold
    if _close(actual, threshold):
        return True
    return actual >= threshold if planned.gate.comparator == "min" else actual <= threshold


def _close(left: float, right: float) -> bool:
    """Whether two numbers differ by no more than the noise of floating-point sums."""
    return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)


def _why_failed(planned: PlannedGate, actual: float, scope: Sequence[Measurement], regressed: Regressed) -> str:
    bound = "at least" if planned.gate.comparator == "min" else "at most"
    number, threshold = shown_apart(actual, planned.gate.threshold)
    text = f"{planned.gate.metric} is {number}, expected {bound} {threshold}"
    if planned.gate.metric == "mustPass":
        return f"{text}; not passed: {_named(_not_passed(planned, scope))}"
    if planned.gate.family == REGRESSIONS:
        return f"{text}; regressed: {_named(regressed.ids)}"
    missed = dict.fromkeys(m.id for m in scope if m.verdict == "missed" and planned.judges(m))
    return f"{text}; missed: {_named(missed)}" if missed else text


def _named(ids: Collection[str]) -> str:
    """Return ids as a text, of many the first."""
    more = len(ids) - MOST_NAMED
    return ", ".join(islice(ids, MOST_NAMED)) + (f" and {more} more" if more > 0 else "")


def shown_apart(left: float, right: float) -> tuple[str, str]:
    """Return two numbers as short as they are still told apart; whole ones with all their digits."""
    short = _short(left), _short(right)
    return short if short[0] != short[1] or left == right else (repr(left), repr(right))


def _short(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:.6g}"
