from __future__ import annotations

import pytest

from pytest_tooleval.broker.answers import (
    BUDGET_BYTES,
    DECISIONS,
    has_disposition,
    invites_blind_retry,
    is_clear_error,
    is_instructive,
    selected_ref,
)
from pytest_tooleval.broker.decision import Decision
from pytest_tooleval.broker.envelope import DISPOSITIONS, ERROR_TYPES, failure


@pytest.mark.parametrize(
    ("instruction", "blind"),
    [
        ("Retry.", True),
        ("Please try again.", True),
        ("Something broke, try the call again", True),
        ("Just retry the call a few times.", True),
        ("Re-try it.", True),
        ("Call the tool again.", True),
        ("Send the request again.", True),
        ("Repeat the call.", True),
        ("Resubmit it.", True),
        ("Retry with the same arguments.", True),
        ("Try again without changes.", True),
        ("After a pause, retry with unchanged arguments.", True),
        ("The server is slow. Retry. If it fails, tell the user.", True),
        ("Tell the user if it fails; retry now.", True),
        ("Do not guess. Try again.", True),
        ("Retry, do not ask the user.", True),
        ("Retry once the server is back.", False),
        ("Retry only after the credentials are set.", False),
        ("If the server is online, call it again.", False),
        ("Call it again with corrected arguments.", False),
        ("Call it again with other arguments.", False),
        ("Do not retry.", False),
        ("Do not send this call again while the server is offline.", False),
        ("Don't repeat the call: tell the user.", False),
        ("Never try it again.", False),
        ("Report it without retrying.", False),
        ("Correct the arguments, then call the tool.", False),
        ("Tell the user that the server is offline.", False),
        ("Read the retryable flag.", False),
        ("", False),
    ],
)
def test_an_invitation_to_the_same_call_again(instruction, blind):
    assert invites_blind_retry(instruction) is blind
    answer = {"ok": False, "error": {"type": "X", "agentInstruction": instruction or "Tell the user."}}
    assert is_clear_error(answer) is not blind


@pytest.mark.parametrize(
    ("error", "clear"),
    [
        ({"type": "X", "agentInstruction": "Call findTool."}, True),
        ({"type": "", "agentInstruction": "Call findTool."}, False),
        ({"agentInstruction": "Call findTool."}, False),
        ({"type": "X", "agentInstruction": ""}, False),
        ({"type": "X", "agentInstruction": " \n"}, False),
        ({"type": "X", "agentInstruction": None}, False),
        ({"type": "X"}, False),
        ("it failed", False),
        (None, False),
    ],
)
def test_a_clear_error_has_a_type_and_an_instruction(error, clear):
    assert is_clear_error({"ok": False, "error": error}) is clear


@pytest.mark.parametrize("kind", ERROR_TYPES)
def test_every_error_of_the_reference_broker_can_be_worked_with(kind):
    answer = failure(kind, "it went wrong", ref="s.t", server="s")
    assert (is_clear_error(answer), is_instructive(answer), has_disposition(answer)) == (True, True, True)
    assert not invites_blind_retry(DISPOSITIONS[kind].instruction)


@pytest.mark.parametrize(
    ("answer", "instructive"),
    [
        ({"nextAction": {"instruction": "Call callTool for s.t with these arguments."}}, True),
        ({"nextAction": {"tool": "callTool", "arguments": {"toolRef": "s.t"}}}, True),
        ({"nextAction": "Call callTool for s.t with its arguments."}, True),
        ({"nextActions": [{"instruction": "Go on."}, {"instruction": "Report the result to the user."}]}, True),
        ({"nextAction": {"instruction": "Go on."}}, False),
        ({"nextAction": {"tool": "callTool", "arguments": {}}}, False),
        ({"nextAction": {"tool": "", "arguments": {"toolRef": "s.t"}}}, False),
        ({"nextAction": {"a": 1, "b": 2}}, False),
        ({"nextAction": " " * 40}, False),
        ({"nextAction": None}, False),
        ({"nextAction": {}}, False),
        ({"nextActions": []}, False),
        ({}, False),
        ({"error": {"type": "X", "agentInstruction": "Tell the user that it failed."}}, True),
        ({"error": {"type": "X", "agentInstruction": "Failed."}}, False),
        ({"error": {"type": "X"}, "nextAction": "Call callTool for s.t with its arguments."}, False),
        ({"error": "it failed"}, False),
    ],
)
def test_a_concrete_next_step(answer, instructive):
    assert is_instructive(answer) is instructive


@pytest.mark.parametrize(
    ("answer", "disposed"),
    [
        ({"ok": True}, None),
        ({"ok": True, "error": None}, None),
        ({"error": {"type": "X", "retryable": False}}, True),
        ({"error": {"type": "X", "retryable": True}}, True),
        ({"error": {"type": "X"}}, False),
        ({"error": {"type": "X", "retryable": "no"}}, False),
        ({"error": {"type": "", "retryable": False}}, False),
        ({"error": {"retryable": False}}, False),
        ({"error": "it failed"}, False),
    ],
)
def test_an_errors_retry_disposition(answer, disposed):
    assert has_disposition(answer) is disposed


@pytest.mark.parametrize(
    ("answer", "ref"),
    [
        ({"selectedToolRef": "s.t"}, "s.t"),
        ({"selectedToolRef": None, "toolRef": "s.u"}, "s.u"),
        ({"error": {"toolRef": "s.v"}}, "s.v"),
        ({"selectedToolRef": None}, None),
        ({"error": {"toolRef": None}}, None),
        ({"error": "it failed"}, None),
        ({}, None),
    ],
)
def test_the_tool_that_an_answer_is_about(answer, ref):
    assert selected_ref(answer) == ref


def test_the_contract_that_answers_are_held_to():
    assert set(Decision.__args__) == DECISIONS
    assert BUDGET_BYTES == {"find": 6000, "describe": 20_000, "call": 8000}
