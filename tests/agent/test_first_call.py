from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.agent.first_call import ask_once
from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.cases.case import ScriptedCall, ScriptedTurn, Source, ToolUseCase
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ChatRequest, Provider, Sampling
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import AssistantMessage, Run, ToolCall, Usage, UserMessage

BUILT_IN = "file_read, list_dir, glob, grep, web_fetch"


class OneReply:
    """Gives one reply, and fails when it is asked again."""

    def __init__(self, reply: AssistantMessage | Exception) -> None:
        self._reply: AssistantMessage | Exception | None = reply
        self.requests: list[ChatRequest] = []

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        self.requests.append(request)
        reply, self._reply = self._reply, None
        assert reply is not None, "the model was asked twice"
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self) -> None:
        pass


def call(name: str, arguments: dict[str, Any] | None, raw: str = "") -> ToolCall:
    return ToolCall(f"id-{name}", name, arguments, raw)


def says(text: str = "", *calls: ToolCall, finish: Any = "stop", usage: Usage | None = None) -> AssistantMessage:
    return AssistantMessage(text, calls, finish, usage)


def case(**keys: Any) -> ToolUseCase:
    return ToolUseCase("c", "Do it.", Source(Path("c.json")), **{"expected": ((),), **keys})


def registry(*tools: Tool) -> ToolRegistry:
    found = ToolRegistry()
    found.add_built_in()
    for tool in tools:
        found.add(tool)
    return found


def ask(model: Provider, *tools: Tool, settings: AgentSettings | None = None, **keys: Any) -> Run:
    asked = case(**keys)
    return ask_once(asked, model, registry(*tools).offer_for(asked), settings or AgentSettings())


def test_the_calls_of_the_first_reply_are_taken_in_the_models_order_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran: list[str] = []
    spy = Tool("spy", "d", {"type": "object"}, "read", lambda arguments, context: ran.append("spy") or "seen")
    reply = says(
        "First I look.",
        call("file_write", {"path": "a.txt", "content": "x"}),
        call("spy", {}),
        call("file_read", {"path": "missing.txt"}),
        usage=Usage(input=90, output=7),
    )
    run = ask(OneReply(reply), spy, tool_permission={"edit": "allow"})

    assert ran == []
    assert list(tmp_path.iterdir()) == []
    assert (run.status, run.detail, run.turns, run.attempts, run.notes) == ("ok", "", 1, 1, ())
    assert run.names == ("file_write", "spy", "file_read")
    assert [(entry.turn, entry.outcome, entry.result, entry.failed) for entry in run.trace] == [
        (1, "not_run", "", False)
    ] * 3
    assert run.messages == (UserMessage("Do it."), run.messages[1])
    assert run.messages[1].calls == tuple(entry.call for entry in run.trace)
    assert run.answer == ""
    assert run.usage == Usage(input=90, output=7)


@pytest.mark.parametrize(
    "called",
    [
        call("do_magic", {}),
        call("do_magic", None, "{oops"),
        call("", {}),
        call("file_write", {"path": "a", "content": "b"}),
        call("file_read", None, '{"path": '),
        call("file_read", {}),
        call("file_read", {"path": 5}),
        call("file_read", {"path": "a", "nonsense": 1}),
    ],
)
def test_a_call_that_cannot_be_run_is_told_as_in_the_whole_loop(called, tmp_path):
    run = ask(OneReply(says("", called)))

    asked = case(max_turns=1)
    whole = Agent(
        asked, OneReply(says("", called)), registry().offer_for(asked), ToolContext(tmp_path), AgentSettings()
    )
    (entry,), (expected,) = run.trace, whole.run().trace
    assert entry == expected
    assert entry.outcome in {"unknown_tool", "denied", "invalid_arguments"}
    assert entry.failed
    assert run.status == "ok"


def test_what_the_model_would_have_been_told(tmp_path):
    run = ask(OneReply(says("", call("read_file", {}), call("file_write", {}), call("file_read", {"path": 5}))))

    assert [(entry.outcome, entry.result) for entry in run.trace] == [
        ("unknown_tool", f"there is no tool 'read_file'; the tools are: {BUILT_IN}"),
        (
            "denied",
            "the tool file_write is not allowed here: the permission of category 'edit' is 'deny'; "
            f"allowed tools: {BUILT_IN}",
        ),
        ("invalid_arguments", 'invalid arguments: path: 5 is not of type "string"'),
    ]


