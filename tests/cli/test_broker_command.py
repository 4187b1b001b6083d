"""`tooleval broker` before live servers, as real processes all the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from plain_mcp_server import configured, tool, written

from pytest_tooleval.cases.catalog import Catalog, CatalogServer, catalog_document, listed_tool

mcp = pytest.importorskip("mcp")

ROLL = tool("roll", "Roll a die.", properties={"n": {"type": "integer"}}, required=["n"])


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The broker over a catalog of one live server."""
    entry = written(tmp_path, tools=[ROLL], results={"roll": {"echo": True}})
    config = configured(tmp_path, {"dice": entry})
    catalog = Catalog((CatalogServer("dice"),), (listed_tool("dice", ROLL),))
    (tmp_path / "world.json").write_text(json.dumps(catalog_document(catalog)), encoding="utf-8")
    program = [sys.executable, "-m", "pytest_tooleval.cli.main", "broker"]
    return [*program, "--catalog", str(tmp_path / "world.json"), "--mcp-config", str(config)]


def servers_of(folder: Path) -> list[psutil.Process]:
    """Return the running servers behind a broker."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            str(folder / "plain.state") in word for word in words
        ):
            found.append(process)
    return found


def test_a_call_reaches_the_live_server_and_the_end_ends_it(command: list[str], tmp_path: Path) -> None:
    async def ask() -> list[Any]:
        program, *arguments = command
        parameters = mcp.StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        async with mcp.Client(parameters) as client:
            found = await client.call_tool("findTool", {"query": "roll a die"})
            assert servers_of(tmp_path) == []
            called = await client.call_tool("callTool", {"toolRef": "dice.roll", "arguments": {"n": 6}})
            assert len(servers_of(tmp_path)) == 1
            return [found, called]

    found, called = asyncio.run(ask())

    assert found.structured_content["selected"]["serverStatus"] == "online"
    assert (called.is_error, called.structured_content["result"]) == (False, {"n": 6})
    assert settled(tmp_path) == []


def settled(folder: Path) -> list[psutil.Process]:
    """Return the servers that still run after a while."""
    until = time.monotonic() + 5
    while servers_of(folder) and time.monotonic() < until:
        time.sleep(0.05)
    return servers_of(folder)


def test_a_signal_ends_the_live_servers_too(command: list[str], tmp_path: Path) -> None:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        arguments = {"name": "callTool", "arguments": {"toolRef": "dice.roll", "arguments": {"n": 1}}}
        for message in (
            {"id": 1, "method": "initialize", "params": HELLO},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": arguments},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert answers[1]["result"]["structuredContent"]["result"] == {"n": 1}
        assert len(servers_of(tmp_path)) == 1

        process.send_signal(signal.SIGTERM)

        assert process.wait(10) == 128 + signal.SIGTERM
    assert settled(tmp_path) == []


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_a_configuration_that_cannot_be_used_is_2(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"dice": {}}}', encoding="utf-8")
    finished = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert finished.returncode == 2
    assert "mcp.json:1 at /mcpServers/dice: has neither 'command' nor 'url'" in finished.stderr
