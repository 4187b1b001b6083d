"""The interval of a mean of paired differences that have no bounds: calls, tokens, seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_tooleval.measures.intervals import Interval
from pytest_tooleval.measures.quantiles import ALPHA, TAIL, normal_quantile, normal_share, student_quantile
from pytest_tooleval.measures.significance import ASYMPTOTIC_FROM, SEED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FEWEST_CASES = 6
BOOTSTRAP_FROM = 10
_MOST_RESAMPLES = 4_999
_RESAMPLED_VALUES = 2_000_000


def mean_difference_interval(differences: Iterable[float], seed: int = SEED) -> Interval | None:
    """Return the interval of the mean of paired differences, one for each case.

    - Fewer than 6 cases: None, for no distribution-free interval of 95 % exists (2 / 2**5 is more than 5 %).
    - Every difference equal: None, for nothing says how much others would differ.
    - 6 to 9 cases: the typical values of Hartigan (1969), between the means of all subsets of the cases; exact for
      symmetric differences, and the inverse of the sign-flip test.
    - 10 cases and more: percentiles of the means of cases that are resampled 2,000 to 5,000 times (Efron 1979),
      taken further out by the factor that they are too narrow by for few cases (Hesterberg 2015).
    - 1,000 cases and more: the normal limit of that.

    The interval of the negated differences is the mirrored one, and the order of the cases does not matter.

    Args:
        differences: one for each case.
        seed: of the resampling.

    """
    values = sorted(differences)
    if len(values) < FEWEST_CASES or values[0] == values[-1]:
        return None
    mirrored = sorted(-value for value in values)
    if mirrored > values:
        return _interval(mirrored, seed).mirrored()
    return _interval(values, seed)


def _interval(values: Sequence[float], seed: int) -> Interval:
    if len(values) < BOOTSTRAP_FROM:
        found = _typical_values(values)
    elif len(values) < ASYMPTOTIC_FROM:
        found = _bootstrap(values, seed)
    else:
        found = _normal(values)
    return found.reaching(fmean(values))


def _typical_values(values: Sequence[float]) -> Interval:
    import numpy as np

    sums, counts = np.zeros(1), np.zeros(1)
    for value in values:
        sums, counts = np.concatenate([sums, sums + value]), np.concatenate([counts, counts + 1])
    means = np.sort(sums[1:] / counts[1:])
    outside = int(ALPHA / 2 * len(sums))
    return Interval(float(means[outside - 1]), float(means[-outside]), "typical values")


def _bootstrap(values: Sequence[float], seed: int) -> Interval:
    import numpy as np

    tail = _expanded_tail(len(values))
    low, high = np.quantile(_resampled_means(values, seed), [tail, 1 - tail])
    return Interval(float(low), float(high), "bootstrap")


def _resampled_means(values: Sequence[float], seed: int) -> npt.NDArray[np.float64]:
    import numpy as np

    cases = len(values)
    resamples = min(_MOST_RESAMPLES, _RESAMPLED_VALUES // cases)
    drawn = np.random.default_rng(seed).integers(0, cases, (resamples, cases), dtype=np.uint16)
    means: npt.NDArray[np.float64] = np.array(values)[drawn].mean(axis=1)
    return means


def _expanded_tail(cases: int) -> float:
    """Return the share to leave out at each end; less than 2.5 %, as resampled means vary too little."""
    return normal_share(-sqrt(cases / (cases - 1)) * student_quantile(TAIL, cases - 1))


def _normal(values: Sequence[float]) -> Interval:
    reach = normal_quantile(TAIL) * standard_deviation(values) / sqrt(len(values))
    mean = fmean(values)
    return Interval(mean - reach, mean + reach, "normal")


def standard_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two or more values."""
    centre = fmean(values)
    return sqrt(fsum([(value - centre) ** 2 for value in values]) / (len(values) - 1))
