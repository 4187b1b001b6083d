from __future__ import annotations

import httpx
import pytest

from pytest_tooleval.providers.retry_after import asked_wait, parse_retry_after

NOON = 1_768_478_400.0  # 15 January 2026, 12:00:00 UTC


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+3", 3.0),
        ("0", 0.0),
        ("-3", 0.0),
        ("Thu, 15 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 15 Jan 2026 13:00:00 +0100", 0.0),
        ("Thu, 15 Jan 2026 12:01:00 -0000", 60.0),
        ("Thu, 15 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 15 Jan 12026 11:00:00 GMT", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("1_000", None),
        ("٣", None),
        ("8" * 400, None),
        ("-" + "8" * 400, None),
    ],
)
def test_every_form_of_the_header(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOON) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"Retry-After-Ms": " 1500 "}, 1.5),
        ({"retry-after-ms": "-1"}, 0.0),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "9" * 400, "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "Thu, 15 Jan 2026 12:00:30 GMT"}, None),
        ({"retry-after": "Thu, 15 Jan 2026 12:00:30 GMT"}, 30.0),
    ],
)
def test_milliseconds_come_first(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(httpx.Headers(headers), NOON) == seconds
