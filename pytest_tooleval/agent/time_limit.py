"""When a run has to be over, and on whose account it is ended then."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_tooleval.transcript import Status

MODEL = "the model's API"
_LEAST_SECONDS = 0.001  # a tool that is given no time at all would have to be told that it was not tried


class RunEndedError(Exception):
    """The run is ended before it is done.

    Attributes:
        status: `cancelled` from outside, `error` when the API took the time, `truncated` when the tools did.

    """

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.status = status


class TimeLimit:
    """The time of one run, and who spends it.

    Args:
        seconds: most seconds from now on, or None for any time.
        stop: set when runs have to end because nobody waits for them any more.

    """

    def __init__(self, seconds: float | None = None, stop: threading.Event | None = None) -> None:
        self._seconds = seconds
        self._stop = stop
        self._spent: defaultdict[str, float] = defaultdict(float)
        self.until = None if seconds is None else time.monotonic() + seconds

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end, a little where there are none left; None without a limit."""
        return None if self.until is None else max(_LEAST_SECONDS, self.until - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.until is not None and time.monotonic() >= self.until

    @contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Add the time of a step to the account of `what`, unless the run is to end before the step.

        Raises:
            RunEndedError: the time is over, or the run was ended from outside.

        """
        self._end_where_due()
        started = time.monotonic()
        try:
            yield
        finally:
            self._spent[what] += time.monotonic() - started

    def _end_where_due(self) -> None:
        if self._stop is not None and self._stop.is_set():
            raise RunEndedError("the run was ended from outside", "cancelled")
        if self.is_over:
            raise self.over()

    def over(self) -> RunEndedError:
        """Return the end for want of time, charged to the one that spent most of it.

        The API's slowness is no fault of the model; a slow command that it ran is.
        """
        spent = sorted(self._spent.items(), key=lambda entry: (-entry[1], entry[0]))
        tools = sum(seconds for what, seconds in spent if what != MODEL)
        status: Status = "truncated" if tools > self._spent[MODEL] else "error"
        shares = ", ".join(f"{seconds:.1f} s in {what}" for what, seconds in spent[:3]) or "nothing was begun"
        return RunEndedError(f"the time limit of {self._seconds:g} s was reached: {shares}", status)
