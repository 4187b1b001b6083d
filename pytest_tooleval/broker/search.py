"""Tool search: the words of a query, and its meaning where a semantic leg is there, to tools and a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
JUDGED = 2


class SemanticLeg(Protocol):
    """A ranking by meaning."""

    def rank(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return refs of the catalog with their similarity to the query, best first, at most `limit`."""
        ...


class Hit(NamedTuple):
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
        refs, scores, _ = self._search(query, limit)
        return list(map(Hit, refs, scores))

    def decide(self, query: str, limit: int) -> Found:
        """Rank, and say what the ranking is good for."""
        refs, scores, verdict = self.columns(query, limit)
        return Found(verdict.decision, tuple(map(Hit, refs, scores)), verdict.confidence, verdict.reason)

    def columns(self, query: str, limit: int) -> tuple[list[str], list[float], Verdict]:
        """Return refs and scores of `decide` as two lists, and the verdict, for those who ask very often."""
        if not self._catalog.tools:
            return [], [], CATALOG_EMPTY
        refs, scores, evidence = self._search(query, max(limit, JUDGED))
        if not refs and not query_words(query):
            return [], [], EMPTY_QUERY
        most = max(limit, 0)
        return refs[:most], scores[:most], judge(evidence, self._limits)

    def _search(self, query: str, limit: int) -> tuple[list[str], list[float], list[Evidence]]:
        """Return refs, scores, and what speaks for the first two."""
        if self._semantic is None:
            refs, scores, relevance = self._lexical.columns(query, limit)
            return refs, scores, list(map(Evidence, refs[:JUDGED], scores, relevance))
        if not query_words(query) or limit < 1:
            return [], [], []
        return self._fused(query, limit, self._semantic)

    def _fused(
        self, query: str, limit: int, semantic: SemanticLeg
    ) -> tuple[list[str], list[float], list[Evidence]]:
        depth = max(limit, LEAST_DEPTH)
        lexical = {hit.ref: hit for hit in self._lexical.rank(query, depth)}
        similar = {ref: score for ref, score in semantic.rank(query, depth) if ref in self._catalog.by_ref}
        fused = reciprocal_rank_fusion([list(lexical), list(similar)])[:limit]
        refs = [ref for ref, _ in fused]
        evidence = [_evidence(ref, lexical.get(ref), similar.get(ref)) for ref in refs[:JUDGED]]
        return refs, [score for _, score in fused], evidence


def _evidence(ref: str, lexical: LexicalHit | None, similarity: float | None) -> Evidence:
    if lexical is None:
        return Evidence(ref, similarity=similarity)
    return Evidence(ref, lexical.score, lexical.relevance, similarity)
