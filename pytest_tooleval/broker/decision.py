"""What a ranking is good for: use the best tool, choose among the best, or refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Literal, TypeAlias

Decision: TypeAlias = Literal["use", "ambiguous", "no_good_match", "catalog_empty", "empty_query"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Where the decisions change.

    Attributes:
        relevance: least lexical relevance of a good match.
        similarity: least semantic similarity of a good match.
        lead: least lead of the best tool, as a share of its lexical score, over the next one.
        similarity_lead: least lead of the best tool in semantic similarity.

    """

    relevance: float = 0.32
    similarity: float = 0.4
    lead: float = 0.06
    similarity_lead: float = 0.03


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one tool.

    Attributes:
        ref: the tool.
        score: its lexical score, 0 when it holds no word of the query.
        relevance: its lexical relevance, from 0 to 1.
        similarity: its semantic similarity; None when it was not compared.

    """

    ref: str
    score: float = 0.0
    relevance: float = 0.0
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision.

    Attributes:
        decision: what to do.
        confidence: estimated chance, from 0 to 1, that the best tool is the right one.
        reason: why, in one sentence.

    """

    decision: Decision
    confidence: float
    reason: str


CATALOG_EMPTY = Verdict("catalog_empty", 0.0, "the catalog holds no tool")
EMPTY_QUERY = Verdict("empty_query", 0.0, "the query holds no word that says what is looked for")

NO_SHARED_WORD = Verdict("no_good_match", 0.0, "no tool holds a word of the query")


def judge(ranked: Sequence[Evidence], limits: Limits) -> Verdict:
    """Decide what a ranking is good for.

    `no_good_match` when the best tool clears neither floor, `ambiguous` when it leads the next one too little on every
    leg, else `use`.

    Args:
        ranked: what speaks for each tool, best first; the first two are looked at.
        limits: where the decisions change.

    """
    if not ranked:
        return NO_SHARED_WORD
    best, following = ranked[0], ranked[1] if len(ranked) > 1 else None
    strength, lead = _strength(best, limits), _lead(best, following, limits)
    confidence = _confidence(strength, lead)
    if strength < 1:
        return Verdict("no_good_match", confidence, f"the nearest tool, {best.ref}, {_weakness(best, limits)}")
    if following is not None and lead < 1:
        return Verdict("ambiguous", confidence, f"{best.ref} and {following.ref} fit about equally well")
    return Verdict("use", confidence, _use_reason(best, following))
