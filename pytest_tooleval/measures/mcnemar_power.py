"""The power of McNemar's test."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

from pytest_tooleval.measures.quantiles import ALPHA, TAIL, normal_quantile, normal_share

EXACT_UP_TO = 300

Power: TypeAlias = Callable[[float, float], float]


def mcnemar_power(cases: int) -> Power:
    """Return the power of the exact McNemar test at 5 %, as a function.

    It takes the share of cases that differ and the difference, which is positive and no more than that share. Up to
    300 cases it counts every outcome; for more it is the normal approximation with continuity correction
    (Miettinen 1968; Connett, Smith and McHugh 1987).

    Args:
        cases: pairs that are tested, 1 or more.

    """
    return _exact(cases) if cases <= EXACT_UP_TO else _approximate(cases)


def _exact(cases: int) -> Power:
    """Sum over the outcomes that the test rejects: `differ` cases of which `few` go the rarer way."""
    import numpy as np

    logs = np.concatenate([np.zeros(1), np.cumsum(np.log(np.arange(1, cases + 1)))])
    differ, few = np.tril_indices(cases + 1)
    ways = np.exp(logs[differ] - logs[few] - logs[differ - few])
    chances = np.zeros((cases + 1, cases + 1))
    chances[differ, few] = ways / 2.0**differ
    rejected = 2 * np.cumsum(chances, axis=1)[differ, few] <= ALPHA
    differ, few, ways = differ[rejected], few[rejected], ways[rejected]
    ways = ways * np.exp(logs[cases] - logs[differ] - logs[cases - differ])

    def power(differing: float, difference: float) -> float:
        more = (differing + difference) / 2
        less = differing - more
        split = more**few * less ** (differ - few) + less**few * more ** (differ - few)
        return float(np.sum(ways * split * (1 - differing) ** (cases - differ)))

    return power


def _approximate(cases: int) -> Power:
    def power(differing: float, difference: float) -> float:
        excess = cases * difference - 1 - normal_quantile(TAIL) * sqrt(cases * differing)
        spread = sqrt(max(cases * (differing - difference * difference), 0.0))
        return normal_share(excess / spread) if spread else float(excess >= 0)

    return power
