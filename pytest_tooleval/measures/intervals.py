"""Intervals of 95 % confidence for a share, and for the difference of two shares over the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from statistics import fmean
from typing import NamedTuple

from pytest_tooleval.measures.quantiles import TAIL, normal_quantile, student_quantile


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of 95 % confidence.

    Attributes:
        low: its lower end.
        high: its upper end.
        method: how it was made, in words.

    """

    low: float
    high: float
    method: str

    def __contains__(self, value: float) -> bool:
        """Whether a value lies in it, its ends included."""
        return self.low <= value <= self.high

    def reaching(self, value: float) -> Interval:
        """Return the interval, widened where it does not hold a value."""
        return replace(self, low=min(self.low, value), high=max(self.high, value))

    def mirrored(self) -> Interval:
        """Return the interval of the same quantity with the other sign."""
        return replace(self, low=0.0 - self.high, high=0.0 - self.low)


class CaseMean(NamedTuple):
    """What a case came to: its mean over valid trials, and how many these are."""

    value: float
    trials: int


def mean_value(means: Sequence[CaseMean]) -> float:
    """Return the mean over cases, one or more; the same whatever their order."""
    return fmean([mean.value for mean in means])


def wilson(share: float, n: float) -> Interval:
    """Return Wilson's score interval of a share (Wilson 1927).

    Args:
        share: successes / n, from 0 to 1.
        n: independent observations, more than 0; an effective number need not be whole.

    Raises:
        ValueError: there are no observations.

    """
    if n <= 0:
        raise ValueError(f"a share of {n} observations has no interval")
    z = normal_quantile(TAIL)
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    reach = z / scale * sqrt(max(share * (1 - share), 0.0) / n + z * z / (4 * n * n))
    return Interval(max(0.0, centre - reach), min(1.0, centre + reach), "Wilson").reaching(share)


def effective_cases(means: Sequence[CaseMean]) -> float:
    """Return how many independent observations the trials of some cases are worth.

    Trials of one case are no independent observations. Their mean m over cases has the variance v that the cases'
    own means show, and m (1 - m) / v independent observations would have the same (Kish 1965). For few cases v is
    uncertain, so the number is reduced as by Korn and Graubard (1998). It is never less than the number of cases,
    which is what it is with one trial each, and never more than if all trials were independent.

    Args:
        means: shares from 0 to 1, one for each case; not empty.

    """
    cases = len(means)
    share = mean_value(means)
    if cases == 1 or share in {0.0, 1.0} or _single(means):
        return float(cases)
    most = cases**2 / fsum([1 / mean.trials for mean in means])
    variance = fsum([(mean.value - share) ** 2 for mean in means]) / (cases - 1) / cases
    reduction = (normal_quantile(TAIL) / student_quantile(TAIL, cases - 1)) ** 2
    worth = share * (1 - share) / variance * reduction if variance else most
    return min(max(worth, float(cases)), most)


def share_interval(means: Sequence[CaseMean]) -> Interval | None:
    """Return the interval of the mean of shares over cases, None without cases.

    Wilson's over the cases where each has one trial, else Wilson's over `effective_cases`. It is about cases of
    this kind, not only about these: more trials of few cases do not make it narrow.
    """
    if not means:
        return None
    interval = wilson(mean_value(means), effective_cases(means))
    return interval if _single(means) else replace(interval, method="Wilson, effective number of cases")


def share_difference_interval(reference: Sequence[CaseMean], target: Sequence[CaseMean]) -> Interval | None:
    """Return the interval of the difference of two mean shares over the same cases, None without cases.

    Newcombe's square-and-add interval of paired shares (Newcombe 1998, method 10), of the two intervals that
    `share_interval` gives and the correlation of the cases' means. Unlike a bootstrap it holds its level where
    nearly every case comes out the same on both, and has a width where every case does.

    Args:
        reference: the means that are subtracted.
        target: those of the same cases, in the same order.

    """
    before, now = share_interval(reference), share_interval(target)
    if before is None or now is None:
        return None
    share, other = mean_value(reference), mean_value(target)
    correlation = _correlation(reference, target)
    difference = other - share
    low = difference - _square_and_add(other - now.low, before.high - share, correlation)
    high = difference + _square_and_add(now.high - other, share - before.low, correlation)
    method = "Newcombe" if _single([*reference, *target]) else "Newcombe, effective number of cases"
    return Interval(max(-1.0, low), min(1.0, high), method).reaching(difference)


def _single(means: Sequence[CaseMean]) -> bool:
    return all(mean.trials == 1 for mean in means)


def _square_and_add(one: float, other: float, correlation: float) -> float:
    return sqrt(max(one * one - 2 * correlation * one * other + other * other, 0.0))


def _correlation(reference: Sequence[CaseMean], target: Sequence[CaseMean]) -> float:
    """Return the correlation over cases, a positive one after Newcombe's correction; 0 where there is none."""
    before, now = _centred(reference), _centred(target)
    spread = sqrt(_product(before, before) * _product(now, now))
    if spread == 0:
        return 0.0
    common = _product(before, now)
    return min(max(max(common - 0.5, 0.0) if common > 0 else common, -spread), spread) / spread


def _centred(means: Sequence[CaseMean]) -> list[float]:
    centre = mean_value(means)
    return [mean.value - centre for mean in means]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return fsum([a * b for a, b in zip(one, other, strict=True)])
