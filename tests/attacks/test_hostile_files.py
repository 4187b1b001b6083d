from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hostile_replies import ANSI
from sample_result import CATALOG, ROWS
from suite_writer import SuiteWriter
from terminal_output import assert_clean

from pytest_tooleval.cli import main as cli

IMPORTED_ONCE = np
SERVERS = [{"id": ANSI, "status": "online"}]
ODD_FILES: dict[str, Any] = {
    "fixtures/id.json": {"id": ANSI, "task": "t", "expected": []},
    "fixtures/key.json": {ANSI: 1, "task": "t", "expected": []},
    "fixtures/tag.json": {"task": "t", "expected": [], "tags": [ANSI]},
    "fixtures/tool.json": {"task": "t", "expected": [ANSI], "tools_deny": [ANSI]},
    "fixtures/file.json": {"task": "t", "expected": [], "files": {f"../{ANSI}": ANSI}},
    "fixtures/server.json": {"task": "t", "expected": [], "mcp": [ANSI]},
    "fixtures/text.json": ANSI,
    "discovery/rows.jsonl": json.dumps({**ROWS[0], "acceptable": [ANSI], "category": ANSI}),
    "catalog/servers.json": {**CATALOG, "servers": SERVERS},
    "thresholds.json": {"tool_use": {ANSI: {"passRateMin": 1}, "overall": {"must_pass": [ANSI]}}},
    "mcp.json": {"mcpServers": {ANSI: {"command": ANSI}}},
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_what_is_wrong_with_a_file_is_told_in_plain_text(suite: SuiteWriter, name: str) -> None:
    suite.write("catalog/c.json", CATALOG)
    suite.passing("good")
    suite.write(name, ODD_FILES[name])
    result = suite.run("--continue-on-collection-errors", "-rA")
    assert_clean(result)
    assert result.parseoutcomes()["errors"] >= 1


def test_what_a_fixture_says_of_itself_reaches_no_terminal_raw(suite: SuiteWriter) -> None:
    suite.fixture(
        "odd",
        description=ANSI,
        task=ANSI,
        files={"a.txt": ANSI},
        expected=[ANSI, "grep"],
        verifier={"must_include": [ANSI], "answer": {"contains": [ANSI]}, "files": {"a.txt": {"equals": "b"}}},
        mock=[{"calls": [{"name": ANSI, "arguments": {ANSI: ANSI}}]}, {"text": ANSI}],
    )
    result = suite.run("-rA", "-v")
    assert_clean(result)
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("command", ["lint", "find", "describe", "call"])
def test_the_command_shows_no_file_raw(command: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**CATALOG, "servers": SERVERS}))
    rest = [] if command == "lint" else ["--catalog"]
    asked = {"find": ["x"], "describe": ["a.b"], "call": ["a.b"]}.get(command, [])
    assert cli.main([command, *rest, str(path), *asked]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert r"\x1b[31m" in said.err
