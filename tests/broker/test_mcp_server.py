"""The MCP surface, through a real client session in memory."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from small_broker import CATALOG, MESSAGE, broker_over

from pytest_tooleval.broker.downstream import InProcessDownstream
from pytest_tooleval.broker.envelope import error_type
from pytest_tooleval.broker.mcp_server import (
    BrokerSession,
    BrokerSessionError,
    McpMissingError,
    call_over_mcp,
    mcp_server,
)
from pytest_tooleval.broker.surface import OPERATIONS, command_json

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("findTool", {"query": "post a message to a channel"}),
    ("findTool", {"query": "translate a poem into Latin"}),
    ("findTool", {"query": ""}),
    ("findTool", {"query": "\x00 中文 \u2028", "limit": 1}),
    ("findTool", {"limit": 3}),
    ("describeTool", {"toolRef": "chat.post_message"}),
    ("describeTool", {"toolRef": "cloud.deploy_app"}),
    ("describeTool", {"toolRef": "cloud.deploy_app", "part": "/properties/name"}),
    ("describeTool", {"toolRef": "wiki.nothing"}),
    ("callTool", {"toolRef": "chat.post_message", "arguments": dict(MESSAGE)}),
    ("callTool", {"toolRef": "chat.post_message", "arguments": {"channel": 1}}),
    ("callTool", {"toolRef": "mail.send_email", "arguments": {"query": "x"}}),
    ("callTool", {"toolRef": "ghost.do_thing", "arguments": {}}),
    ("callTool", {"toolRef": "noSeparatorHere", "arguments": {}}),
    ("callTool", {"toolRef": "chat.post_message", "arguments": "no object"}),
]


@pytest.fixture(scope="module")
def session() -> Any:
    pytest.importorskip("mcp")
    with BrokerSession(broker_over()) as session:
        yield session


def test_exactly_three_tools_are_listed(session: BrokerSession) -> None:
    listed = session.tools()

    assert [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in listed] == [
        dict(operation) for operation in OPERATIONS.values()
    ]
    assert [tool.get("annotations", {}).get("readOnlyHint") for tool in listed] == [True, True, None]


@pytest.mark.parametrize(("operation", "request_"), REQUESTS)
def test_both_surfaces_give_the_same_bytes(
    session: BrokerSession, operation: str, request_: dict[str, Any]
) -> None:
    text = session.call_text(operation, request_)

    assert text == command_json(broker_over(), operation, request_)
    assert session.call(operation, request_) == json.loads(text)


def test_an_operation_that_is_not_there_is_an_envelope(session: BrokerSession) -> None:
    assert error_type(session.call("searchTool", {})) == "TOOL_NOT_FOUND"


def test_halves_of_surrogate_pairs_end_in_an_envelope_or_are_replaced(session: BrokerSession) -> None:
    assert session.call("findTool", {"query": "\ud800 wiki pages"})["query"] == "\ufffd wiki pages"
    answer = session.call("callTool", {"toolRef": "chat.post_message", "arguments": {**MESSAGE, "text": "\ud800"}})
    assert error_type(answer) == "ARGUMENT_VALIDATION_FAILED"


def test_results_are_text_and_structured_and_errors_are_marked() -> None:
    mcp = pytest.importorskip("mcp")

    async def ask() -> list[Any]:
        async with mcp.Client(mcp_server(broker_over())) as client:
            good = await client.call_tool("describeTool", {"toolRef": "chat.post_message"})
            bad = await client.call_tool("describeTool", {"toolRef": "chat.nothing"})
            return [good, bad]

    good, bad = asyncio.run(ask())

    assert json.loads(good.content[0].text) == good.structured_content
    assert (good.is_error, bad.is_error) == (False, True)
    assert bad.structured_content["error"]["type"] == "TOOL_NOT_FOUND"


def test_a_handshake_of_older_clients_works_too() -> None:
    mcp = pytest.importorskip("mcp")

    async def ask() -> Any:
        async with mcp.Client(mcp_server(broker_over()), mode="legacy") as client:
            return await client.call_tool("findTool", {"query": "search wiki pages"})

    assert asyncio.run(ask()).structured_content["selectedToolRef"] == "wiki.search_pages"


def test_one_session_serves_several_threads(session: BrokerSession) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: session.call("findTool", {"query": "search wiki pages"}), range(40)))

    assert {answer["selectedToolRef"] for answer in answers} == {"wiki.search_pages"}


class Slow(InProcessDownstream):
    """A downstream whose calls wait until they are let go."""

    started = threading.Event()
    go = threading.Event()

    def call(self, ref: str, arguments: Any) -> Any:
        self.started.set()
        self.go.wait(10)
        return super().call(ref, arguments)


@pytest.fixture
def slow() -> Any:
    pytest.importorskip("mcp")
    Slow.started.clear()
    Slow.go.clear()
    yield Slow(CATALOG)
    Slow.go.set()


def test_a_slow_call_does_not_hold_up_others(slow: Slow) -> None:
    call = ("callTool", {"toolRef": "chat.post_message", "arguments": dict(MESSAGE)})
    with BrokerSession(broker_over(slow)) as session, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(session.call, *call)
        assert Slow.started.wait(5)

        assert session.call("findTool", {"query": "search wiki pages"})["ok"]
        assert not pending.done()
        Slow.go.set()
        assert pending.result(5)["ok"]


def test_closing_ends_what_is_under_way(slow: Slow) -> None:
    session = BrokerSession(broker_over(slow))
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(
            session.call, "callTool", {"toolRef": "chat.post_message", "arguments": dict(MESSAGE)}
        )
        assert Slow.started.wait(5)
        started = time.monotonic()
        session.close()

        with pytest.raises(BrokerSessionError, match="closed during the call"):
            pending.result(5)
        assert time.monotonic() - started < 3


def test_an_answer_that_does_not_come_in_time(slow: Slow) -> None:
    request = {"toolRef": "chat.post_message", "arguments": dict(MESSAGE)}
    in_time = pytest.raises(BrokerSessionError, match=r"no answer within 0\.2 s")

    with BrokerSession(broker_over(slow), timeout_seconds=0.2) as session, in_time:
        session.call("callTool", request)


def test_sessions_close_in_any_order_and_more_than_once() -> None:
    pytest.importorskip("mcp")
    first, second, third = (BrokerSession(broker_over()) for _ in range(3))

    first.close()
    assert second.call("findTool", {"query": "search wiki pages"})["ok"]
    third.close()
    third.close()
    closer = threading.Thread(target=second.close)
    closer.start()
    closer.join(5)

    for session in (first, second, third):
        with pytest.raises(BrokerSessionError, match="is closed"):
            session.call("findTool", {"query": "x"})
    assert not [
        one for one in threading.enumerate() if one.name == "tooleval-broker-session" and one is first._thread
    ]


def test_one_call_needs_no_session() -> None:
    pytest.importorskip("mcp")

    assert call_over_mcp(broker_over(), "findTool", {"query": "search wiki pages"})["decision"] == "use"


@pytest.mark.parametrize("missing", ["mcp", "mcp_types"])
def test_without_the_package_the_install_command_is_told(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(McpMissingError, match=r"pip install 'pytest-tooleval\[mcp\]'"):
        BrokerSession(broker_over())
