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

    The lexical defaults were set on MetaTool's queries, with and without their tool in the catalog, and on queries
    for real MCP servers, against their own catalogs and others. About `relevance` the shares of right first
    hits kept and of misfits refused are best balanced; below `lead` the first hit is wrong more often than right.
    What is right for the semantic ones depends on the embedder.

    Attributes:
        relevance: least lexical relevance of a good match.
        similarity: least semantic similarity of a good match.
        lead: least lead of the best tool, as a share of its lexical score, over the next one.
        similarity_lead: least lead of the best tool in semantic similarity.

    """

    relevance: float = 0.28
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

    `no_good_match` when the best tool clears neither floor, `ambiguous` when its lead over the next one is too
    small, else `use`.

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


def _strength(tool: Evidence, limits: Limits) -> float:
    """Return how many times the better of its two floors a tool reaches."""
    return max(tool.relevance / limits.relevance, (tool.similarity or 0.0) / limits.similarity)


def _lead(best: Evidence, following: Evidence | None, limits: Limits) -> float:
    """Return how many times the demanded lead the best tool has; legs that disagree weigh against each other."""
    if following is None:
        return 1 / limits.lead
    highest = max(best.score, following.score)
    lexical = (best.score - following.score) / highest if highest else 0.0
    semantic = (best.similarity or 0.0) - (following.similarity or 0.0)
    return max(0.0, lexical / limits.lead + semantic / limits.similarity_lead)


def _confidence(strength: float, lead: float) -> float:
    """Return the chance that the best tool is right, by a logistic fit to labelled queries (lexical leg only)."""
    if strength <= 0:
        return 0.0
    logit = -2.9 + 3.4 * log(strength) + 1.1 * log(1 + lead)
    return 1 / (1 + exp(-logit))


def _weakness(best: Evidence, limits: Limits) -> str:
    words = f"holds too little of the query (relevance {best.relevance:.2f}, needed {limits.relevance:.2f}"
    if best.similarity is None:
        return f"{words})"
    return f"{words}; similarity {best.similarity:.2f}, needed {limits.similarity:.2f})"


def _use_reason(best: Evidence, following: Evidence | None) -> str:
    similar = "" if best.similarity is None else f" and similarity {best.similarity:.2f}"
    ahead = "and no other tool was found" if following is None else f"ahead of {following.ref}"
    return f"{best.ref} fits with relevance {best.relevance:.2f}{similar}, {ahead}"
