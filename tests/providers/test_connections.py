from __future__ import annotations

import threading
import time
from collections.abc import Callable

import httpx
import pytest
from loopback import LoopbackServer, Scripted, as_json

from pytest_tooleval.providers.connections import Line, Lines

Serve = Callable[..., LoopbackServer]


def post(line: Line, url: str) -> httpx.Response:
    with line.client.stream("POST", url, json={}, extensions={"trace": line.observe}) as answer:
        answer.read()
        return answer


@pytest.fixture
def line() -> Line:
    return Line(httpx.Client(timeout=30))


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


def test_no_watch_is_left_behind(serve: Serve, line: Line) -> None:
    server = serve(as_json({}))
    with line.exchange(600.0):
        post(line, server.url)
    line.client.close()
    deadline = time.monotonic() + 5
    while any(isinstance(thread, threading.Timer) for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


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
