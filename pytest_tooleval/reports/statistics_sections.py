"""The statistics of a run as sections of the result file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_tooleval.measures.intervals import Interval
from pytest_tooleval.measures.target_comparison import Difference, TargetComparison
from pytest_tooleval.measures.trials import AtK, TrialStatistics


def trial_fields(statistics: TrialStatistics) -> dict[str, Any]:
    """Return what a record of `toolUse.byTarget` holds beside the metrics."""
    interval = _interval(statistics.interval)
    if interval is not None:
        interval["effectiveCases"] = statistics.effective
    return {
        "passRateInterval": interval,
        "passAtK": _at_k(statistics.pass_at_k),
        "passHatK": _at_k(statistics.pass_hat_k),
        "flaky": [
            {"corpus": case.corpus, "id": case.id, "passed": case.passed, "valid": case.valid}
            for case in statistics.flaky
        ],
    }


def _at_k(values: Sequence[AtK]) -> list[dict[str, Any]]:
    return [{"k": at.k, "value": at.value, "cases": at.cases} for at in values]


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else {"low": interval.low, "high": interval.high, "method": interval.method}


def comparison_records(comparisons: Iterable[TargetComparison]) -> list[dict[str, Any]]:
    """Return the section `comparisons`, or that of the statistics against a baseline: a record for each pair."""
    return [
        {
            "family": comparison.family,
            "reference": comparison.reference,
            "target": comparison.target,
            "cases": comparison.cases,
            "correctedOver": comparison.corrected_over,
            "metrics": [_difference(difference) for difference in comparison.differences],
            "notes": list(comparison.notes),
        }
        for comparison in comparisons
    ]


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "pairs": found.pairs,
        "referenceMean": found.reference,
        "targetMean": found.target,
        "difference": found.difference,
        "interval": _interval(found.interval),
        "pValue": found.p_value,
        "correctedPValue": found.corrected_p_value,
        "verdict": found.verdict,
        "discordant": found.discordant,
        "rises": found.rises,
        "falls": found.falls,
        "detectable": found.detectable,
        "reason": found.reason,
    }
