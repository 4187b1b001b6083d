"""What a search returned, read with care: refs of the catalog, each once, and what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from math import isnan
from numbers import Real
from typing import Any

from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import InfrastructureError
from pytest_tooleval.measures.text import cut

MOST_READ = 100_000
"""Entries of one answer: a ranking that never ends must not hang the run."""

_MOST_NAMED = 3
_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What an engine says to a query.

    Attributes:
        refs: tools of the catalog, best first, each once.
        scores: their scores, or None when the engine gives none.
        decision: what to do with them.
        confidence: as the engine estimates it, or None.
        notes: what is wrong with the answer: repeated and unknown refs.

    """

    refs: tuple[str, ...]
    scores: tuple[float, ...] | None
    decision: str
    confidence: float | None = None
    notes: tuple[str, ...] = ()


class RankingReader:
    """Reads the rankings of one search.

    Args:
        kind: what messages call it, `engine` or `broker`.
        name: its name.
        catalog: the tools that it ranks.

    """

    def __init__(self, kind: str, name: str, catalog: Catalog) -> None:
        self._kind = kind
        self._name = name
        self._catalog = catalog

    def read(self, listed: Any, limit: int) -> EngineAnswer:
        """Put a ranking in order: equal scores by ref, as the reference search does.

        Args:
            listed: a list of refs or of (ref, score) pairs, best first.
            limit: most tools in the answer.

        Raises:
            InfrastructureError: it is something else.

        """
        if not isinstance(listed, list):
            raise self._refusal(listed)
        found = dict[str, float | None]()
        repeated, unknown = dict[str, None](), dict[str, None]()
        for entry in listed:
            ref, score = self._pair(entry)
            if ref not in self._catalog.by_ref:
                unknown[ref] = None
            elif ref in found:
                repeated[ref] = None
            else:
                found[ref] = score
        return self._answer(found, limit, self._notes(repeated, unknown))

    def _answer(self, found: Mapping[str, float | None], limit: int, notes: Iterable[str]) -> EngineAnswer:
        refs, scores = tuple(found), [score for score in found.values() if score is not None]
        is_scored, noted = bool(found) and len(scores) == len(refs), tuple(notes)
        if is_scored and any(left < right for left, right in pairwise(scores)):
            is_scored, noted = False, (*noted, f"the {self._kind}'s scores do not fall: its order counts, not they")
        if is_scored:
            ranked = sorted(zip(refs, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
            refs, scores = tuple(ref for ref, _ in ranked), [score for _, score in ranked]
        return EngineAnswer(
            refs=refs[:limit],
            scores=tuple(scores[:limit]) if is_scored else None,
            decision="use" if refs else "no_good_match",
            notes=noted,
        )

    def _pair(self, entry: Any) -> tuple[str, float | None]:
        match entry:
            case str():
                return str(entry), None
            case (str(ref), Real() as score) if not isinstance(score, bool) and not isnan(score):
                return str(ref), float(score)
            case _:
                raise self._refusal(entry)

    def _refusal(self, found: Any) -> InfrastructureError:
        shown = cut(repr(found), _MOST_SHOWN)
        return InfrastructureError(
            f"the {self._kind} {self._name!r} returned {shown}; expected a list of refs or of (ref, score) pairs"
        )

    def _notes(self, repeated: Collection[str], unknown: Collection[str]) -> Iterator[str]:
        if repeated:
            yield f"the {self._kind} returned more than once: {_some(map(repr, repeated), len(repeated))}"
        if unknown:
            hinted = (f"{cut(repr(ref), _MOST_SHOWN)}{self._hint(ref)}" for ref in unknown)
            yield f"the {self._kind} returned what is not in the catalog: {_some(hinted, len(unknown))}"

    def _hint(self, ref: str) -> str:
        meant = self._refs_by_name.get(ref.casefold())
        return "" if meant is None else f" (did you mean {meant!r}?)"

    @cached_property
    def _refs_by_name(self) -> Mapping[str, str]:
        """The refs by what stands for them most often: the name alone, and the ref in other letters."""
        tools = sorted(self._catalog.tools, key=lambda tool: tool.ref, reverse=True)
        names = {tool.name.casefold(): tool.ref for tool in tools}
        return names | {tool.ref.casefold(): tool.ref for tool in tools}


def _some(texts: Iterable[str], number: int) -> str:
    """Return the first of some texts, and how many more there are."""
    more = number - _MOST_NAMED
    return ", ".join(islice(texts, _MOST_NAMED)) + (f" and {more} more" if more > 0 else "")
