from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from plain_mcp_server import configured, text, tool, written

from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.families.live_servers import REST_SECONDS, LiveServer, LiveServers, NotStartedError, ServerInfo
from pytest_tooleval.tools.mcp.config import load_mcp_config

pytest.importorskip("mcp")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """Open the servers of entries; closed in the end."""
    made: list[LiveServers] = []

    def opened(**entries: Any) -> LiveServers:
        path = configured(tmp_path, entries)
        made.append(LiveServers(load_mcp_config(path, path).servers))
        return made[-1]

    yield opened
    for servers in made:
        servers.close()


def get(servers: LiveServers, name: str) -> LiveServer:
    server = servers.get(name)
    assert server is not None
    return server


def test_a_server_is_started_when_it_is_asked(opened: Any, tmp_path: Path) -> None:
    entry = written(
        tmp_path, info={"name": "Dice", "version": "7"}, tools=[tool("roll")], results={"roll": text("4")}
    )
    servers = opened(dice=entry, idle=entry)
    dice = get(servers, "dice")

    assert servers.names == ("dice", "idle")
    assert dice.info() == ServerInfo("Dice", "7")
    assert dice.tools() == [tool("roll")]
    assert dice.call("roll", {})["content"] == [{"type": "text", "text": "4"}]
    assert len(programs(tmp_path)) == 1


def programs(folder: Path) -> list[psutil.Process]:
    """Return the running servers whose state is in a folder."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if process.status() != psutil.STATUS_ZOMBIE and any(str(folder) in word for word in process.cmdline())
    ]


def test_closing_ends_the_programs(opened: Any, tmp_path: Path) -> None:
    servers = opened(dice=written(tmp_path, tools=[tool("roll")]))
    get(servers, "dice").tools()
    assert programs(tmp_path)

    servers.close()
    servers.close()

    assert not programs(tmp_path)
    with pytest.raises(ToolUnavailableError):
        get(servers, "dice").tools()


def test_one_server_serves_many_threads(opened: Any, tmp_path: Path) -> None:
    servers = opened(dice=written(tmp_path, tools=[tool("roll")], results={"roll": {"echo": True}}))
    dice, begin = get(servers, "dice"), threading.Barrier(8)

    def call(number: int) -> str:
        begin.wait()
        return str(dice.call("roll", {"n": number})["content"][0]["text"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == [json.dumps({"n": number}) for number in range(8)]
    assert len(programs(tmp_path)) == 1


def test_a_lost_server_is_started_anew(opened: Any, tmp_path: Path) -> None:
    results = {"crash": {"exit": 3}, "roll": text("4")}
    dice = get(opened(dice=written(tmp_path, tools=[tool("roll")], results=results)), "dice")
    with pytest.raises(ToolUnavailableError, match="lost during the call of crash") as caught:
        dice.call("crash", {})

    assert not isinstance(caught.value, NotStartedError)
    assert dice.failure == ""
    assert dice.call("roll", {})["content"] == [{"type": "text", "text": "4"}]


def test_a_server_that_was_killed_lists_its_tools_all_the_same(opened: Any, tmp_path: Path) -> None:
    dice = get(opened(dice=written(tmp_path, tools=[tool("roll")])), "dice")
    dice.tools()
    (process,) = programs(tmp_path)
    process.kill()

    assert dice.tools() == [tool("roll")]
    assert programs(tmp_path) != [process]


def test_after_a_failed_start_it_rests_for_a_while(tmp_path: Path) -> None:
    path = configured(tmp_path, {"gone": {"command": "no-such-program"}})
    starts, clock = [], [0.0]

    def start() -> Any:
        starts.append(clock[0])
        raise ToolUnavailableError("it is gone")

    server = LiveServer(load_mcp_config(path, path).servers["gone"], start, lambda: clock[0])
    times = (0.0, 1.0, REST_SECONDS - 0.1, REST_SECONDS, REST_SECONDS * 5, REST_SECONDS * 9, REST_SECONDS * 20)
    for clock[0] in times:
        with pytest.raises(NotStartedError, match="it is gone"):
            server.tools()
        assert server.failure == "it is gone"

    assert starts == [0.0, REST_SECONDS, REST_SECONDS * 5, REST_SECONDS * 9, REST_SECONDS * 20]


def test_a_disabled_server_is_not_there(opened: Any, tmp_path: Path) -> None:
    servers = opened(off={**written(tmp_path), "disabled": True})
    assert servers.names == ()
    assert servers.get("off") is None
