"""Ranking measures over a ranked list of tool refs and the refs that are acceptable.

Every measure reads a list as one that holds each ref once: of a repeated ref the first place counts, and what
follows moves up. So no ranking gets more than the ideal one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from math import isclose
from statistics import fmean

_OPERATION_END = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def without_repeats(ranked: Iterable[str]) -> list[str]:
    """Return the refs in order, each where it stands first."""
    return list(dict.fromkeys(ranked))


def first_rank(ranked: Iterable[str], acceptable: Collection[str]) -> int | None:
    """Return the 1-based rank of the first acceptable ref, or None when there is none."""
    places = enumerate(without_repeats(ranked), start=1)
    return next((rank for rank, ref in places if ref in acceptable), None)


def hit_at(ranked: Iterable[str], acceptable: Collection[str], k: int) -> bool:
    """Whether an acceptable ref stands in the first `k` (success@k)."""
    rank = first_rank(ranked, acceptable)
    return rank is not None and rank <= k


def reciprocal_rank(ranked: Iterable[str], acceptable: Collection[str]) -> float:
    """Return 1 / rank of the first acceptable ref, 0 when there is none (Voorhees 1999, TREC-8 QA track)."""
    rank = first_rank(ranked, acceptable)
    return 0.0 if rank is None else 1 / rank


def expected_rank(scored: Sequence[tuple[str, float]], acceptable: Collection[str]) -> float | None:
    """Return the expected rank of the first acceptable ref when equal scores stand in random order.

    With `a` refs scored higher than the best acceptable one and `n` refs that share its score, `r` of them
    acceptable: a + (n + 1) / (r + 1), for that is the mean place of the first of `r` among `n` in random order.
    Without ties it is the rank.

    Args:
        scored: refs with their scores, best first. Scores tie when they differ by float noise only (1e-9 of them).
        acceptable: the refs that fit.

    Returns:
        The rank, from 1; None when no acceptable ref is there.

    """
    scores: dict[str, float] = {}
    for ref, score in scored:
        scores.setdefault(ref, score)
    best = max((score for ref, score in scores.items() if ref in acceptable), default=None)
    if best is None:
        return None
    tied = [ref for ref, score in scores.items() if ties(score, best)]
    higher = sum(score > best for score in scores.values() if not ties(score, best))
    fitting = sum(ref in acceptable for ref in tied)
    return higher + (len(tied) + 1) / (fitting + 1)


def split_ref(ref: str) -> tuple[str, str]:
    """Return server and name of a toolRef, read as one whose server id holds no dot."""
    server, _, name = ref.partition(".")
    return server, name


def is_wrong_server(
    ranked: Sequence[str],
    acceptable: Collection[str],
    split: Callable[[str], tuple[str, str]] = split_ref,
) -> bool:
    """Whether the first ref is the right operation on the wrong server.

    It is not acceptable, no acceptable ref is on its server, and one of them begins with the same operation: the
    first word of the name, `search` in `search_pages` and `searchPages`.

    Args:
        ranked: refs, best first; an empty list is a miss of another kind.
        acceptable: the refs that fit.
        split: a ref to its server and its name.

    """
    if not ranked or ranked[0] in acceptable:
        return False
    server, name = split(ranked[0])
    others = [split(ref) for ref in acceptable]
    if any(other == server for other, _ in others):
        return False
    return any(leading_operation(other) == leading_operation(name) for _, other in others)


def leading_operation(name: str) -> str:
    """Return the first word of a tool's name, case folded; names split on snake, kebab and camel."""
    return next((word.casefold() for word in _OPERATION_END.split(name) if word), "")


def mean(values: Iterable[float]) -> float | None:
    """Return the mean over rows, or None over none: a measure of nothing is no zero."""
    listed = list(values)
    return fmean(listed) if listed else None


def ties(left: float, right: float) -> bool:
    """Whether two scores differ by no more than float noise."""
    return isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
