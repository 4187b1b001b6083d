"""The configuration of MCP servers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.cases.case import ServerUse, Source, ToolUseCase
from pytest_tooleval.cases.schema import schema_text
from pytest_tooleval.errors import CaseError, ToolUnavailableError
from pytest_tooleval.tools.mcp.config import (
    DEFAULT_CALL_SECONDS,
    DEFAULT_START_SECONDS,
    Command,
    Endpoint,
    McpConfig,
    McpServer,
    expand,
    load_mcp_config,
)

SHOWN = Path("evals/mcp.json")


def load(folder: Path, content: Any) -> McpConfig:
    path = folder / "mcp.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_mcp_config(path, SHOWN)


def server(folder: Path, **entry: Any) -> McpServer:
    return load(folder, {"mcpServers": {"a": entry}}).servers["a"]


def problems(folder: Path, content: Any) -> list[str]:
    with pytest.raises(CaseError) as caught:
        load(folder, content)
    return [str(problem) for problem in caught.value.problems]


def test_the_least_servers(tmp_path: Path) -> None:
    entries = {"git": {"command": "mcp-server-git"}, "docs": {"url": " https://docs.example.com/mcp "}}
    assert load(tmp_path, {"mcpServers": entries}) == McpConfig(
        {
            "git": McpServer("git", Command("mcp-server-git"), tmp_path, place=f"{SHOWN} at /mcpServers/git"),
            "docs": McpServer(
                "docs", Endpoint("https://docs.example.com/mcp"), tmp_path, place=f"{SHOWN} at /mcpServers/docs"
            ),
        },
        SHOWN,
    )


def test_every_key_of_a_server(tmp_path: Path) -> None:
    own = {"isolated": True, "startSeconds": 5, "callSeconds": 2.5, "disabled": True}
    command = {"type": "stdio", "command": "uvx", "args": ["x"], "env": {"A": "1"}, "cwd": ".."}
    assert server(tmp_path, **command, **own) == McpServer(
        name="a",
        target=Command("uvx", ("x",), {"A": "1"}, ".."),
        folder=tmp_path,
        per_case=True,
        start_seconds=5.0,
        call_seconds=2.5,
        disabled=True,
        place=f"{SHOWN} at /mcpServers/a",
    )
    url = {"url": "http://localhost:1/mcp", "headers": {"X": "y"}}
    for kind, is_sse in (("http", False), ("streamable-http", False), ("streamableHttp", False), ("sse", True)):
        assert server(tmp_path, type=kind, **url).target == Endpoint("http://localhost:1/mcp", {"X": "y"}, is_sse)


def test_keys_of_other_clients_mean_nothing(tmp_path: Path) -> None:
    others = {
        "autoApprove": ["x"],
        "alwaysAllow": [],
        "timeout": 60,
        "description": "d",
        "icon": 1,
        "trust": True,
        "envFile": ".env",
        "disabledTools": [],
    }
    assert server(tmp_path, command="x", **others) == server(tmp_path, command="x")
    assert load(tmp_path, {"mcpServers": {}, "inputs": [], "$schema": "x", "other": 1}).servers == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "evals/mcp.json:1: found a list ([1]); expected an object with 'mcpServers'"),
        ("{}", "evals/mcp.json:1: the key 'mcpServers' is missing"),
        (
            '{\n"servers": {}}',
            "evals/mcp.json:2 at /servers: the servers stand under 'servers'; expected them under 'mcpServers'",
        ),
        (
            '{"mcpserver": {}}',
            "evals/mcp.json:1 at /mcpserver: the servers stand under 'mcpserver'; expected them under 'mcpServers'",
        ),
        ('{"mcpServers": {,}}', "evals/mcp.json:1: is not JSON: Expecting property name enclosed in double quotes"),
        ("", "evals/mcp.json:1: is empty; expected a JSON object or a list of objects"),
        ('{"mcpServers": {"a": 1}}', "evals/mcp.json:1 at /mcpServers/a: found 1; expected an object"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str, said: str) -> None:
    assert [problem.partition(" (column")[0] for problem in problems(tmp_path, content)] == [said]


@pytest.mark.parametrize(
    ("entry", "pointer", "message"),
    [
        (
            {},
            "",
            "has neither 'command' nor 'url'; give 'command' for a program to start, or 'url' for a server that listens",
        ),
        (
            {"command": "x", "url": "http://x"},
            "",
            "has both 'command' and 'url'; give 'command' for a program to start, or 'url' for a server that listens",
        ),
        ({"command": " "}, "/command", 'found " "; expected the program that is the server, not blank'),
        ({"command": "x", "args": "-v"}, "/args", 'found "-v"; expected a list'),
        ({"command": "x", "args": [1]}, "/args/0", "found 1; expected a string"),
        ({"command": "x", "env": {"PORT": 80}}, "/env/PORT", "found 80; expected a string"),
        ({"command": "x", "env": {"A=B": ""}}, "/env", 'found "A=B"; expected a variable\'s name'),
        ({"command": "x", "callSeconds": 0}, "/callSeconds", "found 0; expected a number of seconds above 0"),
        ({"command": "x", "isolatd": True}, "/isolatd", "unknown key 'isolatd' (did you mean 'isolated'?)"),
        (
            {"command": "x", "startseconds": 1},
            "/startseconds",
            "unknown key 'startseconds' (did you mean 'startSeconds'?)",
        ),
        ({"command": "x", "headers": {}}, "/headers", "'headers' means nothing beside 'command'; leave it out"),
        ({"url": "http://x", "args": []}, "/args", "'args' means nothing beside 'url'; leave it out"),
        (
            {"url": "http://x", "type": "stdio"},
            "/type",
            "a server of type 'stdio' has a 'command', and this one has none",
        ),
        ({"command": "x", "type": "http"}, "/type", "a server of type 'http' has a 'url', and this one has none"),
        (
            {"command": "x", "type": "htttp"},
            "/type",
            "found \"htttp\"; expected one of: stdio, http, streamable-http, streamableHttp, sse (did you mean 'http'?)",
        ),
        (
            {"url": "localhost:1"},
            "/url",
            'found "localhost:1"; expected a URL that begins with http:// or https://',
        ),
        (
            {"url": "http://x", "headers": {"K": "${input:key}"}},
            "/headers/K",
            "${input:key} is known to another client only; write ${NAME} for a variable",
        ),
        (
            {"url": "http://x/{worktree}"},
            "/url",
            "{worktree} stands for the case's folder in command, args, env and cwd only",
        ),
        (
            {"command": "x", "args": ["{worktree}"], "isolated": False},
            "/isolated",
            "is false, and yet the entry names {worktree}, which each case has of its own",
        ),
    ],
)
def test_an_entry_that_is_wrong(tmp_path: Path, entry: dict[str, Any], pointer: str, message: str) -> None:
    place = f"evals/mcp.json:1 at /mcpServers/a{pointer}"
    assert problems(tmp_path, {"mcpServers": {"a": entry}}) == [f"{place}: {message}"]


def test_all_faults_are_told_each_with_its_line(tmp_path: Path) -> None:
    content = '{"mcpServers": {\n"a": {"command": "x",\n"headers": {}},\n"b": {}}}'
    assert [problem.split(" at ")[0] for problem in problems(tmp_path, content)] == [f"{SHOWN}:3", f"{SHOWN}:4"]


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "\x1b[1m", "x" * 101])
def test_a_name_that_cannot_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    assert len(problems(tmp_path, {"mcpServers": {name: {"command": "x"}}})) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$A {A} %A%", "$A {A} %A%"),
        ("${A}", "one"),
        ("<${A}-${A}>", "<one-one>"),
        ("${env:A}", "one"),
        ("${A:-x}", "one"),
        ("${NONE:-x y/z}", "x y/z"),
        ("${NONE:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${x%.*} ${1} ${}", "${x%.*} ${1} ${}"),
        ("{worktree}/a", "/work/tree/a"),
        ("${TRICK}", "{worktree} ${A}"),
    ],
)
def test_placeholders(tmp_path: Path, text: str, expected: str) -> None:
    environ = {"A": "one", "EMPTY": "", "TRICK": "{worktree} ${A}"}
    made = server(tmp_path, command="x", args=[text], env={"V": text}, cwd=text)
    target = expand(made, environ, Path("/work/tree")).target
    assert target == Command("x", (expected,), {"V": expected}, expected)


def test_placeholders_of_an_endpoint(tmp_path: Path) -> None:
    made = server(tmp_path, url="${HOST:-http://h}/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    expanded = expand(made, {"TOKEN": "t0ken"})
    assert expanded.target == Endpoint("http://h/mcp", {"Authorization": "Bearer t0ken"})
    assert set(expanded.secrets) == {"Bearer t0ken", "t0ken"}


def test_configured_values_are_secrets_and_paths_are_not(tmp_path: Path) -> None:
    env = {"A": "literal", "B": "${KEY}!", "ROOT": "{worktree}/x", "WHERE": str(tmp_path)}
    made = server(tmp_path, command="x", args=["--key=${KEY}", "plain"], env=env)
    assert set(expand(made, {"KEY": "k3y"}, Path("/w")).secrets) == {"literal", "k3y!", "k3y"}


def test_variables_that_are_not_set_are_all_named(tmp_path: Path) -> None:
    made = server(tmp_path, command="${A}", args=["${B}", "${A}"], cwd="${C:-.}")
    with pytest.raises(ToolUnavailableError) as caught:
        expand(made, {})
    assert str(caught.value) == (
        "MCP server 'a' needs the environment variables that evals/mcp.json at /mcpServers/a names; not set: A, B. "
        "Set them, or give a default as ${NAME:-default}"
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "x"}, False),
        ({"command": "x", "isolated": True}, True),
        ({"command": "{worktree}/serve"}, True),
        ({"command": "x", "args": ["a", "--root={worktree}"]}, True),
        ({"command": "x", "env": {"A": "{worktree}"}}, True),
        ({"command": "x", "env": {"{worktree}": "a"}}, False),
        ({"command": "x", "cwd": "{worktree}"}, True),
        ({"url": "http://x", "isolated": True}, True),
    ],
)
def test_which_servers_each_case_has_of_its_own(tmp_path: Path, entry: dict[str, Any], *, expected: bool) -> None:
    assert server(tmp_path, **entry).per_case is expected


def test_names_that_a_case_cannot_have(tmp_path: Path) -> None:
    config = load(tmp_path, {"mcpServers": {"git": {"command": "x"}, "off": {"command": "x", "disabled": True}}})
    case = ToolUseCase("c", "t", Source(tmp_path), mcp=tuple(map(ServerUse, ("git", "gti", "weather", "off"))))
    assert config.unknown_names(case) == [
        "'mcp' names the server 'gti', which is not in evals/mcp.json (did you mean 'git'?)",
        "'mcp' names the server 'weather', which is not in evals/mcp.json; there are: git, off",
        "'mcp' names the server 'off', which is disabled in evals/mcp.json",
    ]
    assert McpConfig(shown=SHOWN).unknown_names(case)[0] == (
        "'mcp' names the server 'git', and no servers are configured; describe it in evals/mcp.json"
    )


def test_values_are_not_shown_when_a_server_is(tmp_path: Path) -> None:
    made = server(tmp_path, command="x", env={"KEY": "s3cr3t"})
    assert "s3cr3t" not in repr(expand(made, {}))
    assert "s3cr3t" not in repr(expand(server(tmp_path, url="http://u:s3cr3t@h/", headers={"A": "s3cr3t"}), {}))


def test_every_key_is_documented() -> None:
    keys = json.loads(schema_text("mcp"))["$defs"]["server"]["properties"]
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [*list(keys)[1:7], "type", *list(keys)[7:]]
    assert f"Default: {DEFAULT_START_SECONDS:g} |" in page
    assert f"Default: {DEFAULT_CALL_SECONDS:g} |" in page
