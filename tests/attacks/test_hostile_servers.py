from __future__ import annotations

import json
import uuid
from typing import Any
from xml.etree import ElementTree

import pytest
from hostile_replies import ANSI, nested
from mcp_misbehaving import Quirk
from mcp_project import MARK, misbehaving, processes_with
from scripted_runs import call
from suite_writer import SuiteWriter
from terminal_output import assert_clean

SERVERS = {
    "odd": [Quirk.ODD_TOOLS, Quirk.BANNER],
    "flood": [Quirk.FLOOD, Quirk.CHATTY],
    "plain": [],
    "broken": [Quirk.BROKEN],
}


def answers(result: Any) -> dict[str, Any]:
    return call("answer", result=result)


def raw(result: str) -> dict[str, Any]:
    return call("raw", line=f'{{"jsonrpc": "2.0", "id": ID, "result": {result}}}')


TEXTS = [{"type": "text", "text": ANSI}] * 500
CASES: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "odd tools": ("odd", [call("\\x1b[31mred\\x1b[0m\\n"), call("deep"), call("echo", text=ANSI)], "missed"),
    "endless notifications": ("flood", [call("echo", text=ANSI)], "missed"),
    "escapes": ("plain", [answers({"content": TEXTS, "isError": True})], "missed"),
    "escapes in an error": ("plain", [call("refuse", code=-32000, text=ANSI * 100)], "missed"),
    "odd content": ("plain", [answers({"content": {"a": ANSI}}), answers([1]), answers(None)], "error"),
    "links": ("plain", [answers({"content": [{"type": "resource_link", "uri": ANSI, "name": ANSI}]})], "missed"),
    "nested": ("plain", [raw('{"content": [], "structuredContent": ' + nested(90) + "}")], "missed"),
    "nested deeper": ("plain", [raw('{"content": [], "structuredContent": ' + nested(600) + "}")], "missed"),
    "nested without end": ("plain", [raw('{"structuredContent": ' + nested(100_000) + "}")], "error"),
    "long number": ("plain", [raw('{"content": [], "structuredContent": ' + "9" * 6000 + "}")], "error"),
    "no number": ("plain", [raw('{"content": [], "structuredContent": NaN}')], "missed"),
    "large": ("plain", [call("huge", chars=3_000_000)], "missed"),
    "too large": ("plain", [call("huge", chars=20_000_000)], "error"),
    "stray lines": ("plain", [call("print", text=ANSI * 1000)], "missed"),
    "last words": ("plain", [call("leave", code=3, words=ANSI * 100)], "error"),
    "no start": ("broken", [call("echo", text="x")], "error"),
}


def test_nothing_that_a_server_says_breaks_a_run_or_its_output(
    suite: SuiteWriter, pytester: pytest.Pytester
) -> None:
    mark = uuid.uuid4().hex
    entries = {
        name: misbehaving(*quirks, env={MARK: mark}, isolated=True, callSeconds=3)
        for name, quirks in SERVERS.items()
    }
    suite.write("mcp.json", {"mcpServers": entries})
    for at, (server, script, _) in enumerate(CASES.values()):
        suite.fixture(f"c{at:02}", mcp=[server], mock=[*script, {"text": "Done."}], expected=["glob"])
    result = suite.run("-rA", "--tooleval-json", "r.json", "--junitxml", "j.xml", "--tooleval-timeout", "20")

    assert_clean(result, most=150_000, longest=2100)
    assert len(list(ElementTree.parse(pytester.path / "j.xml").iter("testcase"))) == len(CASES)
    cases = json.loads((pytester.path / "r.json").read_text())["toolUse"]["cases"]
    verdicts = {name: case["verdict"] for name, case in zip(CASES, cases, strict=True)}
    assert verdicts == {name: verdict for name, (_, _, verdict) in CASES.items()}
    assert (pytester.path / "r.json").stat().st_size < 1_000_000
    assert processes_with(mark) == set()
