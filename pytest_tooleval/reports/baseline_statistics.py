"""Statistics of a run against a baseline: each target against itself on another day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_tooleval.measures.compared_metrics import METRICS, Side, Trial, side
from pytest_tooleval.measures.target_comparison import TargetComparison, compare_sides

if TYPE_CHECKING:
    from pytest_tooleval.reports.comparison import CaseKey

_MEASURED = frozenset({"passed", "missed"})


def baseline_statistics(
    before: Mapping[CaseKey, Mapping[str, Any]], now: Mapping[CaseKey, Mapping[str, Any]]
) -> tuple[TargetComparison, ...]:
    """Compare each target that stands in both with itself, its baseline as the reference.

    Args:
        before: the case records of the baseline by their keys.
        now: those of the run.

    """
    found: list[TargetComparison] = []
    for family in METRICS:
        references, targets = _sides(family, before), _sides(family, now)
        pairs = [(references[name], target) for name, target in targets.items() if name in references]
        found += compare_sides(family, pairs)
    return tuple(found)


def _sides(family: str, records: Mapping[CaseKey, Mapping[str, Any]]) -> dict[str, Side]:
    trials: dict[str, list[Trial]] = {}
    for key, record in records.items():
        if key.family == family:
            of_target = trials.setdefault(key.target, [])
            if record["verdict"] in _MEASURED:
                of_target.append(Trial((key.file, key.id), record["verdict"] == "passed", record))
    return {target: side(family, target, found) for target, found in trials.items()}
