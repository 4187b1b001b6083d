"""A search to measure: the reference one, or a user's own ranking."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import ConfigError, InfrastructureError, nearest

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


@dataclass(frozen=True, slots=True)
class ReferenceEngine:
    """The search of the reference broker."""

    tools: ToolSearch

    def search(self, query: str, limit: int) -> EngineAnswer:
        """Return the decision and the ranking behind it."""
        found = self.tools.decide(query, limit)
        refs = tuple(hit.ref for hit in found.hits)
        return EngineAnswer(refs, tuple(hit.score for hit in found.hits), found.decision, found.confidence)


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
        """Ask the ranking, and put its answer in order."""
        try:
            listed = list(self._rank(query))
        except Exception as error:  # noqa: BLE001 - a user's engine may raise anything
            raise InfrastructureError(f"the engine {self._name!r} raised {_told(error)}") from None
        pairs = [_pair(entry, self._name) for entry in listed]
        kept, notes = _distinct(pairs, self._catalog.by_ref)
        kept = kept[:limit]
        scored = [score for _, score in kept if score is not None]
        return EngineAnswer(
            refs=tuple(ref for ref, _ in kept),
            scores=tuple(scored) if len(scored) == len(kept) and kept else None,
            decision="use" if kept else "no_good_match",
            notes=tuple(notes),
        )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _pair(entry: Any, name: str) -> tuple[str, float | None]:
    match entry:
        case str():
            return entry, None
        case (str(ref), int() | float() as score) if not isinstance(score, bool):
            return ref, float(score)
        case _:
            raise InfrastructureError(
                f"the engine {name!r} returned {entry!r}; expected refs or (ref, score) pairs"
            )


def _distinct(
    pairs: Sequence[tuple[str, float | None]], known: Mapping[str, Any]
) -> tuple[list[tuple[str, float | None]], list[str]]:
    """Return the first entry of each ref that the catalog knows, and what was left out."""
    kept: dict[str, float | None] = {}
    notes = []
    for ref, score in pairs:
        if ref not in known:
            notes.append(f"the engine returned {ref!r}, which is not in the catalog{nearest(ref, known)}")
        elif ref in kept:
            notes.append(f"the engine returned {ref!r} twice")
        else:
            kept[ref] = score
    return list(kept.items()), notes


class EngineRegistry:
    """Collects the engines that `pytest_tooleval_register_engines` implementations contribute."""

    def __init__(self) -> None:
        self._factories: dict[str, EngineFactory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        return tuple(sorted(self._factories))

    def add(self, name: str, factory: EngineFactory) -> None:
        """Make `--tooleval-engine NAME` measure what `factory` returns for a catalog.

        Args:
            name: without a colon.
            factory: takes the catalog once and returns a callable that takes a query each time and returns refs or
                (ref, score) pairs, best first.

        Raises:
            ConfigError: the name is taken, or holds a colon.

        """
        if name in self._factories or ":" in name or not name:
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
        if not attribute:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no engine {name!r}{nearest(name, self.names)}; known: {known}; or give module:attr")
        try:
            found: EngineFactory = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"the engine {name!r} cannot be imported: {error}") from None
        return found
