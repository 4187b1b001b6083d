"""Tests of whether paired differences are more than chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import erfc, fsum, sqrt

SEED = 20_240_501
EXACT_UP_TO = 16
DRAWS = 9_999
ASYMPTOTIC_FROM = 1_000
_DRAWN_AT_ONCE = 1_111
_SAME = 1e-9


def mcnemar_p_value(one: int, other: int) -> float:
    """Return the two-sided p value of the exact McNemar test.

    Of cases on which two targets disagree each is equally likely to go either way when neither is better, so the
    counts are binomial with 1/2 (McNemar 1947; exact form: Mosteller 1952). Without any such case it is 1.

    Args:
        one: cases that only the one passed.
        other: cases that only the other passed.

    """
    total = one + other
    tail = ways = 1
    for count in range(min(one, other)):
        ways = ways * (total - count) // (count + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << total))


def sign_flip_p_value(differences: Iterable[float], seed: int = SEED) -> float | None:
    """Return the two-sided p value of the permutation test of a mean of paired differences; None without any.

    When the targets are alike, each case's difference has either sign with equal chance (Fisher 1935). The p value
    is the share of all assignments of signs whose sum is as far from 0 as the one found. Differences of one size
    give the exact McNemar test. With at most 16 differences that are not 0 every assignment is counted; with more,
    9,999 are drawn, and the p value is (hits + 1) / (draws + 1) (Phipson and Smyth 2010); from 1,000 on the sum's
    normal limit is used.

    Args:
        differences: one for each case, in any order.
        seed: of the drawn signs.

    """
    listed = list(differences)
    if not listed:
        return None
    sizes = sorted(float(f"{abs(difference):.12g}") for difference in listed if difference)
    if not sizes or sizes[0] == sizes[-1]:
        rises = sum(difference > 0 for difference in listed)
        return mcnemar_p_value(rises, len(sizes) - rises)
    found = abs(fsum(listed))
    if len(sizes) >= ASYMPTOTIC_FROM:
        return erfc(found / sqrt(2 * fsum([size * size for size in sizes])))
    least = found - _SAME * fsum(sizes)
    return _counted(sizes, least) if len(sizes) <= EXACT_UP_TO else _drawn(sizes, least, seed)


def _counted(sizes: Sequence[float], least: float) -> float:
    """Return the share of all signs with a sum that far from 0; the first sign is fixed, as the rest mirrors it."""
    import numpy as np

    sums = np.array([sizes[0]])
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= least))


def _drawn(sizes: Sequence[float], least: float, seed: int) -> float:
    import numpy as np

    random = np.random.default_rng(seed)
    values = np.array(sizes)
    hits = 0
    for _ in range(DRAWS // _DRAWN_AT_ONCE):
        packed = random.integers(0, 256, (_DRAWN_AT_ONCE, (len(sizes) + 7) // 8), dtype=np.uint8)
        flipped = np.unpackbits(packed, axis=1, count=len(sizes)).astype(np.float64)
        hits += int(np.sum(np.abs(values.sum() - 2 * (flipped @ values)) >= least))
    return (hits + 1) / (DRAWS + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p values adjusted so that all of them together err as rarely as one (Holm 1979).

    Args:
        p_values: those of the comparisons; None for one that could not be made, which counts for nothing.

    """
    known = sorted((value, place) for place, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (value, place) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted
