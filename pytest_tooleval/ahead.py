"""Runs the turns of items in threads, ahead of pytest, which still takes the items one by one and in order."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tooleval.measures.outcome import CaseOutcome

if TYPE_CHECKING:
    from pytest_tooleval.items import CaseItem

_FINISHED_AHEAD = 16
"""Turns that may be begun before pytest has taken their item, as a multiple of those that run at a time."""


@dataclass(slots=True)
class _Turn:
    """One measurement that is under way, or done and not taken yet."""

    item: CaseItem
    taken_up: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0
    outcome: CaseOutcome | None = None
    error: BaseException | None = None

    def result(self) -> CaseOutcome:
        """Return what was measured, or raise what measuring raised."""
        if self.error is not None:
            raise self.error
        if self.outcome is None:
            raise RuntimeError(f"the turn of {self.item.nodeid} is not over")
        return self.outcome


class TurnsAhead:
    """Measures items in a fixed number of threads.

    The threads are daemons: a turn that hangs in code that nobody can end does not keep the process alive.

    Args:
        concurrency: turns that run at a time.
        measure: measures an item, in whatever thread.

    """

    def __init__(self, concurrency: int, measure: Callable[[CaseItem], CaseOutcome]) -> None:
        self._concurrency = concurrency
        self._measure = measure
        self._turns: dict[str, _Turn] = {}
        self._waiting: queue.SimpleQueue[_Turn | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._unfinished = 0
        self._closed = False

    @property
    def room(self) -> int:
        """How many more turns may be begun ahead."""
        return 0 if self._closed else self._concurrency * _FINISHED_AHEAD - len(self._turns)

    def begin(self, items: Iterable[CaseItem]) -> None:
        """Begin the turns of items, in their order; those that have begun go on."""
        for item in items:
            if self.room <= 0:
                return
            if item.nodeid not in self._turns:
                self._begin(item)

    def outcome_of(self, item: CaseItem, seconds: float | None = None) -> CaseOutcome | None:
        """Return what an item's turn comes to, begun now if it has not begun; each turn is taken once.

        Args:
            item: whose turn to wait for.
            seconds: most seconds from the time that a thread took the turn up, or None for any time.

        Returns:
            The outcome, or None when the time was over; the thread is left behind then and another takes its place.

        Raises:
            InfrastructureError: the item could not be measured.

        """
        turn = self._turns.get(item.nodeid) or self._begin(item)
        turn.taken_up.wait()
        in_time = turn.done.wait(None if seconds is None else max(0.0, turn.started + seconds - time.monotonic()))
        self._turns.pop(item.nodeid, None)
        if in_time:
            return turn.result()
        self._add_thread()
        return None

    def drain(self) -> None:
        """Wait until no turn is under way."""
        with self._changed:
            self._changed.wait_for(lambda: self._unfinished == 0)

    def close(self, seconds: float) -> int:
        """Begin no more turns, wait so long for those under way, and return how many are left behind."""
        deadline = time.monotonic() + seconds
        self._closed = True
        self._forget_waiting()
        with self._changed:
            self._changed.wait_for(lambda: self._unfinished == 0, max(0.0, deadline - time.monotonic()))
            return self._unfinished

    def _forget_waiting(self) -> None:
        while True:
            try:
                turn = self._waiting.get_nowait()
            except queue.Empty:
                break
            if turn is not None:
                self._finish(turn)
        for _ in self._threads:
            self._waiting.put(None)

    def _begin(self, item: CaseItem) -> _Turn:
        turn = self._turns[item.nodeid] = _Turn(item)
        with self._changed:
            self._unfinished += 1
            busy = self._unfinished > len(self._threads)
        if busy and len(self._threads) < self._concurrency:
            self._add_thread()
        self._waiting.put(turn)
        return turn

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"tooleval-{len(self._threads) + 1}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (turn := self._waiting.get()) is not None:
            turn.started = time.monotonic()
            turn.taken_up.set()
            try:
                turn.outcome = self._measure(turn.item)
            except BaseException as error:  # noqa: BLE001 - it is raised where the item is taken
                turn.error = error
            self._finish(turn)

    def _finish(self, turn: _Turn) -> None:
        turn.taken_up.set()
        turn.done.set()
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()
