"""Everything that a finished run says, in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_tooleval.gates.evaluate import GateResult
from pytest_tooleval.gates.plan import PlannedGate
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_use import ToolUseTotals, total
from pytest_tooleval.reports.whole_run import WholeRun


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """A run's measurements and gates.

    Attributes:
        measurements: one for each item that ended, sorted by place, target and trial.
        gates: what became of each gate.
        targets: the names of the models in the order of the options.
        selected: items that were to be run.
        notes: what a reader should know of the cases themselves.
        interrupted: whether the run was ended from outside.
        gold_targets: the names of the searches and brokers, likewise in order.
        left_out: what of the suites the run did not cover, in words; empty when it covered everything.
        provenance: `corpusVersion`, `model`, `semanticRan`, `tokenEstimator`, where gold sets ran.
        planned: every gate as it was planned, those included that demand nothing or could not be evaluated.
        whole: the run that this one may be a part of, or None when nobody asked.
        not_whole: why parts that were put together do not make up their run, else empty.

    """

    measurements: tuple[Measurement, ...]
    gates: tuple[GateResult, ...] = ()
    targets: tuple[str, ...] = ()
    selected: int = 0
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    gold_targets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    planned: tuple[PlannedGate, ...] = ()
    whole: WholeRun | None = None
    not_whole: str = ""

    def of_family(self, family: str) -> list[Measurement]:
        """Return the measurements of one family."""
        return [measurement for measurement in self.measurements if measurement.family == family]

    def totals(self) -> dict[str, ToolUseTotals]:
        """Return the metrics of tool use by target."""
        cases = self.of_family("tool_use")
        return {target: total(case for case in cases if case.target == target) for target in self.targets}

    @property
    def nothing_measured(self) -> str:
        """Why a run with selected items measured nothing, else an empty string."""
        if not self.selected or any(measurement.measured for measurement in self.measurements):
            return ""
        reasons = [f"{count} {reason}" for reason, count in self._unmeasured_reasons().items()]
        return f"nothing measured: {'; '.join(reasons) or 'no item ended'}"

    def _unmeasured_reasons(self) -> Counter[str]:
        return Counter(f"{m.verdict}: {m.reason}" for m in self.measurements if not m.measured)

    def unmeasured(self) -> Iterator[str]:
        """Yield a line for each reason why items were not measured, with their number."""
        for reason, count in self._unmeasured_reasons().items():
            yield f"{_items(count)} {reason}"
        lost = self.selected - len(self.measurements)
        if lost > 0:
            yield f"{_items(lost)} did not end"

    @property
    def passed(self) -> bool:
        """The verdict: gates kept, no miss that no gate decides about, nothing errored, something measured."""
        if self.interrupted or self.nothing_measured or any(gate.failed for gate in self.gates):
            return False
        if len(self.measurements) < self.selected or self.not_whole:
            return False
        return not any(
            m.verdict == "error" or (m.verdict == "missed" and not m.deferred) for m in self.measurements
        )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"
