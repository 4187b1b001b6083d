"""A search to measure: the reference one, or a user's own ranking."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from math import isnan
from numbers import Real
from typing import Any, Protocol, TypeAlias

from pytest_tooleval.broker.decision import Verdict
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import ConfigError, InfrastructureError, nearest
from pytest_tooleval.measures.text import cut

_MOST_NAMED = 3
_MOST_SHOWN = 100

MOST_READ = 100_000  # entries of one answer: a ranking that never ends must not hang the run
Ranking: TypeAlias = Callable[[str], Iterable[Any]]
EngineFactory: TypeAlias = Callable[[Catalog], Ranking]


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


class Engine(Protocol):
    """A search over one catalog."""

    def search(self, query: str, limit: int) -> EngineAnswer:
        """Return the best tools for a query, at most `limit`.

        Raises:
            InfrastructureError: the engine failed.

        """
        ...


class Columns(Protocol):
    """A search that answers in columns, as `ToolSearch` does."""

    def columns(self, query: str, limit: int) -> tuple[list[str], list[float], Verdict]:
        """Return refs, scores and verdict."""
        ...


@dataclass(frozen=True, slots=True)
class ReferenceEngine:
    """The search of the reference broker."""

    tools: Columns

    def search(self, query: str, limit: int) -> EngineAnswer:
        """Return the decision and the ranking behind it."""
        refs, scores, verdict = self.tools.columns(query, limit)
        return EngineAnswer(tuple(refs), tuple(scores), verdict.decision, verdict.confidence)


class UserEngine:
    """A user's ranking: refs or (ref, score) pairs for a query; an empty one is a refusal."""

    def __init__(self, name: str, factory: EngineFactory, catalog: Catalog) -> None:
        self._name = name
        self._catalog = catalog
        try:
            self._rank = factory(catalog)
        except Exception as error:  # noqa: BLE001 - a user's engine may raise anything
            raise ConfigError(f"the engine {name!r} could not be made: {_told(error)}") from None
        if not callable(self._rank):
            raise ConfigError(f"the engine {name!r} gave {self._rank!r} for a catalog; expected a callable")

    def search(self, query: str, limit: int) -> EngineAnswer:
        """Ask the ranking, and put its answer in order: equal scores by ref, as the reference search does."""
        try:
            answer = self._rank(query)
            listed = None if isinstance(answer, str | bytes | Mapping | None) else list(islice(answer, MOST_READ))
        except Exception as error:  # noqa: BLE001 - a user's engine may raise anything
            raise InfrastructureError(f"the engine {self._name!r} raised {_told(error)}") from None
        if listed is None:
            raise self._refusal(answer)
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
            is_scored, noted = False, (*noted, "the engine's scores do not fall: its order counts, not they")
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
            f"the engine {self._name!r} returned {shown}; expected a list of refs or of (ref, score) pairs"
        )

    def _notes(self, repeated: Collection[str], unknown: Collection[str]) -> Iterator[str]:
        if repeated:
            yield f"the engine returned more than once: {_some(map(repr, repeated), len(repeated))}"
        if unknown:
            hinted = (f"{cut(repr(ref), _MOST_SHOWN)}{self._hint(ref)}" for ref in unknown)
            yield f"the engine returned what is not in the catalog: {_some(hinted, len(unknown))}"

    def _hint(self, ref: str) -> str:
        meant = self._refs_by_name.get(ref.casefold())
        return "" if meant is None else f" (did you mean {meant!r}?)"

    @cached_property
    def _refs_by_name(self) -> Mapping[str, str]:
        """The refs by what stands for them most often: the name alone, and the ref in other letters."""
        tools = sorted(self._catalog.tools, key=lambda tool: tool.ref, reverse=True)
        names = {tool.name.casefold(): tool.ref for tool in tools}
        return names | {tool.ref.casefold(): tool.ref for tool in tools}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _some(texts: Iterable[str], number: int) -> str:
    """Return the first of some texts, and how many more there are."""
    more = number - _MOST_NAMED
    return ", ".join(islice(texts, _MOST_NAMED)) + (f" and {more} more" if more > 0 else "")


class EngineRegistry:
    """Collects the engines that `pytest_tooleval_register_engines` implementations contribute.

    Args:
        reserved: names that stand for something else.

    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = tuple(reserved)
        self._factories: dict[str, EngineFactory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are known, sorted."""
        return tuple(sorted([*self._factories, *self._reserved]))

    def add(self, name: str, factory: EngineFactory) -> None:
        """Make `--tooleval-engine NAME` measure what `factory` returns for a catalog.

        Args:
            name: without a colon.
            factory: takes the catalog once and returns a callable that takes a query each time and returns refs or
                (ref, score) pairs, best first.

        Raises:
            ConfigError: the name is taken, or holds a colon.

        """
        if name in self.names or ":" in name or not name:
            raise ConfigError(f"{name!r} cannot name an engine: it is taken, empty or holds a colon")
        self._factories[name] = factory

    def factory(self, name: str) -> EngineFactory:
        """Return a registered engine, or the one that `module:attr` names.

        Raises:
            ConfigError: there is none.

        """
        if name in self._factories:
            return self._factories[name]
        module, _, attribute = name.partition(":")
        if not module or not attribute:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no engine {name!r}{nearest(name, self.names)}; known: {known}; or give module:attr")
        try:
            found: Any = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            hint = "its folder has to be on Python's path: see pytest's ini option 'pythonpath'"
            raise ConfigError(f"the engine {name!r} cannot be imported: {error}; {hint}") from None
        except Exception as error:  # noqa: BLE001 - a user's module may raise anything
            raise ConfigError(f"the engine {name!r} cannot be imported: {_told(error)}") from None
        if not callable(found):
            raise ConfigError(
                f"the engine {name!r} is {cut(repr(found), _MOST_SHOWN)}; expected what takes a catalog"
            )
        factory: EngineFactory = found
        return factory
