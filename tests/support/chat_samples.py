"""Inputs that several tests of providers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import Source, ToolUseCase

CASE = ToolUseCase(id="c", task="t", source=Source(Path("c.json")))


def chat_answer(message: dict[str, Any], finish: Any = "stop", **rest: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"object": "chat.completion", "choices": [choice], **rest}
