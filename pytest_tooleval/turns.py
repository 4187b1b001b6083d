"""Which items are measured when: ahead of pytest in threads, or when pytest comes to them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from pytest_tooleval.ahead import TurnsAhead
from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.families.tool_use import ToolUseTarget
from pytest_tooleval.items import CaseItem, Measure
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.tools.process import end_running

DEFAULT_CONCURRENCY = 8
_GRACE_SECONDS = 5.0
_MARKS_THAT_DECIDE = ("skip", "skipif", "xfail")


class Turns:
    """Measures items: those that wait for a model in threads and ahead, the others in pytest's own loop.

    Args:
        concurrency: turns that run at a time; None for the default, with scripted models in pytest's own loop.
        measure: measures an item, in whatever thread.
        stop: set when turns that are under way are to end.

    """

    def __init__(self, concurrency: int | None, measure: Measure, stop: threading.Event) -> None:
        self._explicit = concurrency is not None
        self._concurrency = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        self._measure = measure
        self._ahead = TurnsAhead(self._concurrency, measure)
        self._stop = stop
        self._next = 0

    def outcome_of(self, item: CaseItem) -> CaseOutcome:
        """Return what measuring the item comes to.

        Raises:
            InfrastructureError: it could not be measured.

        """
        if item.found.case.family == "performance":
            self._ahead.drain()
        if not self.is_threaded(item):
            return self._measure(item)
        limit = item.time_limit
        outcome = self._ahead.outcome_of(item, None if limit is None else limit + _GRACE_SECONDS)
        if outcome is None:
            raise ToolUnavailableError(
                f"the run did not end within its time limit of {limit:g} s and could not be ended from outside; "
                "look for a tool or provider of your own that waits without a limit"
            )
        return outcome

    def begin_ahead(self, item: pytest.Item) -> None:
        """Begin turns of this item and of those that follow it, as far as there is room."""
        session = item.session
        if self._concurrency > 1 and not (session.shouldfail or session.shouldstop):
            upcoming = (found for found in self._upcoming(item) if isinstance(found, CaseItem))
            self._ahead.begin(found for found in upcoming if self._runs_ahead(found))

    def close(self, seconds: float) -> None:
        """End the turns that are under way, with what they started, within so many seconds."""
        self._stop.set()
        end_running()
        self._ahead.close(seconds)

    def _upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        queued = _queued_in_worker(item)
        yield item
        if queued is not None:
            yield from queued
            return
        items = item.session.items
        for index in range(self._next, len(items)):
            if self._ahead.room <= 0:
                return
            self._next = index + 1
            yield items[index]

    def _runs_ahead(self, item: CaseItem) -> bool:
        if not self.is_threaded(item):
            return False
        return item.known_skip() == "" and not any(item.get_closest_marker(name) for name in _MARKS_THAT_DECIDE)

    def is_threaded(self, item: CaseItem) -> bool:
        """Whether a thread measures the item: it waits for a model, or it has a time limit to be held to."""
        if not isinstance(item.target, ToolUseTarget):
            return False
        waits = not item.target.is_scripted or self._explicit
        return (waits and self._concurrency > 1) or item.time_limit is not None


def _queued_in_worker(item: pytest.Item) -> Iterable[pytest.Item] | None:
    """Return the items that an xdist worker has been given and not begun, or None outside a worker."""
    plugins = item.config.pluginmanager.get_plugins()
    interactor: Any = next((plugin for plugin in plugins if type(plugin).__name__ == "WorkerInteractor"), None)
    queue = getattr(interactor, "torun", None)
    if queue is None:
        return None
    items: Sequence[pytest.Item] = item.session.items
    following = getattr(interactor, "nextitem_index", None)
    with queue.lock() as waiting:
        indices = [following, *waiting]
    return [items[index] for index in indices if isinstance(index, int)]
