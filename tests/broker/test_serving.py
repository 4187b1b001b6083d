"""The broker as a process: real MCP sessions over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from broker_process import command, listening
from small_broker import POST_SCHEMA

from pytest_tooleval.broker.broker import reference_broker
from pytest_tooleval.broker.serving import HttpAddress, parse_address, serve_http
from pytest_tooleval.broker.surface import OPERATIONS, command_json
from pytest_tooleval.cases.catalog import load_catalog
from pytest_tooleval.cli.broker import run
from pytest_tooleval.errors import ConfigError

mcp = pytest.importorskip("mcp")

TOOLS = {
    "server": "chat",
    "tools": [{"name": "post_message", "description": "Post a message to a channel", "inputSchema": POST_SCHEMA}],
}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("findTool", {"query": "post a message"}),
    ("describeTool", {"toolRef": "chat.post_message"}),
    ("callTool", {"toolRef": "chat.post_message", "arguments": {"channel": "#dev", "text": "hi"}}),
    ("callTool", {"toolRef": "chat.post_message", "arguments": {}}),
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalog") / "chat.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def url(catalog: Path) -> Iterator[str]:
    """A server that is asked by many tests."""
    with listening(catalog, "--allow-host", "broker.example") as (_, url):
        yield url


def asked(target: Any, **how: Any) -> list[str]:
    """Return what the server lists and answers to the requests."""

    async def ask() -> list[str]:
        async with mcp.Client(target, **how) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            results = [await client.call_tool(*request) for request in REQUESTS]
            return [" ".join(names), *(result.content[0].text for result in results)]

    return asyncio.run(ask())


def expected(catalog: Path) -> list[str]:
    broker = reference_broker(load_catalog(catalog, catalog))
    return [" ".join(OPERATIONS), *(command_json(broker, *request) for request in REQUESTS)]


def test_a_session_over_standard_input_and_output(catalog: Path) -> None:
    program, *arguments = command(catalog)
    parameters = mcp.StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    assert asked(parameters) == expected(catalog)


def test_the_end_of_input_is_the_end(catalog: Path) -> None:
    finished = subprocess.run(
        command(catalog), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert (finished.returncode, finished.stdout) == (0, "")
    assert "simulated" in finished.stderr


def test_a_signal_ends_it_while_it_waits_for_input(catalog: Path) -> None:
    with subprocess.Popen(
        command(catalog), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_session_over_http(catalog: Path, url: str, mode: Any) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert asked(url, mode=mode) == expected(catalog)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "evil.example:80"}, 421),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "broker.example"}, 200),
        ({"Host": "broker.example:8080", "Origin": "https://broker.example:8080"}, 200),
        ({"Host": "broker.example.evil"}, 421),
    ],
)
def test_who_is_let_in(url: str, headers: dict[str, str], status: int) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    accepted = {"Accept": "application/json, text/event-stream", **headers}
    assert httpx.post(url, json=hello, headers=accepted, timeout=10).status_code == status


def test_a_port_that_is_taken(catalog: Path) -> None:
    broker = reference_broker(load_catalog(catalog, catalog))
    closed: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"--http 127\.0\.0\.1:{port} cannot be listened on: "):
            serve_http(broker, HttpAddress("127.0.0.1", port), lambda: closed.append("closed"), print)
    assert closed == ["closed"]


def test_an_open_connection_does_not_hold_up_the_end(catalog: Path) -> None:
    with listening(catalog) as (process, url), httpx.Client(timeout=10) as client:
        with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as waiting:
            assert waiting.status_code == 200
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8000", HttpAddress("127.0.0.1", 8000)),
        (":8000", HttpAddress("127.0.0.1", 8000)),
        ("127.0.0.1:0", HttpAddress("127.0.0.1", 0)),
        ("localhost:8000", HttpAddress("localhost", 8000)),
        ("[::1]:8000", HttpAddress("::1", 8000)),
    ],
)
def test_addresses(text: str, address: HttpAddress) -> None:
    assert parse_address(text) == address
    assert address.is_loopback


@pytest.mark.parametrize("text", ["0.0.0.0:8000", "[::]:80", "192.168.1.5:80", "broker.example:80"])
def test_an_address_that_others_reach_needs_the_names_of_hosts(text: str) -> None:
    with pytest.raises(ConfigError, match="--allow-host NAME"):
        parse_address(text)
    assert not parse_address(text, ("broker.example",)).is_loopback


@pytest.mark.parametrize("text", ["", "here", "localhost", "1.2.3.4:", "localhost:70000", "::1:80", "http://x:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        parse_address(text)


def test_without_the_package_the_install_command_is_told(monkeypatch: pytest.MonkeyPatch, catalog: Path) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(ConfigError, match=r"pip install 'pytest-tooleval\[mcp\]'"):
        run(["--catalog", str(catalog)])
