"""Several rankings to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

RRF_K = 60


def reciprocal_rank_fusion(rankings: Iterable[Sequence[str]], k: int = RRF_K) -> list[tuple[str, float]]:
    """Fuse rankings by reciprocal rank.

    score(ref) = sum over the rankings that hold it of 1 / (k + rank), ranks from 1 (Cormack, Clarke and Büttcher
    2009, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods"). A ranking that lacks
    a ref adds nothing; one that repeats it counts its first place, and what follows moves up.

    Returns:
        Each ref with its score, best first, ties by ref.

    """
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, ref in enumerate(dict.fromkeys(ranking), start=1):
            shares.setdefault(ref, []).append(1 / (k + rank))
    fused = [(ref, fsum(parts)) for ref, parts in shares.items()]
    return sorted(fused, key=lambda pair: (-pair[1], pair[0]))
