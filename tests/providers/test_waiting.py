from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.providers.waiting import SharedPause, backoff, spread


@pytest.mark.parametrize(
    ("failures", "most"), [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0), (6, 30.0), (40, 30.0), (10**6, 30.0)]
)
def test_backoff_doubles_up_to_its_cap(failures: int, most: float) -> None:
    waits = [backoff(failures) for _ in range(200)]
    assert most / 2 <= min(waits) < 0.6 * most
    assert 0.9 * most < max(waits) <= most


@given(st.floats(0, 1e6))
def test_what_a_server_asks_for_is_never_shortened(seconds: float) -> None:
    assert seconds <= spread(seconds) <= 1.25 * seconds


def test_a_pause_is_never_shortened() -> None:
    pause = SharedPause()
    ends = []
    for until in (5.0, 3.0, 8.0, 0.0):
        pause.extend(until)
        ends.append(pause.end)
    assert ends == [5.0, 5.0, 8.0, 8.0]


def test_the_longest_pause_of_many_threads_counts() -> None:
    pause = SharedPause()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(pause.extend, map(float, [*range(500), *range(400)])))
    assert pause.end == 499.0
