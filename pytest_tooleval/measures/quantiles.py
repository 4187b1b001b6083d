"""Quantiles of the normal and of Student's distribution."""

from __future__ import annotations

from statistics import NormalDist

LEVEL = 0.95
ALPHA = 1 - LEVEL
POWER = 0.8
TAIL = 1 - ALPHA / 2


def normal_quantile(probability: float) -> float:
    """Return the standard normal quantile; the probability lies between 0 and 1."""
    return NormalDist().inv_cdf(probability)


def normal_share(quantile: float) -> float:
    """Return the share of the standard normal distribution below a quantile."""
    return NormalDist().cdf(quantile)


def student_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's distribution, by its expansion about the normal one.

    Abramowitz and Stegun (1964), 26.7.5. From 5 degrees of freedom on it is right to 0.001 at the probabilities
    that are used here; below it is too small, by a tenth at 1.

    Args:
        probability: between 0 and 1.
        freedom: degrees of freedom, 1 or more.

    """
    z = normal_quantile(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))
