"""Runs of a fixture through the runner and the real tools, with a model that plays the fixture's script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.jsontext import decode_document
from pytest_tooleval.cases.load import cases_of
from pytest_tooleval.families.speaking import Speaker
from pytest_tooleval.families.tool_use import ToolUseResult, ToolUseRunner
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ChatRequest, Provider
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import ToolLimits
from pytest_tooleval.transcript import AssistantMessage, ToolCall

FILE = Path("evals/fixtures/c.json")
ALLOWED = {"edit": "allow", "bash": "allow"}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a reply of a script that makes one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def fixture_case(*script: dict[str, Any], **keys: Any) -> ToolUseCase:
    """Return a case with this script in which every tool is allowed."""
    fixture = {"task": "Work.", "verifier": {"min_calls": 1}, "tool_permission": ALLOWED, "max_turns": 50, **keys}
    text = json.dumps({**fixture, "mock": [*script, {"text": "Done."}]})
    (case,) = cases_of(decode_document(text, FILE), FILE)
    return case


def run_case(
    case: ToolUseCase, provider: Provider | None = None, limits: ToolLimits | None = None
) -> ToolUseResult:
    """Run a case once in a worktree of its own with the built-in tools."""
    tools = ToolRegistry()
    tools.add_built_in()
    with WorktreeRoot() as worktrees:
        return ToolUseRunner(tools, worktrees, limits=limits or ToolLimits()).run(
            case, Speaker(provider or MockProvider())
        )


def run_script(*script: dict[str, Any], **keys: Any) -> ToolUseResult:
    """Run a fixture with this script once."""
    return run_case(fixture_case(*script, **keys))


class Replies:
    """A provider that gives these replies, one after the other, and then an answer."""

    def __init__(self, *replies: AssistantMessage) -> None:
        self._replies = replies

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
        return self._replies[turn] if turn < len(self._replies) else AssistantMessage("Done.")

    def close(self) -> None:
        pass


def calling(*called: tuple[str, dict[str, Any] | None]) -> AssistantMessage:
    """Return a reply with these calls, whatever text they hold."""
    calls = (
        ToolCall(f"c{at}", name, arguments, repr(arguments), name) for at, (name, arguments) in enumerate(called)
    )
    return AssistantMessage(calls=tuple(calls))


def results_of(result: ToolUseResult) -> list[tuple[str, str, str]]:
    """Return tool, outcome and result of each call."""
    return [(entry.call.name, entry.outcome, entry.result) for entry in result.run.trace]
