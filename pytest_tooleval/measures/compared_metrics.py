"""What is compared of two targets: metrics by case, trials averaged first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_tooleval.measures.intervals import CaseMean

_LARGEST = 1e15

CaseName: TypeAlias = tuple[str, ...]


class Trial(NamedTuple):
    """One measured trial.

    Attributes:
        case: what makes the case the same on every target.
        passed: whether it passed.
        record: its fields as the result file holds them.

    """

    case: CaseName
    passed: bool
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is compared.

    Attributes:
        name: its name in the result file.
        value: a trial's value, None when it has none.
        better: which is better.
        kind: `share` when a case's mean is a share of its trials, `graded` when it is another number from 0 to 1,
            `amount` when it has no upper bound.

    """

    name: str
    value: Callable[[Trial], float | None]
    better: Literal["higher", "lower"]
    kind: Literal["share", "graded", "amount"] = "amount"


def _number(trial: Trial, key: str) -> float | None:
    """Return a number of a record, None for what is none or no size that is counted in."""
    value = trial.record.get(key)
    return float(value) if isinstance(value, int | float) and -_LARGEST < value < _LARGEST else None


def _share(trial: Trial, key: str) -> float | None:
    value = _number(trial, key)
    return value if value is not None and 0 <= value <= 1 else None


def _rank(trial: Trial) -> float | None:
    """Return the rank of the first acceptable tool, infinite when there is none; None for rows without one."""
    if trial.record.get("category") == "no_match":
        return None
    rank = _number(trial, "rank")
    return float("inf") if rank is None or rank < 1 else rank


def _is_first(trial: Trial) -> float | None:
    rank = _rank(trial)
    return None if rank is None else float(rank == 1)


def _reciprocal(trial: Trial) -> float | None:
    rank = _rank(trial)
    return None if rank is None else 1 / rank


METRICS: Mapping[str, tuple[Metric, ...]] = {
    "tool_use": (
        Metric("passRate", lambda trial: float(trial.passed), "higher", "share"),
        Metric("accuracy", lambda trial: _share(trial, "accuracy"), "higher", "share"),
        Metric("calls", lambda trial: _number(trial, "calls"), "lower"),
        Metric("errors", lambda trial: _number(trial, "errors"), "lower"),
        Metric("tokens", lambda trial: _number(trial, "tokens"), "lower"),
        Metric("latencySeconds", lambda trial: _number(trial, "latencySeconds"), "lower"),
    ),
    "discovery": (
        Metric("top1", _is_first, "higher", "share"),
        Metric("mrr", _reciprocal, "higher", "graded"),
    ),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of two that are compared.

    Attributes:
        target: what was measured.
        cases: the cases with a measured trial.
        means: for each metric by its name the means of the cases that have a value.

    """

    target: str
    cases: frozenset[CaseName]
    means: Mapping[str, Mapping[CaseName, CaseMean]]


def side(family: str, target: str, trials: Iterable[Trial]) -> Side:
    """Return a side of comparisons: the trials of each case averaged first.

    A case that has no value of a metric in one of its trials has none.
    """
    by_case: dict[CaseName, list[Trial]] = {}
    for trial in trials:
        by_case.setdefault(trial.case, []).append(trial)
    means = {metric.name: _case_means(metric, by_case) for metric in METRICS[family]}
    return Side(target, frozenset(by_case), means)


def _case_means(metric: Metric, by_case: Mapping[CaseName, Sequence[Trial]]) -> dict[CaseName, CaseMean]:
    means: dict[CaseName, CaseMean] = {}
    for case, trials in by_case.items():
        known = [value for trial in trials if (value := metric.value(trial)) is not None]
        if len(known) == len(trials):
            means[case] = CaseMean(known[0] if len(known) == 1 else fmean(known), len(known))
    return means
