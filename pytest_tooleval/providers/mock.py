"""The scripted provider: replies come from the fixture, there is no network and no key."""

from __future__ import annotations

import copy
import json

from pytest_tooleval.cases.case import ScriptedCall, ScriptedTurn, ToolUseCase
from pytest_tooleval.providers.provider import ChatRequest
from pytest_tooleval.providers.wire import made_id
from pytest_tooleval.transcript import AssistantMessage, ToolCall


class MockProvider:
    """Replies with the case's script, turn by turn; past its end with an empty message."""

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the reason to skip a case without a script, else None."""
        return None if case.mock is not None else "no mock script; name a model with --provider NAME:MODEL"

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        """Return the scripted turn that follows the replies in `request`; it has no usage, and nothing was sent."""
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
        script = case.mock or ()
        return _played(script[turn], turn) if turn < len(script) else AssistantMessage(attempts=0)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _played(scripted: ScriptedTurn, turn: int) -> AssistantMessage:
    calls = (_called(call, made_id(turn, position)) for position, call in enumerate(scripted.calls))
    return AssistantMessage(text=scripted.text, calls=tuple(calls), attempts=0)


def _called(scripted: ScriptedCall, call_id: str) -> ToolCall:
    if isinstance(scripted.arguments, str):
        arguments, raw = None, scripted.arguments
    else:
        arguments = copy.deepcopy(dict(scripted.arguments))
        raw = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=call_id, name=scripted.name, arguments=arguments, raw_arguments=raw, raw_name=scripted.name)
