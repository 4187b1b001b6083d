"""Whole runs whose cases use MCP servers: real servers, real pytest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("mcp")

import mcp.client.sse
import mcp.client.streamable_http
from mcp_misbehaving import Quirk
from mcp_project import MARK, misbehaving, processes_with, soon

IMPORTED_ONCE = (mcp.client.sse, mcp.client.streamable_http)
FIXTURE = {
    "task": "Say hello to the server.",
    "mcp": ["own"],
    "verifier": {"args": {"echo": {"text": "hello"}}},
    "mock": [{"calls": [{"name": "echo", "arguments": {"text": "hello"}}]}, {"text": "Done."}],
}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Any:
    """Write a suite: servers by name, and fixtures by name."""

    def written(servers: dict[str, Any], **fixtures: Any) -> None:
        folder = pytester.path / "evals" / "fixtures"
        folder.mkdir(parents=True, exist_ok=True)
        (folder.parent / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        for name, fixture in fixtures.items():
            (folder / f"{name}.json").write_text(json.dumps(fixture))
        (pytester.path / "pytest.ini").touch()

    return written


def own(*quirks: Quirk, **keys: Any) -> dict[str, Any]:
    return {"own": misbehaving(*quirks, env={MARK: f"runs-{os.getpid()}"}, **keys)}


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    result = pytester.runpytest_inprocess("-p", "no:randomly", "evals", "--tooleval-json", "r.json", *arguments)
    assert processes_with(f"runs-{os.getpid()}") == set()
    path = pytester.path / "r.json"
    return result, json.loads(path.read_text()) if path.exists() else {}


def test_cases_use_a_server_one_after_the_other_and_at_once(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(), **{f"case{number}": FIXTURE for number in range(6)})
    for arguments in ((), ("--tooleval-concurrency", "4"), ("-n", "2")):
        run(pytester, *arguments)[0].assert_outcomes(passed=6)


def test_what_the_result_file_says_of_a_call(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(Quirk.BANNER), hello=FIXTURE)
    _, document = run(pytester)
    (case,) = document["toolUse"]["cases"]
    assert case["trace"] == [{"name": "echo", "arguments": {"text": "hello"}, "outcome": "ok"}]
    assert "MCP server 'own' printed" in case["notes"][0]


def test_a_server_that_cannot_be_started_is_an_error_and_no_failure(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(Quirk.BROKEN), hello=FIXTURE, again=FIXTURE)
    result, document = run(pytester)
    result.assert_outcomes(errors=2)
    text = result.stdout.str()
    assert "not measured: MCP server 'own' could not be started: it closed its output (exit code 1)" in text
    assert "\x1b[31m" not in text
    assert "\\x1b[31mdatabase" in text
    assert {case["status"] for case in document["toolUse"]["cases"]} == {"error"}


def test_odd_names_do_not_reach_the_terminal(suite: Any, pytester: pytest.Pytester) -> None:
    name = "\\x1b[31mred\\x1b[0m\\n"
    mock = [{"calls": [{"name": name}]}, {"text": "Done."}]
    suite(
        own(Quirk.ODD_TOOLS),
        red={**FIXTURE, "mock": mock},
        broken={**FIXTURE, "expected": ["broken"], "mock": mock},
    )
    result, document = run(pytester)
    result.assert_outcomes(failed=2)
    assert "\x1b[31m" not in result.stdout.str()
    assert {entry["outcome"] for case in document["toolUse"]["cases"] for entry in case["trace"]} == {"ok"}


def test_servers_that_are_not_there_are_errors_at_collection(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(), hello={**FIXTURE, "mcp": ["onw"]})
    result, _ = run(pytester)
    result.stdout.fnmatch_lines(
        [
            "evals/fixtures/hello.json:1: hello: 'mcp' names the server 'onw', which is not in evals/mcp.json (did you mean 'own'?)"
        ]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_wrong_configuration_is_an_error_at_collection(suite: Any, pytester: pytest.Pytester) -> None:
    suite({"own": {"comand": "x"}}, hello=FIXTURE)
    result, _ = run(pytester)
    result.stdout.fnmatch_lines(
        ["evals/mcp.json:1 at /mcpServers/own/comand: unknown key 'comand' (did you mean 'command'?)"]
    )


def test_another_file_of_servers(suite: Any, pytester: pytest.Pytester) -> None:
    suite({}, hello=FIXTURE)
    (pytester.path / "other.json").write_text(json.dumps({"mcpServers": own()}))
    run(pytester, "--tooleval-mcp-config", "other.json")[0].assert_outcomes(passed=1)
    result, _ = run(pytester, "--tooleval-mcp-config", "none.json")
    result.stdout.fnmatch_lines(["none.json: cannot be read: No such file or directory"])


def test_a_denied_tool_of_a_server(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(), hello={**FIXTURE, "tools_deny": ["echo"]}, typo={**FIXTURE, "tools_deny": ["ecoh"]})
    result, document = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    outcomes = {case["id"]: [entry["outcome"] for entry in case["trace"]] for case in document["toolUse"]["cases"]}
    assert outcomes == {"hello": ["denied"], "typo": []}


def test_first_calls_know_the_tools(suite: Any, pytester: pytest.Pytester) -> None:
    suite(own(), hello={**FIXTURE, "expected": ["echo"]})
    result, _ = run(pytester, "--tooleval-first-call")
    result.assert_outcomes(passed=1)


def test_a_run_that_is_interrupted_leaves_no_server(suite: Any, pytester: pytest.Pytester) -> None:
    mock = [{"calls": [{"name": "slow", "arguments": {"seconds": 60}}]}]
    suite(own(Quirk.FAMILY), **{f"case{number}": {**FIXTURE, "mock": mock} for number in range(3)})
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "evals"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    mark = f"runs-{os.getpid()}"
    assert soon(lambda: len(processes_with(mark)) == 2, 20)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2, output
    assert processes_with(mark) == set()
