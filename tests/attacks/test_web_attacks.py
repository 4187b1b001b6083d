from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import Scripted, serving
from scripted_runs import Replies, call, calling, fixture_case, results_of, run_case, run_script

CANARY = b"canary-of-the-inner-network"

_listeners: list[list[Any]] = []


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        for listener in _listeners:
            listener.append(arguments[1])


sys.addaudithook(_listen)


@pytest.fixture
def connected() -> Iterator[list[Any]]:
    """Collect the addresses that anything in this process connects to, the system's resolver aside."""
    found: list[Any] = []
    _listeners.append(found)
    yield found
    _listeners.remove(found)


INNER = [
    "http://{host}/",
    "http://127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}",
    "http://127.0.0.1.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0000000177.0.0.0001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7f000001:{port}/",
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://localhost:{port}/",
    "http://LocalHost.:{port}/",
    "http://sub.localhost:{port}/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://127\u30020\u30020\u30021:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/",
    "http://127.0.0.1%00.example.org:{port}/",
    "http://example.org@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@example.org/",
    "http://127.0.0.1:{port}\\@example.org/",
    "http://example.org\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}?@example.org/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    " http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/\r\nHost: example.org\r\n\r\n",
    "http://127.0.0.1\t:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:{port}/_GET",
    "ftp://127.0.0.1:{port}/x",
    "data:text/plain,root:",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "",
    "http://",
    "http://" + "a" * 100_000,
    "http://\ud800/",
    "http://127.0.0.1:99999999999/",
    "http://127.0.0.1:-1/",
]


def test_no_spelling_of_an_inner_address_is_connected_to(connected: list[Any]) -> None:
    with serving(Scripted(body=CANARY, headers={"Content-Type": "text/plain"})) as server:
        urls = [url.format(port=server.server_port, host=socket.gethostname()) for url in INNER]
        reply = calling(*(("web_fetch", {"url": url}) for url in urls))
        tried = results_of(run_case(fixture_case(), Replies(reply)))

        assert len(tried) == len(INNER)
        assert {outcome for _, outcome, _ in tried} == {"error"}, [t for t in tried if t[1] != "error"]
        assert server.connections == 0
    assert connected == []
    assert not [text for _, _, text in tried if "canary" in text or "root:x:" in text or len(text) > 30_100]


def test_a_page_of_the_fixture_is_no_way_to_the_web(connected: list[Any]) -> None:
    pages = {"http://example.org/": {"status": 302, "body": "<a href='http://127.0.0.1/'>x</a>"}}
    tried = results_of(
        run_script(
            call("web_fetch", url="http://example.org/"),
            call("web_fetch", url="http://127.0.0.1/"),
            call("web_fetch", url="file:///etc/passwd"),
            pages=pages,
        )
    )
    assert [outcome for _, outcome, _ in tried] == ["ok", "error", "error"]
    assert connected == []
