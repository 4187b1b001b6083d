"""The reference broker before live servers: what each trouble becomes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from loopback import Scripted, serving
from plain_mcp_server import configured, text, tool, written

from pytest_tooleval.broker.broker import Broker, reference_broker
from pytest_tooleval.broker.downstream import CallResult
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, listed_tool
from pytest_tooleval.families.live_servers import LiveServers
from pytest_tooleval.families.mcp_downstream import LIST_SECONDS, McpDownstream, result_content
from pytest_tooleval.tools.mcp.config import load_mcp_config

pytest.importorskip("mcp")

NUMBER = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
PIXEL = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}


def catalog(*tools: dict[str, Any], server: str = "dice") -> Catalog:
    return Catalog((CatalogServer(server),), tuple(listed_tool(server, one) for one in tools))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def before(folder: Path, catalogued: Catalog, clock: Clock | None = None, **entries: Any) -> Iterator[Broker]:
    """Give a broker before the servers of these entries."""
    path = configured(folder, entries)
    servers = LiveServers(load_mcp_config(path, path).servers, {"PATH": "/usr/bin:/bin"})
    try:
        yield reference_broker(catalogued, McpDownstream(catalogued, servers, clock or Clock()))
    finally:
        servers.close()


def error_of(answer: dict[str, Any]) -> tuple[str, str, bool]:
    assert answer["ok"] is False
    error = answer["error"]
    return error["type"], error["message"], error["retryable"]


def test_a_call_reaches_the_server(tmp_path: Path) -> None:
    roll = tool("roll", **NUMBER)
    entry = written(tmp_path, tools=[roll], results={"roll": {"echo": True}})
    with before(tmp_path, catalog(roll), dice=entry) as broker:
        answer = broker.call_tool("dice.roll", {"n": 6})
        found = broker.find_tool("roll")
    assert answer["ok"] is True
    assert answer["result"] == {"n": 6}
    assert found["selected"]["serverStatus"] == "online"


def test_a_call_that_does_not_keep_the_schema_is_not_sent(tmp_path: Path) -> None:
    roll = tool("roll", **NUMBER)
    entry = written(tmp_path, tools=[roll], results={"roll": {"exit": 1}})
    with before(tmp_path, catalog(roll), dice=entry) as broker:
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
    assert (kind, message) == (
        "ARGUMENT_VALIDATION_FAILED",
        "the required argument 'n' is missing (a whole number)",
    )


@pytest.mark.parametrize(
    ("result", "kind", "told"),
    [
        (text("no dice", is_error=True), "DOWNSTREAM_CALL_FAILED", "the tool reports: no dice"),
        ({"error": {"code": -32602, "message": "odd"}}, "DOWNSTREAM_CALL_FAILED", "odd (code -32602)"),
        ({"exit": 3}, "DOWNSTREAM_CALL_FAILED", "lost during the call of roll"),
        ({"sleep": 1}, "DOWNSTREAM_CALL_FAILED", "no answer to the call of roll within 0.3 s"),
    ],
)
def test_a_call_that_fails(tmp_path: Path, result: dict[str, Any], kind: str, told: str) -> None:
    entry = {**written(tmp_path, tools=[tool("roll")], results={"roll": result}), "callSeconds": 0.3}
    with before(tmp_path, catalog(tool("roll")), dice=entry) as broker:
        found, message, retryable = error_of(broker.call_tool("dice.roll", {}))
    assert (found, retryable) == (kind, False)
    assert told in message


def test_a_reading_tool_that_gave_no_answer_may_be_called_once_more(tmp_path: Path) -> None:
    roll = {**tool("roll"), "annotations": {"readOnlyHint": True}}
    entry = {**written(tmp_path, tools=[roll], results={"roll": {"sleep": 1}}), "callSeconds": 0.3}
    with before(tmp_path, catalog(roll), dice=entry) as broker:
        assert error_of(broker.call_tool("dice.roll", {}))[2] is True


def test_a_server_that_cannot_be_started_is_offline(tmp_path: Path) -> None:
    with before(tmp_path, catalog(tool("roll")), dice={"command": "no-such-program"}) as broker:
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
        found = broker.find_tool("roll")
        described = broker.describe_tool("dice.roll")
    assert kind == "DOWNSTREAM_SERVER_OFFLINE"
    assert "no program 'no-such-program' on PATH" in message
    assert found["selected"]["serverStatus"] == "offline"
    assert (described["ok"], described["serverStatus"]) == (True, "offline")


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_the_credentials(tmp_path: Path, status: int) -> None:
    with (
        serving(Scripted(status)) as server,
        before(tmp_path, catalog(tool("roll")), dice={"url": f"{server.url}/mcp"}) as broker,
    ):
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
        again = error_of(broker.call_tool("dice.roll", {}))
    assert (kind, again[0]) == ("AUTH_UNAVAILABLE", "AUTH_UNAVAILABLE")
    assert f"HTTP {status}" in message


def test_a_variable_that_is_not_set_is_a_missing_credential(tmp_path: Path) -> None:
    entry = {"command": "true", "env": {"TOKEN": "${NO_SUCH_TOKEN}"}}
    with before(tmp_path, catalog(tool("roll")), dice=entry) as broker:
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
    assert kind == "AUTH_UNAVAILABLE"
    assert "NO_SUCH_TOKEN" in message


def test_a_server_that_nobody_configured(tmp_path: Path) -> None:
    with before(tmp_path, catalog(tool("roll")), other={"command": "true"}) as broker:
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
        found = broker.find_tool("roll")
    assert kind == "CONFIG_ERROR"
    assert message.endswith("the MCP configuration has no server 'dice'; it has: other")
    assert found["selected"]["serverStatus"] == "not_configured"


def test_a_tool_that_is_gone(tmp_path: Path) -> None:
    with before(tmp_path, catalog(tool("roll")), dice=written(tmp_path, tools=[tool("toss")])) as broker:
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
    assert kind == "TOOL_NOT_FOUND"
    assert "it lists 1 tools, and 'roll' is not among them" in message


def test_a_schema_that_changed_while_the_broker_runs(tmp_path: Path) -> None:
    old, new = tool("roll"), tool("roll", **NUMBER)
    results = {"roll": {"echo": True}}
    entry, clock = written(tmp_path, tools=[old], results=results), Clock()
    with before(tmp_path, catalog(old), clock, dice=entry) as broker:
        assert broker.call_tool("dice.roll", {})["ok"]
        written(tmp_path, tools=[new], results=results)
        clock.now = LIST_SECONDS - 0.1
        assert broker.call_tool("dice.roll", {})["ok"]
        clock.now = LIST_SECONDS
        kind, message, _ = error_of(broker.call_tool("dice.roll", {}))
        described = broker.describe_tool("dice.roll")
        right = broker.call_tool("dice.roll", {"n": 2})
    assert kind == "TOOL_SCHEMA_CHANGED"
    assert "'n' is a new required argument" in message
    assert (described["schemaSource"], described["inputSchema"]) == ("live", new["inputSchema"])
    assert right["result"] == {"n": 2}


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (text("4"), "4"),
        (text('{"a": [1]}'), {"a": [1]}),
        (text("[1, 2"), "[1, 2"),
        (text("[" * 100_000), "[" * 100_000),
        ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": []}, []),
        ({}, []),
        ({"content": "odd"}, []),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, ["a", "b"]),
        ({"content": [PIXEL]}, [{"type": "image", "mimeType": "image/png", "bytes": 5}]),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "aGVsbG8="}}]},
            [{"type": "resource", "resource": {"uri": "a:b", "bytes": 5}}],
        ),
        ({"content": [None, 3]}, [None, 3]),
    ],
)
def test_what_a_result_holds(result: dict[str, Any], content: Any) -> None:
    assert result_content(result) == content
    assert json.dumps(CallResult(content).content)