def test_a_prefixed_name_and_a_null_for_what_is_left_out_are_read_as_in_the_whole_loop():
    run = ask(OneReply(says("", call("functions.file_read", {"path": "a", "limit": None}))))

    (entry,) = run.trace
    assert (entry.call.name, entry.call.arguments, entry.outcome) == ("file_read", {"path": "a"}, "not_run")
    assert run.notes == ("the model called 'functions.file_read', which was read as 'file_read'",)


def test_an_answer_without_calls_ends_the_run():
    run = ask(OneReply(says("42.")))
    assert (run.status, run.answer, run.trace, run.turns) == ("ok", "42.", (), 1)


def test_an_empty_reply_is_ok_and_says_nothing():
    run = ask(OneReply(says("")))
    assert (run.status, run.answer, run.trace, run.usage) == ("ok", "", (), None)


def test_a_refusal_is_an_answer():
    run = ask(OneReply(says("I will not.", finish="refusal")))
    assert (run.status, run.answer) == ("ok", "I will not.")


def test_a_call_in_the_text_is_noted():
    run = ask(OneReply(says('<tool_call>{"name": "grep"}</tool_call>')))
    assert "unparsed tool call" in run.notes[0]


@pytest.mark.parametrize(
    ("calls", "names"),
    [
        ((), ()),
        ((call("grep", {"pattern": "x"}),), ()),
        ((call("glob", {"pattern": "*"}), call("grep", None, '{"pa')), ("glob",)),
    ],
)
def test_a_reply_that_was_cut_off_is_truncated_and_its_last_call_is_left_out(calls, names):
    run = ask(OneReply(says("so", *calls, finish="length")))

    assert (run.status, run.detail) == ("truncated", "the reply was cut off by the output limit")
    assert run.names == names
    assert run.answer == ""
    assert len(run.notes) == (1 if calls else 0)


def test_an_error_of_the_api_is_no_fault_of_the_model():
    run = ask(OneReply(ProviderError("HTTP 500", attempts=5)))
    assert (run.status, run.detail, run.trace, run.turns, run.attempts) == ("error", "HTTP 500", (), 0, 5)


def test_a_schema_that_is_none_is_an_error_also_in_a_reply_that_was_cut_off():
    broken = Tool("broken", "d", {"type": "nonsense"}, "read", lambda arguments, context: "")
    calls = (call("broken", {"a": 1}), call("glob", {"pattern": "*"}))
    for finish in ("stop", "length"):
        run = ask(OneReply(says("", *calls, finish=finish)), broken)
        assert run.status == "error"
        assert run.detail.startswith("the schema of tool 'broken' is not a JSON Schema")


def test_the_request_is_that_of_the_first_turn_of_the_whole_loop(tmp_path):
    settings = AgentSettings("Be brief.", Sampling(temperature=0.0, seed=7), max_turns=3)
    first, whole = OneReply(says("ok")), OneReply(says("ok"))
    asked = case(max_turns=5, tools_deny=("web_fetch",))
    ask_once(asked, first, registry().offer_for(asked), settings)
    Agent(asked, whole, registry().offer_for(asked), ToolContext(tmp_path), settings).run()

    assert first.requests == whole.requests
    assert [spec.name for spec in first.requests[0].tools] == ["file_read", "list_dir", "glob", "grep"]


def test_the_time_limit_reaches_the_provider():
    model = OneReply(says("ok"))
    ask_once(case(), model, registry().offer_for(case()), AgentSettings(), TimeLimit(60.0))
    assert model.requests[0].until is not None


def test_mock_plays_the_first_turn_of_its_script():
    script = (
        ScriptedTurn("", (ScriptedCall("glob", {"pattern": "*"}), ScriptedCall("grep", "{oops"))),
        ScriptedTurn("done"),
    )
    run = ask(MockProvider(), mock=script)
    assert [(entry.call.name, entry.outcome) for entry in run.trace] == [
        ("glob", "not_run"),
        ("grep", "invalid_arguments"),
    ]
    assert (run.status, run.turns, run.attempts) == ("ok", 1, 0)
