from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from loopback import LoopbackServer, Scripted, as_json

from pytest_tooleval.providers.connections import Line, Lines, Watch

Serve = Callable[..., LoopbackServer]


def post(line: Line, url: str) -> httpx.Response:
    with line.client.stream("POST", url, json={}, extensions={"trace": line.observe}) as answer:
        answer.read()
        return answer


@pytest.fixture
def watch() -> Iterator[Watch]:
    opened = Watch()
    yield opened
    opened.close()


@pytest.fixture
def line(watch: Watch) -> Line:
    return Line(httpx.Client(timeout=30), watch)


@pytest.fixture
def watching() -> Callable[[], int]:
    """Count the threads that began to watch since the test began."""
    before = set(threading.enumerate())
    return lambda: sum(thread.name == "tooleval-watch" for thread in {*threading.enumerate()} - before)


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_exchange_in_time_is_left_alone(serve: Serve, line: Line) -> None:
    server = serve(as_json({"n": 1}))
    for _ in range(3):
        with line.exchange(5.0) as exchange:
            assert post(line, server.url).json() == {"n": 1}
        assert not exchange.is_broken_off
    line.client.close()
    assert server.connections == 1


def test_an_exchange_that_is_over_breaks_off_no_later_one(serve: Serve, line: Line) -> None:
    server = serve(as_json({}), Scripted(body=b"{}", delay=0.4))
    with line.exchange(0.2) as first:
        post(line, server.url)
    with line.exchange(5.0) as second:
        assert post(line, server.url).content == b"{}"
    line.client.close()
    assert [first.is_broken_off, second.is_broken_off] == [False, False]


def test_a_late_exchange_is_broken_off_and_the_line_is_of_use_again(serve: Serve, line: Line) -> None:
    server = serve(Scripted(body=b"{}", delay=30), as_json({"n": 2}))
    started = time.monotonic()
    with pytest.raises(httpx.TransportError), line.exchange(0.2) as exchange:
        post(line, server.url)
    assert time.monotonic() - started < 1.5
    assert exchange.is_broken_off
    with line.exchange(5.0):
        assert post(line, server.url).json() == {"n": 2}
    line.client.close()


def test_a_connection_that_is_made_too_late_is_shut_at_once(serve: Serve, line: Line) -> None:
    server = serve(as_json({}))

    def post_late() -> None:
        with line.exchange(0.01) as exchange:
            while not exchange.is_broken_off:
                time.sleep(0.005)
            post(line, server.url)

    with pytest.raises(httpx.TransportError):
        post_late()
    line.client.close()
    assert server.asked == []


def test_one_thread_watches_exchanges_of_different_length(watch: Watch, watching: Callable[[], int]) -> None:
    lines = [Line(httpx.Client(), watch) for _ in range(3)]
    with lines[0].exchange(600.0) as long, lines[1].exchange(0.05) as short, lines[2].exchange(0.02) as shorter:
        assert watching() == 1
        wait_for(lambda: short.is_broken_off and shorter.is_broken_off)
        assert not long.is_broken_off
        with lines[1].exchange(0.05) as later:
            wait_for(lambda: later.is_broken_off)


def test_no_watch_is_left_behind(watch: Watch, line: Line, watching: Callable[[], int]) -> None:
    with line.exchange(600.0):
        watch.close()
        assert watching() == 1
    wait_for(lambda: not watching())


def test_an_exchange_after_the_end_is_watched_as_well(
    watch: Watch, line: Line, watching: Callable[[], int]
) -> None:
    watch.close()
    with line.exchange(0.05) as exchange:
        wait_for(lambda: exchange.is_broken_off)
    wait_for(lambda: not watching())


def test_a_line_is_lent_to_one_at_a_time() -> None:
    clients: list[httpx.Client] = []

    def new_client() -> httpx.Client:
        clients.append(httpx.Client())
        return clients[-1]

    lines = Lines(new_client)
    with lines.borrowed() as one, lines.borrowed() as other:
        assert one is not other
    with lines.borrowed() as again:
        lines.close()
        assert again in {one, other}
        assert not again.client.is_closed
    assert [client.is_closed for client in clients] == [True, True]
