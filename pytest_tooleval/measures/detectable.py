"""The smallest difference that a suite could have shown: power, looked at from the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from pytest_tooleval.measures.mcnemar_power import mcnemar_power
from pytest_tooleval.measures.mean_difference import FEWEST_CASES, standard_deviation
from pytest_tooleval.measures.quantiles import POWER, TAIL, student_quantile

_STEPS = 24


def detectable_share_difference(differences: Sequence[float]) -> float | None:
    """Return the smallest true difference of two shares that these cases show with a chance of 80 %, at 5 %.

    Where each case differs by 1, -1 or 0, it is the difference at which `mcnemar_power` is 80 %. As no fewer cases
    can differ than the difference demands, the share of those that differ is the observed one or the difference
    itself, whichever is greater. Where cases differ by parts, as with several trials, it is that of a mean; with
    fewer than 6 that differ it is what the cases would show if they differed wholly.

    Args:
        differences: one for each case, from -1 to 1; not empty.

    Returns:
        A share, or None when not even a difference of 1 could be shown, as with fewer than 6 cases.

    """
    differing = [difference for difference in differences if difference]
    whole = all(abs(difference) == 1 for difference in differing)
    if whole:
        return _of_whole_cases(len(differences), len(differing) / len(differences))
    if len(differing) < FEWEST_CASES:
        return _of_whole_cases(len(differences), 0.0)
    found = detectable_mean_difference(differences)
    return found if found is not None and found <= 1 else None


def _of_whole_cases(cases: int, observed: float) -> float | None:
    power = mcnemar_power(cases)

    def excess(difference: float) -> float:
        return power(max(observed, difference), difference) - POWER

    return _root(excess) if excess(1.0) >= 0 else None


def _root(rising: Callable[[float], float]) -> float:
    """Return where a function that is negative at 0 and not at 1 ceases to be negative."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def detectable_mean_difference(differences: Sequence[float]) -> float | None:
    """Return the smallest true mean difference that these cases show with a chance of 80 %, at 5 %.

    (t1 + t2) s / sqrt(n) (Bloom 1995): n cases, s the standard deviation of their differences, t1 and t2 the
    quantiles of Student's distribution of n - 1 degrees of freedom at 97.5 % and 80 %.

    Args:
        differences: one for each case.

    Returns:
        A difference in their unit; None when fewer than 6 cases differ or all do by the same, as their spread then
        tells nothing.

    """
    if sum(difference != 0 for difference in differences) < FEWEST_CASES:
        return None
    freedom = len(differences) - 1
    spread = standard_deviation(differences) / sqrt(len(differences))
    found = (student_quantile(TAIL, freedom) + student_quantile(POWER, freedom)) * spread
    return found or None
