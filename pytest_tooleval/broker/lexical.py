"""Field-weighted BM25 over the tools of a catalog.

BM25F (Robertson, Zaragoza and Taylor 2004, "Simple BM25 extension to multiple weighted fields"): a term's counts in
the fields of a tool are weighted, divided by the field's relative length, and added up before they are saturated.

    frequency = sum over fields of weight * count / (1 - B + B * length / mean length)
    score     = sum over terms of idf * frequency * (K1 + 1) / (frequency + K1)
    idf       = ln(1 + (tools - holders + 0.5) / (holders + 0.5))

An idf is at least `LEAST_IDF` of the highest possible one: that changes hardly any ranking, and keeps the few words
of a small catalog from weighing nothing beside a word that no tool holds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_tooleval.broker.tokens import index_terms, query_words
from pytest_tooleval.broker.tool_text import ToolText, text_of
from pytest_tooleval.cases.catalog import CatalogTool

FIELD_WEIGHTS: Mapping[str, float] = {
    "server": 1.0,
    "name": 2.5,
    "title": 1.5,
    "description": 1.0,
    "parameter_names": 0.5,
    "parameter_descriptions": 0.3,
}
K1 = 1.6
B = 0.5
LEAST_IDF = 0.25
DEMANDED_WORDS = 2
_NOISE_DIGITS = 9
_FIELDS = len(ToolText._fields)

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


class LexicalHit(NamedTuple):
    """A tool that holds at least one word of the query.

    Attributes:
        ref: the tool.
        score: its BM25F score, above 0.
        relevance: from 0 to 1: the score as a share of what a tool would score that is about nothing but the query.
            No query asks for more than `DEMANDED_WORDS` of the rarest words would weigh: a long one need not be met
            in all its words.

    """

    ref: str
    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class _Postings:
    """For each term the tools that hold it, ascending, and the score that the term gives each of them.

    Attributes:
        starts: where a term's tools begin in the two lists below; one more at the end.
        tools: positions of tools.
        scores: the term's share of each tool's score.
        idf: each term's inverse document frequency.
        unknown_idf: that of a term which no tool holds, the highest.

    """

    starts: Integers
    tools: Integers
    scores: Floats
    idf: Floats
    unknown_idf: float


class LexicalIndex:
    """The words of a catalog's tools, ready to be searched; safe to share among threads."""

    def __init__(self, tools: Iterable[CatalogTool]) -> None:
        ordered = sorted(tools, key=lambda tool: tool.ref)
        self._refs = [tool.ref for tool in ordered]
        self._vocabulary: dict[str, int] = {}
        terms, cells = _occurrences(ordered, self._vocabulary)
        self._postings = _postings(terms, cells, len(ordered), len(self._vocabulary))

    def rank(self, query: str, limit: int) -> list[LexicalHit]:
        """Return the best tools for a query, best first, ties by ref; none that holds no word of it.

        Args:
            query: what is searched for.
            limit: most tools to return.

        """
        return list(map(LexicalHit._make, zip(*self.columns(query, limit), strict=True)))

    def columns(self, query: str, limit: int) -> tuple[list[str], list[float], list[float]]:
        """Return refs, scores and relevances of `rank` as three lists, for those who ask a great many queries."""
        known, unknown = self._terms(query)
        if not known or limit < 1:
            return [], [], []
        scores = self._scores(known)
        best = _best(scores, limit)
        found = scores[best]
        relevance = np.minimum(found / self._ideal_score(known, unknown), 1.0)
        refs = self._refs
        return [refs[tool] for tool in best.tolist()], found.tolist(), relevance.tolist()

    def _terms(self, query: str) -> tuple[list[int], int]:
        """Return the numbers of the query's terms that some tool holds, ascending, and how many no tool holds."""
        known: set[int] = set()
        unknown: set[str] = set()
        for word in query_words(query):
            for term in (word.whole,) if word.whole in self._vocabulary else (word.parts or (word.whole,)):
                number = self._vocabulary.get(term)
                if number is None:
                    unknown.add(term)
                else:
                    known.add(number)
        return sorted(known), len(unknown)

    def _scores(self, terms: Sequence[int]) -> Floats:
        postings = self._postings
        scores = np.zeros(len(self._refs))
        for term in terms:
            held = slice(postings.starts[term], postings.starts[term + 1])
            scores[postings.tools[held]] += postings.scores[held]
        return scores

    def _ideal_score(self, known: Sequence[int], unknown: int) -> float:
        postings = self._postings
        asked = float(postings.idf[known].sum()) + unknown * postings.unknown_idf
        return (K1 + 1) * min(asked, DEMANDED_WORDS * postings.unknown_idf)


def _occurrences(tools: Sequence[CatalogTool], vocabulary: dict[str, int]) -> tuple[Integers, Integers]:
    """Return, for each occurrence of a term, the term's number and its cell: tool * fields + field."""
    terms, cells = array("q"), array("q")
    for position, tool in enumerate(tools):
        for field, text in enumerate(text_of(tool)):
            found = [vocabulary.setdefault(term, len(vocabulary)) for term in index_terms(text)]
            terms.extend(found)
            cells.extend([position * _FIELDS + field] * len(found))
    return np.array(terms, dtype=np.int64), np.array(cells, dtype=np.int64)


def _postings(terms: Integers, cells: Integers, tool_count: int, term_count: int) -> _Postings:
    weights = _cell_weights(cells, tool_count)
    pairs, pair_of = np.unique(terms * tool_count + cells // _FIELDS, return_inverse=True)
    frequencies = np.bincount(pair_of, weights[cells], minlength=len(pairs))
    holders = np.bincount(pairs // max(tool_count, 1), minlength=term_count)
    unknown_idf = float(np.log1p((tool_count + 0.5) / 0.5))
    idf = np.maximum(np.log1p((tool_count - holders + 0.5) / (holders + 0.5)), LEAST_IDF * unknown_idf)
    return _Postings(
        starts=np.concatenate([[0], np.cumsum(holders)]),
        tools=pairs % max(tool_count, 1),
        scores=np.repeat(idf, holders) * frequencies * (K1 + 1) / (frequencies + K1),
        idf=idf,
        unknown_idf=unknown_idf,
    )


def _cell_weights(cells: Integers, tool_count: int) -> Floats:
    """Return what one occurrence in each cell counts: its field's weight, less in a long text."""
    lengths = np.bincount(cells, minlength=tool_count * _FIELDS).reshape(tool_count, _FIELDS)
    filled = np.maximum((lengths > 0).sum(axis=0), 1)
    means = np.maximum(lengths.sum(axis=0) / filled, 1.0)
    weights = np.array([FIELD_WEIGHTS[field] for field in ToolText._fields])
    cell_weights: Floats = weights / (1 - B + B * lengths / means)
    return cell_weights.ravel()


def _best(scores: Floats, limit: int) -> Integers:
    """Return the positions of the best scores above 0; scores that differ by float noise alone tie."""
    found = np.flatnonzero(scores)
    values = scores[found].round(_NOISE_DIGITS)
    if len(found) > limit:
        least = np.partition(values, len(values) - limit)[len(values) - limit]
        found, values = found[values >= least], values[values >= least]
    return found[np.lexsort((found, -values))][:limit]
