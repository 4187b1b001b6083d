"""The Retry-After header, in all the forms that servers send."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)", re.ASCII)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that an answer's headers ask to wait, `retry-after-ms` before `retry-after`, or None.

    Args:
        headers: the answer's headers, found in any case of letters.
        now: seconds since the epoch.

    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    exact = parse_retry_after(milliseconds, now) if _NUMBER.fullmatch(milliseconds) else None
    return parse_retry_after(headers.get("retry-after"), now) if exact is None else exact / 1000


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return how many seconds to wait.

    Args:
        value: the header: seconds, fractional or not, or an HTTP date; None when it is absent.
        now: seconds since the epoch.

    Returns:
        Seconds, 0 for a past date or a negative number; None when the value says nothing usable.

    """
    text = (value or "").strip()
    seconds = float(text) if _NUMBER.fullmatch(text) else _seconds_until(text, now)
    if seconds is None or not math.isfinite(seconds):
        return None
    return max(0.0, seconds)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment: datetime = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
