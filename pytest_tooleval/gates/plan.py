"""Which gates a run can decide, and which misses it may therefore leave to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.gates.scopes import Scopes
from pytest_tooleval.gates.thresholds import OVERALL, REGRESSIONS, Gate
from pytest_tooleval.measures.measurement import Measurement

NO_SEMANTIC_LEG = "semantic leg did not run"
NO_BASELINE = "no baseline: give --tooleval-baseline FILE"
_ALL_TARGETS = ("",)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of a corpus on one target, as a gate sees it before the run.

    Attributes:
        family: the case's family.
        corpus: the case's corpus.
        id: the case.
        tags: its tags.
        target: what it is run on.
        selected: whether every trial of it is to be run.
        skipped: why it is known beforehand that it will not be measured, else empty.

    """

    family: str
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
        target: what is measured; empty for a gate over all targets.
        cases: cases in the scope.
        selected: those of them that are to be run.
        skipped: those that are known beforehand not to be measured.
        broken_files: whether files of the corpus could not be loaded, so that its cases are not all known.
        labelled: whether the gate's name needs the target.
        missing_leg: why the gate cannot be evaluated on this target whatever is selected, else empty.

    """

    gate: Gate
    target: str
    cases: int
    selected: int
    skipped: int
    broken_files: bool = False
    labelled: bool = True
    missing_leg: str = ""

    @property
    def name(self) -> str:
        """The gate's name, with its target where there are several to tell apart."""
        return f"{self.gate.name}[{self.target}]" if self.labelled else self.gate.name

    @property
    def whole(self) -> bool:
        """Whether the run covers the whole scope."""
        return self.selected == self.cases and not self.skipped and not self.broken_files

    def judges(self, measurement: Measurement) -> bool:
        """Whether a miss counts in this gate's number, so that the gate can decide about it.

        In gold sets a scope that is tracked, or whose gate is skipped for a leg that did not run, decides too:
        somebody has looked at it and demands nothing.
        """
        gate = self.gate
        if (measurement.family, measurement.corpus, measurement.target) != (gate.family, gate.corpus, self.target):
            return False
        if gate.ids:
            return measurement.id in gate.ids
        if gate.scope != OVERALL and gate.scope not in measurement.tags:
            return False
        if gate.family != "tool_use":
            return True
        return gate.metric == "passRate" or (gate.metric == "accuracy" and measurement.record.get("accuracy") == 0)

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        fields = {field: getattr(self, field) for field in self.__slots__ if field != "gate"}
        return {**fields, "gate": self.gate.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> PlannedGate:
        """Rebuild what `to_plain` gave."""
        return cls(**{**plain, "gate": Gate.from_plain(plain["gate"])})


def plan_gates(
    gates: Sequence[Gate],
    cases: Iterable[PlannedCase],
    targets: Mapping[str, Sequence[str]],
    broken: frozenset[str] = frozenset(),
    without_semantic_leg: frozenset[str] = frozenset(),
    *,
    has_baseline: bool = False,
) -> list[PlannedGate]:
    """Count for each gate and target what the run covers.

    Args:
        gates: the gates of every corpus that was collected.
        cases: every case of these corpora on every target, selected or not.
        targets: for each family the targets' names, in the order in which gates are reported.
        broken: corpora with files that could not be loaded.
        without_semantic_leg: targets on which only lexical search runs.
        has_baseline: whether there is a baseline that regressions can be counted against.

    """
    scopes = Scopes(cases)
    return [
        _planned(
            gate,
            target,
            scopes.of(gate, target),
            broken_files=gate.corpus in broken,
            labelled=gate.family == "tool_use" or len(names) > 1,
            missing_leg=_missing_leg(gate, lexical_only=target in without_semantic_leg, has_baseline=has_baseline),
        )
        for gate in gates
        for names in [_ALL_TARGETS if gate.family == REGRESSIONS else targets.get(gate.family, ())]
        for target in names
    ]


def _missing_leg(gate: Gate, *, lexical_only: bool, has_baseline: bool) -> str:
    if gate.family == REGRESSIONS:
        return "" if has_baseline else NO_BASELINE
    return NO_SEMANTIC_LEG if gate.requires_semantic_leg and lexical_only else ""


def _planned(gate: Gate, target: str, scope: Sequence[PlannedCase], **more: Any) -> PlannedGate:
    chosen = [case for case in scope if case.selected]
    skipped = sum(bool(case.skipped) for case in chosen)
    return PlannedGate(gate, target, len(scope), len(chosen), skipped, **more)
