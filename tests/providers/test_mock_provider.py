from __future__ import annotations

import re
from pathlib import Path

from pytest_tooleval.cases.case import ScriptedCall, ScriptedTurn, Source, ToolUseCase
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ChatRequest
from pytest_tooleval.transcript import AssistantMessage, Message, ToolMessage, UserMessage

SCRIPT = (
    ScriptedTurn("Looking.", (ScriptedCall("grep", {"pattern": "é"}), ScriptedCall("glob", "{oops"))),
    ScriptedTurn(text="Done."),
)


def case(*script: ScriptedTurn) -> ToolUseCase:
    return ToolUseCase(id="c", task="t", source=Source(Path("c.json")), mock=script)


def asked(*messages: Message) -> ChatRequest:
    return ChatRequest("", (UserMessage("t"), *messages))


def test_a_scripted_turn_with_text_and_calls() -> None:
    reply = MockProvider().reply(case(*SCRIPT), asked())
    assert (reply.text, reply.finish, reply.usage) == ("Looking.", "stop", None)
    good, bad = reply.calls
    assert (good.name, good.arguments, good.raw_arguments) == ("grep", {"pattern": "é"}, '{"pattern": "é"}')
    assert (bad.name, bad.arguments, bad.raw_arguments) == ("glob", None, "{oops")
    assert good.id != bad.id
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call.id) for call in reply.calls)


def test_the_turn_follows_the_replies_and_the_script_ends_in_silence() -> None:
    first = MockProvider().reply(case(*SCRIPT), asked())
    results = [ToolMessage(call.id, call.name, "r") for call in first.calls]
    assert MockProvider().reply(case(*SCRIPT), asked(first, *results)).text == "Done."
    over = asked(first, *results, AssistantMessage("Done."), UserMessage("more"))
    assert MockProvider().reply(case(*SCRIPT), over) == AssistantMessage(attempts=0)
    assert MockProvider().reply(case(), asked()) == AssistantMessage(attempts=0)


def test_the_same_script_gives_the_same_reply_and_ids_differ_between_turns() -> None:
    call = ScriptedTurn(calls=(ScriptedCall("grep", {}),))
    first = MockProvider().reply(case(call, call), asked())
    assert MockProvider().reply(case(call, call), asked()) == first
    assert MockProvider().reply(case(call, call), asked(first)).calls[0].id != first.calls[0].id


def test_a_tool_that_changes_its_arguments_does_not_change_the_script() -> None:
    one = case(ScriptedTurn(calls=(ScriptedCall("grep", {"paths": ["a"]}),)))
    got = MockProvider().reply(one, asked()).calls[0].arguments
    assert got is not None
    got["paths"].append("b")
    assert MockProvider().reply(one, asked()).calls[0].arguments == {"paths": ["a"]}


def test_a_case_without_a_script_cannot_run() -> None:
    bare = ToolUseCase(id="c", task="t", source=Source(Path("c.json")))
    assert MockProvider().cannot_run(bare) == "no mock script; name a model with --provider NAME:MODEL"
    assert MockProvider().cannot_run(case()) is None
