from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_samples import chat_answer
from loopback import as_json, serving

from pytest_tooleval.agent.loop import AgentSettings
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import (
    ScriptedCall,
    ScriptedTurn,
    ServerUse,
    Source,
    TextCheck,
    ToolUseCase,
    Verifier,
)
from pytest_tooleval.families.first_call import FirstCallTarget
from pytest_tooleval.families.tool_use import ToolUseRunner, ToolUseTarget
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.presets import PRESETS, preset_factory
from pytest_tooleval.providers.provider import Provider, ProviderSettings
from pytest_tooleval.tools.registry import Offer, ToolRegistry
from pytest_tooleval.tools.source import CaseTools
from pytest_tooleval.tools.tool import Tool, ToolContext

GREP = ScriptedCall("grep", {"pattern": "port"})


def case(*turns: ScriptedTurn, **keys: Any) -> ToolUseCase:
    return ToolUseCase("c", "Which port?", Source(Path("c.json")), mock=turns, **keys)


def target(tmp_path: Path, provider: Provider | None = None, **settings: Any) -> FirstCallTarget:
    tools = ToolRegistry()
    tools.add_built_in()
    runner = ToolUseRunner(tools, WorktreeRoot(tmp_path), AgentSettings(), **settings)
    return FirstCallTarget("mock", provider or MockProvider(), runner)


def measure(tmp_path: Path, measured: ToolUseCase) -> CaseOutcome:
    return target(tmp_path).measure(measured)


def test_a_right_start_passes_and_no_folder_is_made(tmp_path):
    measured = case(
        ScriptedTurn("", (GREP,)),
        ScriptedTurn("8443"),
        expected=(("grep", "file_read"),),
        verifier=Verifier(must_include=("grep",), answer=TextCheck(("8443",))),
        files={"a.ini": "port = 8443\n"},
    )
    outcome = measure(tmp_path, measured)

    assert (outcome.passed, outcome.error, outcome.skipped, outcome.worktree) == (True, "", "", "")
    assert list(tmp_path.iterdir()) == []
    record = outcome.record
    assert record["tier"] == "first_call"
    assert record["notJudged"] == ["answer"]
    assert (record["pass"], record["accuracy"], record["status"], record["errors"]) == (True, 1.0, "ok", 0)
    assert (record["calls"], record["turns"], record["names"]) == (1, 1, ["grep"])
    assert (record["trace"][0]["arguments"], record["trace"][0]["outcome"]) == ({"pattern": "port"}, "not_run")
    assert json.loads(json.dumps(record)) == record


def test_its_record_has_every_field_of_a_whole_run(tmp_path):
    measured = case(ScriptedTurn("", (GREP,)), ScriptedTurn("8443"), expected=(("grep",),))
    first = target(tmp_path)
    whole = ToolUseTarget("mock", MockProvider(), first.runner).measure(measured)
    assert set(first.measure(measured).record) == {*whole.record, "tier", "notJudged"}


def test_a_wrong_start_misses(tmp_path):
    outcome = measure(tmp_path, case(ScriptedTurn("", (GREP,)), expected=(("file_read",),)))

    assert not outcome.passed
    assert (outcome.error, outcome.skipped) == ("", "")
    assert (outcome.record["pass"], outcome.record["accuracy"]) == (False, 0.0)
    assert outcome.record["mismatches"] == [
        {
            "kind": "different",
            "what": "call 1: expected file_read, called grep; expected [file_read], called [grep]",
        }
    ]


def test_a_turn_of_which_no_call_can_be_run_misses_whatever_else_is_asked(tmp_path):
    turn = ScriptedTurn("", (ScriptedCall("search", {}), ScriptedCall("grep", "{oops")))
    record = measure(tmp_path, case(turn, verifier=Verifier(avoid=("run_command",)))).record
    assert [entry["outcome"] for entry in record["trace"]] == ["unknown_tool", "invalid_arguments"]
    assert (record["errors"], record["calls"], record["pass"]) == (2, 2, False)
    assert record["mismatches"][0]["what"] == "the first turn: expected a call that can be run, but none can"


def test_one_call_that_can_be_run_is_enough_where_nothing_else_is_asked(tmp_path):
    turn = ScriptedTurn("", (ScriptedCall("search", {}), ScriptedCall("list_dir", {})))
    assert measure(tmp_path, case(turn, verifier=Verifier(avoid=("run_command",)))).record["pass"] is True


def test_a_case_that_asks_for_the_end_only_is_skipped_before_the_model_is_asked(tmp_path):
    only_answer = case(ScriptedTurn("8443"), verifier=Verifier(answer=TextCheck(("8443",))))
    reason = "the first turn decides nothing of what the case checks: answer"
    assert target(tmp_path).cannot_run(only_answer) == reason


