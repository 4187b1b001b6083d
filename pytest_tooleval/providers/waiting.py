"""When the next request may be sent: backoff, what the server asks for, and the pause that all requests share."""

from __future__ import annotations

import random
import threading

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 30.0
LONGEST_RETRY_AFTER = 60.0
SPREAD = 0.25


def backoff(failures: int) -> float:
    """Return seconds to wait after so many failures: 1, 2, 4 and so on up to 30, each shortened by up to a half."""
    longest = min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 10), LONGEST_BACKOFF)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - jitter is no secret


def spread(seconds: float) -> float:
    """Return `seconds` lengthened by up to a quarter, so that those who wait do not all start at once."""
    return seconds * random.uniform(1, 1 + SPREAD)  # noqa: S311 - jitter is no secret


class SharedPause:
    """The moment before which no request is sent, for every thread that talks to one server.

    Moments are in seconds of one monotonic clock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end = 0.0

    @property
    def end(self) -> float:
        """The moment, in the past when there is no pause."""
        return self._end

    def extend(self, until: float) -> None:
        """Let nobody begin before `until`; a pause is never shortened."""
        with self._lock:
            self._end = max(self._end, until)
