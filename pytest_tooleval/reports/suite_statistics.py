"""What a run's numbers are worth: intervals, trials, and its targets against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_tooleval.measures.target_comparison import TargetComparison, compare_targets
from pytest_tooleval.measures.trials import TrialStatistics, trial_statistics
from pytest_tooleval.reports.suite_result import SuiteResult


@dataclass(frozen=True, slots=True)
class SuiteStatistics:
    """The statistics of a run.

    Attributes:
        by_target: those of each model's trials, by its name; empty where tool use did not run.
        comparisons: every two models, then every two searches, in the order of the options.

    """

    by_target: Mapping[str, TrialStatistics] = field(default_factory=dict)
    comparisons: tuple[TargetComparison, ...] = ()


def suite_statistics(result: SuiteResult) -> SuiteStatistics:
    """Return the statistics of a finished run; the same whatever the order of its measurements."""
    tool_use, discovery = result.of_family("tool_use"), result.of_family("discovery")
    by_target = {
        target: trial_statistics(case for case in tool_use if case.target == target)
        for target in (result.targets if tool_use else ())
    }
    searches = {row.target for row in discovery}
    comparisons = (
        *compare_targets("tool_use", tool_use, list(by_target)),
        *compare_targets("discovery", discovery, [name for name in result.gold_targets if name in searches]),
    )
    return SuiteStatistics(by_target, comparisons)
