"""`tooleval catalog`, and the commands that call live servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plain_mcp_server import configured, text, tool, written

from pytest_tooleval.cases.catalog import load_catalog
from pytest_tooleval.cli import call, describe
from pytest_tooleval.cli import catalog as catalog_command
from pytest_tooleval.cli.main import main

pytest.importorskip("mcp")

Run = Callable[..., subprocess.CompletedProcess[str]]
ROLL = {**tool("roll", "Roll a die."), "annotations": {"readOnlyHint": True, "title": "Roll"}}
TOSS = tool("toss", "Toss a coin.", properties={"coin": {"type": "string"}}, required=["coin"])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration of two servers."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    dice = written(folder, "dice", tools=[TOSS, ROLL], results={"roll": text("4"), "toss": {"echo": True}})
    configured(folder, {"dice": dice, "bare": written(folder, "bare")})
    monkeypatch.chdir(folder)
    return folder


def exit_code(arguments: list[str]) -> int:
    """Run the command in this process."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def change(folder: Path, **said: Any) -> None:
    """Let the server with dice say something else from now on."""
    written(folder, "dice", **{"tools": [TOSS, ROLL], **said})


def test_a_catalog_is_written_and_is_one(tooleval: Run, project: Path) -> None:
    finished = tooleval("catalog", "--mcp-config", "mcp.json", "-o", "evals/catalog/world.json")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == "wrote evals/catalog/world.json: 2 tools of 2 servers\n"
    path = project / "evals" / "catalog" / "world.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["servers"] == [
        {"id": "bare", "status": "online", "name": "bare", "version": "1"},
        {"id": "dice", "status": "online", "name": "dice", "version": "1"},
    ]
    catalog = load_catalog(path, path)
    assert [one.ref for one in catalog.tools] == ["dice.roll", "dice.toss"]
    roll, toss = catalog.tools
    assert (roll.title, roll.description, roll.read_only) == ("Roll", "Roll a die.", True)
    assert (toss.input_schema, toss.read_only) == (TOSS["inputSchema"], False)


