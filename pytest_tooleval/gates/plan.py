"""Which gates a run can decide, and which misses it may therefore leave to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.gates.scopes import Scopes
from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.measures.measurement import Measurement


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of a corpus on one target, as a gate sees it before the run.

    Attributes:
        corpus: the case's corpus.
        id: the case.
        tags: its tags.
        target: what it is run on.
        selected: whether every trial of it is to be run.
        skipped: why it is known beforehand that it will not be measured, else empty.

    """

    corpus: str
    id: str
    tags: tuple[str, ...]
    target: str
    selected: bool
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class PlannedGate:
    """A gate on one target, and how much of its scope the run covers.

    Attributes:
        gate: the threshold.
        target: what is measured.
        cases: cases in the scope.
        selected: those of them that are to be run.
        skipped: those that are known beforehand not to be measured.
        broken_files: whether files of the corpus could not be loaded, so that its cases are not all known.

    """

    gate: Gate
    target: str
    cases: int
    selected: int
    skipped: int
    broken_files: bool = False

    @property
    def name(self) -> str:
        """The gate's name with its target."""
        return f"{self.gate.name}[{self.target}]"

    @property
    def whole(self) -> bool:
        """Whether the run covers the whole scope."""
        return self.selected == self.cases and not self.skipped and not self.broken_files

    def judges(self, measurement: Measurement) -> bool:
        """Whether a miss counts in this gate's number, so that the gate can decide about it."""
        gate = self.gate
        if measurement.target != self.target:
            return False
        if not gate.covers(measurement.corpus, measurement.id, measurement.tags):
            return False
        if gate.metric == "accuracy":
            return measurement.record.get("accuracy") == 0
        return gate.metric in {"passRate", "mustPass"}

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {
            "gate": self.gate.to_plain(),
            "target": self.target,
            "cases": self.cases,
            "selected": self.selected,
            "skipped": self.skipped,
            "broken_files": self.broken_files,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> PlannedGate:
        """Rebuild what `to_plain` gave."""
        return cls(**{**plain, "gate": Gate.from_plain(plain["gate"])})


def plan_gates(
    gates: Sequence[Gate],
    cases: Iterable[PlannedCase],
    targets: Sequence[str],
    broken: frozenset[str] = frozenset(),
) -> list[PlannedGate]:
    """Count for each gate and target what the run covers.

    Args:
        gates: the gates of every corpus that was collected.
        cases: every case of these corpora on every target, selected or not.
        targets: the targets' names, in the order in which gates are reported.
        broken: corpora with files that could not be loaded.

    """
    scopes = Scopes(cases)
    return [
        _planned(gate, target, scopes.of(gate, target), gate.corpus in broken)
        for gate in gates
        for target in targets
    ]


def _planned(gate: Gate, target: str, scope: Sequence[PlannedCase], broken_files: bool) -> PlannedGate:
    chosen = [case for case in scope if case.selected]
    skipped = sum(bool(case.skipped) for case in chosen)
    return PlannedGate(gate, target, len(scope), len(chosen), skipped, broken_files)
