"""`tooleval find`, `describe` and `call`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_broker import POST_SCHEMA, SEARCH_SCHEMA

from pytest_tooleval.broker.broker import reference_broker
from pytest_tooleval.broker.surface import command_json
from pytest_tooleval.cases.catalog import load_catalog
from pytest_tooleval.cli import call, describe, find

Run = Callable[..., subprocess.CompletedProcess[str]]

CATALOG: dict[str, Any] = {
    "servers": [{"id": "chat"}, {"id": "wiki", "status": "offline"}],
    "tools": [
        {
            "toolRef": "chat.post_message",
            "serverId": "chat",
            "name": "post_message",
            "description": "Post a message to a channel, café",
            "inputSchema": POST_SCHEMA,
        },
        {
            "toolRef": "wiki.search_pages",
            "serverId": "wiki",
            "name": "search_pages",
            "description": "Search wiki pages by free text",
            "inputSchema": SEARCH_SCHEMA,
        },
    ],
}


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(CATALOG), encoding="utf-8")
    return path


def test_find_prints_the_brokers_answer(tooleval: Run, catalog: Path) -> None:
    finished = tooleval("find", "--catalog", str(catalog), "post a message", "--format", "json", "--limit", "1")

    assert (finished.returncode, finished.stderr) == (0, "")
    broker = reference_broker(load_catalog(catalog, catalog))
    assert finished.stdout == command_json(broker, "findTool", {"query": "post a message", "limit": 1}) + "\n"
    assert json.loads(finished.stdout) == broker.find_tool("post a message", 1)


def test_describe_and_call_as_processes(tooleval: Run, catalog: Path) -> None:
    described = tooleval("describe", "--catalog", str(catalog), "chat.post_message", "--format", "json")
    arguments = '{"channel": "#dev", "text": "hi"}'
    called = tooleval(
        "call", "--catalog", str(catalog), "chat.post_message", "--arguments", arguments, "--format", "json"
    )

    assert json.loads(described.stdout)["inputSchema"] == POST_SCHEMA
    assert json.loads(called.stdout)["result"]["simulated"] is True
    assert (described.returncode, called.returncode) == (0, 0)


def test_json_survives_a_terminal_that_knows_ascii_only(
    tooleval: Run, environment: dict[str, str], catalog: Path
) -> None:
    environment["PYTHONIOENCODING"] = "ascii"

    finished = tooleval("describe", "--catalog", str(catalog), "chat.post_message", "--format", "json")

    assert json.loads(finished.stdout)["description"].endswith("café")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["describe", "chat.nothing"], 1, "TOOL_NOT_FOUND"),
        (["call", "chat.post_message"], 1, "ARGUMENT_VALIDATION_FAILED"),
        (["call", "chat.post_message", "--arguments", "[1]"], 1, "ARGUMENT_VALIDATION_FAILED"),
        (["call", "wiki.search_pages", "--arguments", '{"query": "x"}'], 1, "DOWNSTREAM_SERVER_OFFLINE"),
        (["call", "ghost.do_thing"], 1, "CONFIG_ERROR"),
        (["find", "x", "--limit", "0"], 1, "ARGUMENT_VALIDATION_FAILED"),
    ],
)
def test_an_error_envelope_is_1(
    capsys: pytest.CaptureFixture[str], catalog: Path, arguments: list[str], code: int, expected: str
) -> None:
    module = {"find": find, "describe": describe, "call": call}[arguments[0]]
    rest = ["--catalog", str(catalog), *arguments[1:]]

    assert module.run([*rest, "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["error"]["type"] == expected
    assert module.run(rest) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{expected}: ")
    assert "\nnext: " in printed.err


@pytest.mark.parametrize("query", ["translate a poem into Latin", "", "the"])
def test_no_match_is_an_answer(capsys: pytest.CaptureFixture[str], catalog: Path, query: str) -> None:
    assert find.run(["--catalog", str(catalog), query]) == 0
    assert "none" in capsys.readouterr().out


def test_text_for_people(capsys: pytest.CaptureFixture[str], catalog: Path) -> None:
    assert find.run(["--catalog", str(catalog), "post a message"]) == 0
    found = capsys.readouterr().out
    assert found.startswith("use: chat.post_message (confidence ")
    assert '{"channel": "<channel>", "text": "<text>"}' in found
    assert "\nnext: Call callTool for chat.post_message" in found

    assert describe.run(["--catalog", str(catalog), "chat.post_message"]) == 0
    assert '"additionalProperties": false' in capsys.readouterr().out

    assert (
        call.run(["--catalog", str(catalog), "chat.post_message", "--arguments", '{"channel": "a", "text": "b"}'])
        == 0
    )
    assert '"simulated": true' in capsys.readouterr().out


def test_concise_for_scripts(capsys: pytest.CaptureFixture[str], catalog: Path) -> None:
    shared = ["--catalog", str(catalog), "--format", "concise"]

    find.run([*shared, "post a message"])
    describe.run([*shared, "chat.post_message", "--part", "/properties/text"])
    describe.run([*shared, "chat.post_message"])

    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("use chat.post_message ")
    assert json.loads(second) == {"type": "string"}
    assert json.loads(third) == POST_SCHEMA


def test_a_folder_of_catalogs(tooleval: Run, catalog: Path, tmp_path: Path) -> None:
    tools_list = {"tools": [{"name": "roll_dice", "description": "Roll dice", "inputSchema": {"type": "object"}}]}
    (tmp_path / "dice.json").write_text(json.dumps(tools_list), encoding="utf-8")

    finished = tooleval("find", "--catalog", str(tmp_path), "roll dice", "--format", "concise")

    assert finished.stdout.startswith("use dice.roll_dice ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["find", "--catalog", "missing.json", "x"], "missing.json: cannot be read"),
        (["find", "x"], "--catalog"),
        (["find", "--catalog", "CATALOG"], "QUERY"),
        (["find", "--catalog", "CATALOG", "x", "--limit", "many"], "--limit"),
        (["find", "--catalog", "CATALOG", "x", "--format", "yaml"], "--format"),
        (["find", "--catalog", ".", "x"], "holds no *.json"),
        (["call", "--catalog", "CATALOG", "chat.post_message", "--arguments", "{"], "--arguments:1: is not JSON"),
        (["call", "--catalog", "CATALOG", "chat.post_message", "--arguments", ""], "--arguments:1: is empty"),
        (
            ["call", "--catalog", "CATALOG", "chat.post_message", "--arguments", '{"a": 1, "a": 2}'],
            "'a' stands twice",
        ),
        (["call", "--catalog", "CATALOG", "chat.post_message", "--arguments", '{"a": NaN}'], "NaN"),
    ],
)
def test_wrong_usage_is_2(tooleval: Run, catalog: Path, arguments: list[str], expected: str) -> None:
    finished = tooleval(*(str(catalog) if one == "CATALOG" else one for one in arguments))

    assert finished.returncode == 2
    assert finished.stdout == ""
    assert expected in finished.stderr


def test_a_broken_catalog_is_2(tooleval: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(
        '{"servers": [], "tools": [{"toolRef": "a.b", "serverId": "a", "name": "b"}]}', encoding="utf-8"
    )

    finished = tooleval("find", "--catalog", str(path), "x")

    assert finished.returncode == 2
    assert "broken.json:1" in finished.stderr
