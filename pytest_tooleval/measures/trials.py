"""What several trials of each case say of one target: how sure its pass rate is, and how steady it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_tooleval.measures.intervals import CaseMean, Interval, effective_cases, mean_value, share_interval
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.pass_at_k import pass_at_k, pass_hat_k


@dataclass(frozen=True, slots=True)
class CaseTrials:
    """The trials of one case on one target.

    Attributes:
        corpus: the corpus of the case.
        id: the case.
        made: trials that ended, errored and skipped ones included.
        valid: trials that were measured.
        passed: valid trials that passed.

    """

    corpus: str
    id: str
    made: int
    valid: int
    passed: int

    @property
    def is_flaky(self) -> bool:
        """Whether some of its valid trials pass and some do not."""
        return 0 < self.passed < self.valid


@dataclass(frozen=True, slots=True)
class AtK:
    """A measure over k trials: its mean over the cases that have as many valid ones, None when there is none."""

    k: int
    value: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class TrialStatistics:
    """How sure and how steady a target's pass rate is.

    Attributes:
        cases: cases with a valid trial; every number but `trials` is over these.
        trials: the most trials that a case has, valid or not.
        pass_rate: mean over cases of the share of valid trials that pass; None without cases, as the next two.
        interval: its interval, see `share_interval`.
        effective: how many independent observations the trials are worth, see `effective_cases`.
        pass_at_k: pass@k for k from 1 to `trials`.
        pass_hat_k: pass^k likewise.
        flaky: the cases with valid trials of either kind, sorted.

    """

    cases: int
    trials: int
    pass_rate: float | None
    interval: Interval | None
    effective: float | None
    pass_at_k: tuple[AtK, ...]
    pass_hat_k: tuple[AtK, ...]
    flaky: tuple[CaseTrials, ...]


def trial_statistics(measurements: Iterable[Measurement]) -> TrialStatistics:
    """Return the statistics of the tool-use measurements of one target.

    Trials that errored or were skipped are not valid: they are neither passes nor misses.
    """
    cases = case_trials(measurements)
    valid = [case for case in cases if case.valid]
    means = [CaseMean(case.passed / case.valid, case.valid) for case in valid]
    trials = max((case.made for case in cases), default=0)
    return TrialStatistics(
        cases=len(valid),
        trials=trials,
        pass_rate=mean_value(means) if means else None,
        interval=share_interval(means),
        effective=effective_cases(means) if means else None,
        pass_at_k=tuple(_at_k(valid, k, pass_at_k) for k in range(1, trials + 1)),
        pass_hat_k=tuple(_at_k(valid, k, pass_hat_k) for k in range(1, trials + 1)),
        flaky=tuple(case for case in valid if case.is_flaky),
    )


def case_trials(measurements: Iterable[Measurement]) -> list[CaseTrials]:
    """Return the trials of each case, sorted by corpus and id."""
    verdicts: dict[tuple[str, str], list[str]] = {}
    for measurement in measurements:
        verdicts.setdefault((measurement.corpus, measurement.id), []).append(measurement.verdict)
    return [
        CaseTrials(corpus, case, len(found), found.count("passed") + found.count("missed"), found.count("passed"))
        for (corpus, case), found in sorted(verdicts.items())
    ]


def _at_k(cases: Sequence[CaseTrials], k: int, measure: Callable[[int, int, int], float | None]) -> AtK:
    values = [value for case in cases if (value := measure(case.valid, case.passed, k)) is not None]
    return AtK(k, fmean(values) if values else None, len(values))
