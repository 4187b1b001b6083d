"""Tool search: the words of a query, and its meaning where a semantic leg is there, to tools and a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_tooleval.broker.decision import (
    CATALOG_EMPTY,
    EMPTY_QUERY,
    Decision,
    Evidence,
    Limits,
    Verdict,
    judge,
)
from pytest_tooleval.broker.fusion import reciprocal_rank_fusion
from pytest_tooleval.broker.lexical import LexicalHit, LexicalIndex
from pytest_tooleval.broker.tokens import query_words
from pytest_tooleval.cases.catalog import Catalog

LEAST_DEPTH = 100


class SemanticLeg(Protocol):
    """A ranking by meaning."""

    def rank(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return refs of the catalog with their similarity to the query, best first, at most `limit`."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found.

    Attributes:
        ref: the tool.
        score: comparable within one answer only: BM25F, or fused reciprocal ranks where there is a semantic leg.

    """

    ref: str
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query.

    Attributes:
        decision: what to do; for `use` the first hit is meant, for `ambiguous` the first ones are the candidates.
        hits: the tools, best first. A refusal may list some: the nearest, none of them near enough.
        confidence: estimated chance, from 0 to 1, that the first hit is the right tool.
        reason: why, in one sentence.

    """

    decision: Decision
    hits: tuple[Hit, ...]
    confidence: float
    reason: str


class ToolSearch:
    """Search over one catalog; safe to share among threads when its semantic leg is."""

    def __init__(self, catalog: Catalog, semantic: SemanticLeg | None = None, limits: Limits | None = None) -> None:
        self._catalog = catalog
        self._semantic = semantic
        self._limits = limits or Limits()
        self._lexical = LexicalIndex(catalog.tools)

    def rank(self, query: str, limit: int) -> list[Hit]:
        """Return the best tools for a query, best first, ties by ref; none for a query without a word in it.

        Args:
            query: what is searched for.
            limit: most tools to return.

        """
        hits, _ = self._search(query, limit)
        return hits

    def decide(self, query: str, limit: int) -> Found:
        """Rank, and say what the ranking is good for."""
        if not self._catalog.tools:
            return _found(CATALOG_EMPTY, [])
        if not query_words(query):
            return _found(EMPTY_QUERY, [])
        hits, evidence = self._search(query, max(limit, 2))
        return _found(judge(evidence, self._limits), hits[: max(limit, 0)])

    def _search(self, query: str, limit: int) -> tuple[list[Hit], list[Evidence]]:
        """Return hits, and what speaks for each."""
        if self._semantic is None:
            lexical = self._lexical.rank(query, limit)
            return [Hit(hit.ref, hit.score) for hit in lexical], [_evidence(hit.ref, hit, None) for hit in lexical]
        if not query_words(query) or limit < 1:
            return [], []
        return self._fused(query, limit, self._semantic)

    def _fused(self, query: str, limit: int, semantic: SemanticLeg) -> tuple[list[Hit], list[Evidence]]:
        depth = max(limit, LEAST_DEPTH)
        lexical = {hit.ref: hit for hit in self._lexical.rank(query, depth)}
        similar = {ref: score for ref, score in semantic.rank(query, depth) if ref in self._catalog.by_ref}
        hits = [Hit(*pair) for pair in reciprocal_rank_fusion([list(lexical), list(similar)])[:limit]]
        return hits, [_evidence(hit.ref, lexical.get(hit.ref), similar.get(hit.ref)) for hit in hits]


def _evidence(ref: str, lexical: LexicalHit | None, similarity: float | None) -> Evidence:
    if lexical is None:
        return Evidence(ref, similarity=similarity)
    return Evidence(ref, lexical.score, lexical.relevance, similarity)


def _found(verdict: Verdict, hits: Sequence[Hit]) -> Found:
    return Found(verdict.decision, tuple(hits), verdict.confidence, verdict.reason)