def test_a_case_that_the_provider_cannot_run_says_so(tmp_path):
    unscripted = ToolUseCase("c", "t", Source(Path("c.json")), expected=((),))
    assert "no mock script" in target(tmp_path).cannot_run(unscripted)
    assert target(tmp_path).cannot_run(case(ScriptedTurn("x"), expected=((),))) is None


def test_a_first_turn_that_decides_nothing_is_skipped_with_what_it_used(tmp_path):
    looks_around = case(ScriptedTurn("", (GREP,)), verifier=Verifier(must_include=("file_edit", "file_read")))
    outcome = measure(tmp_path, looks_around)
    assert outcome.skipped == "the first turn decides nothing of what the case checks: must_include"
    assert outcome.error == ""
    assert outcome.record["names"] == ["grep"]


def test_saying_nothing_misses_where_nothing_else_is_asked(tmp_path):
    outcome = measure(tmp_path, case(ScriptedTurn(""), verifier=Verifier(avoid=("grep",))))
    assert not outcome.passed
    assert [mismatch["kind"] for mismatch in outcome.record["mismatches"]] == ["missing"]


def http_target(tmp_path: Path, url: str, **settings: Any) -> FirstCallTarget:
    factory = preset_factory(next(preset for preset in PRESETS if preset.name == "openai"), {})
    return target(tmp_path, factory(ProviderSettings("m", url, retries=0)), **settings)


def tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


@pytest.mark.parametrize(
    ("finish", "passed", "status"), [("tool_calls", True, "ok"), ("length", False, "truncated")]
)
def test_a_server_is_asked_once(tmp_path, finish, passed, status):
    message = {
        "content": None,
        "tool_calls": [tool_call("grep", {"pattern": "x"}), tool_call("glob", {"pattern": "*"})],
    }
    usage = {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420}
    with serving(as_json(chat_answer(message, finish, usage=usage))) as server:
        measured = ToolUseCase("c", "t", Source(Path("c.json")), expected=(("grep", "glob", "file_read"),))
        opened = http_target(tmp_path, server.url)
        outcome = opened.measure(measured)
        opened.close()

    assert len(server.asked) == 1
    assert (outcome.passed, outcome.error, outcome.record["status"]) == (passed, "", status)
    assert (outcome.record["tokens"], outcome.record["attempts"]) == (420, 1)
    if not passed:
        assert outcome.record["names"] == ["grep"]
        assert outcome.record["notJudged"] == ["expected"]
        assert outcome.record["mismatches"] == [
            {
                "kind": "different",
                "what": "the first turn: expected to be whole, but the reply was cut off by the output limit",
            }
        ]


def test_an_api_that_fails_is_not_measured(tmp_path):
    with serving(as_json({"error": {"message": "overloaded"}}, status=503)) as server:
        opened = http_target(tmp_path, server.url)
        outcome = opened.measure(ToolUseCase("c", "t", Source(Path("c.json")), expected=(("grep",),)))
        opened.close()

    assert "503" in outcome.error
    assert (outcome.passed, outcome.skipped) == (False, "")
    assert (outcome.record["pass"], outcome.record["accuracy"], outcome.record["tokens"]) == (None, None, None)


def test_a_demanded_tool_that_is_not_offered_is_told(tmp_path):
    measured = case(ScriptedTurn("", (GREP,)), expected=(("file_edit",),))
    assert measure(tmp_path, measured).record["notes"] == [
        "file_edit is demanded and not offered: the permission of category 'edit' is 'deny'"
    ]


class OneServer:
    """Adds a tool to what a case is offered, where the case names a server."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return "no server here" if case.id == "far" else None

    @contextlib.contextmanager
    def offer(self, case: ToolUseCase, base: Offer, context: ToolContext) -> Iterator[CaseTools]:
        self.folders.append(context.worktree)
        ask = Tool("ask", "Ask.", {"type": "object"}, "mcp", lambda _arguments, _context: "")
        yield CaseTools(replace(base, offered={**base.offered, "ask": ask}))

    def close(self) -> None:
        pass


def test_the_tools_of_a_cases_servers_are_offered_and_the_folder_is_removed(tmp_path):
    servers = OneServer()
    asking = case(ScriptedTurn("", (ScriptedCall("ask", {}),)), expected=(("ask",),), mcp=(ServerUse("oracle"),))
    record = target(tmp_path, servers=servers).measure(asking).record
    assert [(entry["name"], entry["outcome"]) for entry in record["trace"]] == [("ask", "not_run")]
    assert record["pass"]
    assert [folder.exists() for folder in servers.folders] == [False]


def test_a_case_whose_server_cannot_be_had_is_skipped(tmp_path):
    far = replace(case(ScriptedTurn("x"), expected=(("grep",),)), id="far")
    assert target(tmp_path, servers=OneServer()).cannot_run(far) == "no server here"
