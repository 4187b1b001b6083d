"""What a run is about to do, as plain data that a worker sends home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_tooleval.gates.plan import PlannedGate


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The same in every process of a run, since each collects the same items.

    Attributes:
        gates: the gates on each target, and how much of their scope is selected.
        found: cases in the suites that were collected.
        items: items of ours that are selected.
        targets: the targets' names in the order of the options.
        suites: the suites that were collected, relative to the root folder.
        notes: what the summary should say about the cases themselves.
        gold_targets: the names of the searches and brokers that are measured, likewise in order.
        left_out: what of the suites is not to be run, in words; empty when everything is.
        provenance: what gold sets are measured with, JSON values by their keys in the result file.

    """

    gates: tuple[PlannedGate, ...] = ()
    found: int = 0
    items: int = 0
    targets: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gold_targets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {
            "gates": [gate.to_plain() for gate in self.gates],
            "found": self.found,
            "items": self.items,
            "targets": list(self.targets),
            "suites": list(self.suites),
            "notes": list(self.notes),
            "gold_targets": list(self.gold_targets),
            "left_out": list(self.left_out),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RunPlan:
        """Rebuild what `to_plain` gave."""
        return cls(
            gates=tuple(map(PlannedGate.from_plain, plain["gates"])),
            found=plain["found"],
            items=plain["items"],
            targets=tuple(plain["targets"]),
            suites=tuple(plain["suites"]),
            notes=tuple(plain["notes"]),
            gold_targets=tuple(plain["gold_targets"]),
            left_out=tuple(plain["left_out"]),
            provenance=plain["provenance"],
        )