def test_it_is_the_same_each_time_and_is_printed_without_a_file(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    printed = []
    for tools in ([TOSS, ROLL], [ROLL, TOSS]):
        change(project, tools=tools)
        assert catalog_command.run(["--mcp-config", "mcp.json", "--server", "dice"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert [server["id"] for server in json.loads(printed[0])["servers"]] == ["dice"]


@pytest.mark.parametrize(
    ("said", "code", "lines"),
    [
        ({}, 0, ["world.json: 2 tools of 2 servers, unchanged"]),
        ({"info": {"name": "dice", "version": "2"}}, 0, ["world.json: 2 tools of 2 servers, unchanged"]),
        (
            {"tools": [tool("spin"), {**ROLL, "description": "Roll it."}]},
            1,
            [
                "description changed: dice.roll: 'Roll it.' now, was 'Roll a die.'",
                "tool added: dice.spin",
                "tool removed: dice.toss",
            ],
        ),
        (
            {"tools": [ROLL, {**TOSS, "inputSchema": {"type": "object", "properties": {}}}]},
            1,
            ["schema changed: dice.toss: 'coin' is no longer an argument"],
        ),
    ],
)
def test_a_catalog_is_compared_with_the_servers(
    capsys: pytest.CaptureFixture[str], project: Path, said: dict[str, Any], code: int, lines: list[str]
) -> None:
    catalog_command.run(["--mcp-config", "mcp.json", "-o", "world.json"])
    capsys.readouterr()
    change(project, **said)

    assert catalog_command.run(["--mcp-config", "mcp.json", "--check", "world.json"]) == code

    told = capsys.readouterr()
    assert told.out.splitlines() == lines
    assert told.err == ("note: dice is version 2 now, and was 1\n" if "info" in said else "")


def test_only_the_chosen_servers_are_compared(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    catalog_command.run(["--mcp-config", "mcp.json", "-o", "world.json"])
    change(project, tools=[])
    arguments = ["--mcp-config", "mcp.json", "--check", "world.json"]

    assert catalog_command.run([*arguments, "--server", "bare"]) == 0
    assert catalog_command.run([*arguments, "--server", "dice"]) == 1


def test_what_is_no_tool_is_left_out_and_named(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    odd = [3, {"name": ""}, ROLL, ROLL, {"name": "half", "description": 5, "annotations": {"title": 7}}]
    change(project, tools=odd)

    assert catalog_command.run(["--mcp-config", "mcp.json", "--server", "dice", "-o", "world.json"]) == 0

    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 4
    assert all(line.startswith("note: dice: ") for line in notes)
    assert [one.ref for one in load_catalog(project / "world.json", Path()).tools] == ["dice.half", "dice.roll"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--mcp-config"),
        (["--mcp-config", "missing.json"], "missing.json: cannot be read"),
        (
            ["--mcp-config", "mcp.json", "--server", "dise"],
            "no server 'dise' that can be used (did you mean 'dice'?)",
        ),
        (["--mcp-config", "mcp.json", "--check", "missing.json"], "missing.json: cannot be read"),
        (["--mcp-config", "mcp.json", "--check", "a.json", "-o", "b.json"], "not allowed with"),
    ],
)
def test_wrong_usage_is_2(
    capsys: pytest.CaptureFixture[str], project: Path, arguments: list[str], expected: str
) -> None:
    assert exit_code(["catalog", *arguments]) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert expected in told.err


@pytest.mark.parametrize("servers", [{}, {"off": {"command": "x", "disabled": True}}])
def test_no_server_at_all_is_2(capsys: pytest.CaptureFixture[str], project: Path, servers: dict[str, Any]) -> None:
    configured(project, servers)

    assert exit_code(["catalog", "--mcp-config", "mcp.json", "-o", "world.json"]) == 2
    assert "has no server that can be used: describe one under 'mcpServers'" in capsys.readouterr().err
    assert not (project / "world.json").exists()


def test_a_catalog_that_cannot_be_read_is_told_before_servers_are_started(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    configured(project, {"gone": {"command": "no-such-program"}})

    assert exit_code(["catalog", "--mcp-config", "mcp.json", "--check", "missing.json"]) == 2
    assert capsys.readouterr().err.startswith("tooleval: missing.json: cannot be read")


def test_a_server_that_cannot_be_started_writes_nothing(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    configured(project, {"gone": {"command": "no-such-program"}})

    assert exit_code(["catalog", "--mcp-config", "mcp.json", "-o", "world.json"]) == 2
    assert "MCP server 'gone' cannot be started" in capsys.readouterr().err
    assert not (project / "world.json").exists()


def test_a_file_that_cannot_be_written_is_1(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "file").touch()
    assert catalog_command.run(["--mcp-config", "mcp.json", "-o", "file/world.json"]) == 1
    assert "file/world.json cannot be written" in capsys.readouterr().err


def test_calls_and_schemas_of_live_servers(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    catalog_command.run(["--mcp-config", "mcp.json", "-o", "world.json"])
    capsys.readouterr()
    live = ["--catalog", "world.json", "--mcp-config", "mcp.json", "--format", "concise"]

    assert call.run([*live, "dice.toss", "--arguments", '{"coin": "penny"}']) == 0
    assert json.loads(capsys.readouterr().out) == {"coin": "penny"}

    change(project, tools=[ROLL, tool("toss", "Toss a coin.")])
    assert describe.run([*live, "dice.toss"]) == 0
    assert json.loads(capsys.readouterr().out) == {"type": "object", "properties": {}}


def test_a_call_of_a_live_server_as_a_process(tooleval: Run, project: Path) -> None:
    catalog_command.run(["--mcp-config", "mcp.json", "-o", "world.json"])

    finished = tooleval("call", "--catalog", "world.json", "--mcp-config", "mcp.json", "dice.roll")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith('"4"\nnext: ')
