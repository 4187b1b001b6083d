"""A search to measure: the reference one, or a user's own ranking."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeAlias

from pytest_tooleval.broker.decision import Verdict
from pytest_tooleval.broker.ranking_reader import MOST_READ, EngineAnswer, RankingReader
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import ConfigError, InfrastructureError, nearest
from pytest_tooleval.measures.text import cut

_MOST_SHOWN = 100

Ranking: TypeAlias = Callable[[str], Iterable[Any]]
EngineFactory: TypeAlias = Callable[[Catalog], Ranking]


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
        self._reader = RankingReader("engine", name, catalog)
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
        return self._reader.read(answer if listed is None else listed, limit)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
