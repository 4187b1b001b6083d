"""Searches that are made when they are first asked: embedding a catalog takes a model or a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pytest_tooleval.broker.decision import Verdict
from pytest_tooleval.broker.search import Found, Hit, ToolSearch
from pytest_tooleval.broker.semantic import EmbeddingLeg
from pytest_tooleval.errors import InfrastructureError, ToolevalError

T = TypeVar("T")


class Late(Generic[T]):
    """Something that is made once, by whoever needs it first; when that fails, it has failed for all the others."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T | InfrastructureError] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        """Return it.

        Raises:
            InfrastructureError: it cannot be made.

        """
        with self._lock:
            if not self._made:
                self._made.append(self._tried())
        made = self._made[0]
        if isinstance(made, InfrastructureError):
            raise InfrastructureError(str(made))
        return made

    def _tried(self) -> T | InfrastructureError:
        try:
            return self._make()
        except ToolevalError as error:
            return InfrastructureError(str(error))
        except Exception as error:  # noqa: BLE001 - a user's embedder may raise anything
            return InfrastructureError(f"the embedder raised {type(error).__name__}: {error}")


class LateSearch:
    """A search that is made when it is first asked. Its methods are those of `ToolSearch`."""

    def __init__(self, search: Late[ToolSearch]) -> None:
        self._search = search

    def rank(self, query: str, limit: int) -> list[Hit]:
        """Return the best tools."""
        return self._search.get().rank(query, limit)

    def decide(self, query: str, limit: int) -> Found:
        """Rank, and say what the ranking is good for."""
        return self._search.get().decide(query, limit)

    def columns(self, query: str, limit: int) -> tuple[list[str], list[float], Verdict]:
        """Return refs, scores and verdict."""
        return self._search.get().columns(query, limit)


class LateLeg:
    """A semantic leg that is made when it is first asked."""

    def __init__(self, leg: Late[EmbeddingLeg]) -> None:
        self._leg = leg

    def rank(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return refs with their similarity."""
        return self._leg.get().rank(query, limit)
