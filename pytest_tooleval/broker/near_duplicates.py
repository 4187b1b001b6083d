"""Tools whose descriptions the reference search can hardly tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_tooleval.broker.lexical import LexicalIndex
from pytest_tooleval.cases.catalog import CatalogTool

LEAST_SIMILARITY = 0.9
_COMPARED = 8


class Twin(NamedTuple):
    """The tool that another one is most like.

    Attributes:
        ref: the tool.
        similarity: from `LEAST_SIMILARITY` to 1; 1 when the descriptions are the same text.

    """

    ref: str
    similarity: float


def near_duplicates(tools: Sequence[CatalogTool], least: float = LEAST_SIMILARITY) -> dict[str, Twin]:
    """Return for each tool that is much like an earlier one which of those it is most like.

    Descriptions are indexed by themselves (BM25F, `broker.lexical`) and each is searched for as a query:

        similarity(a, b) = min(score of b for a / score of a for a, score of a for b / score of b for b)

    at most 1. Equal descriptions, but for case and blanks, have similarity 1. Each description is compared with the
    few that answer it best, so the cost is one search a distinct description; empty ones are like nothing.

    Args:
        tools: in the order that says which is earlier.
        least: similarity from which tools are told.

    """
    groups = _by_description(tools)
    first = {members[0].ref: members[0].description for members in groups}
    shares = _shares(first)
    places = {tool.ref: place for place, tool in enumerate(tools)}
    found = {member.ref: Twin(members[0].ref, 1.0) for members in groups for member in members[1:]}
    for ref in first:
        rivals = _rivals(ref, shares, least)
        earlier = [twin for twin in rivals if places[twin.ref] < places[ref]]
        if earlier:
            found[ref] = max(earlier, key=lambda twin: (twin.similarity, -places[twin.ref]))
    return found


def _by_description(tools: Iterable[CatalogTool]) -> list[list[CatalogTool]]:
    groups: dict[str, list[CatalogTool]] = {}
    for tool in tools:
        text = " ".join(tool.description.casefold().split())
        if text:
            groups.setdefault(text, []).append(tool)
    return list(groups.values())


def _shares(descriptions: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return for each tool the score of those that answer its description best, as shares of its own."""
    index = LexicalIndex(CatalogTool(ref, "", "", description=text) for ref, text in descriptions.items())
    shares: dict[str, dict[str, float]] = {}
    for ref, text in descriptions.items():
        scores = {hit.ref: hit.score for hit in index.rank(text, _COMPARED)}
        own = scores.get(ref)
        shares[ref] = {other: score / own for other, score in scores.items() if other != ref} if own else {}
    return shares


def _rivals(ref: str, shares: Mapping[str, Mapping[str, float]], least: float) -> list[Twin]:
    mutual = (Twin(other, min(share, shares[other].get(ref, 0.0), 1.0)) for other, share in shares[ref].items())
    return [twin for twin in mutual if twin.similarity >= least]
