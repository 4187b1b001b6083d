"""Runs of a case through a conversation that records or replays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.families.tool_use import ToolUseResult, record
from pytest_tooleval.providers.places import Places
from pytest_tooleval.providers.provider import Provider
from pytest_tooleval.providers.replay import CassetteShelf
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import Run

TARGET = "openai:m"


def tool_use_case(case_id: str = "c", **keys: Any) -> ToolUseCase:
    return ToolUseCase(id=case_id, source=Source(Path("c.json")), **{"task": "Count.", **keys})


def run_recorded(
    shelf: CassetteShelf,
    case: ToolUseCase,
    provider: Provider | None = None,
    *,
    trial: int = 1,
    tools: Sequence[Tool] = (),
    settings: AgentSettings | None = None,
) -> Run:
    """Run a case once in a worktree of its own, and save what was said when the run ended well."""
    registry = ToolRegistry()
    registry.add_built_in()
    for tool in tools:
        registry.add(tool)
    with WorktreeRoot() as root, root.worktree(case) as worktree:
        places = Places(str(worktree.path), worktree.environment["HOME"], worktree.environment["TMPDIR"])
        conversation = shelf.conversation(case, TARGET, trial, provider, places)
        context = ToolContext(worktree.path, worktree.environment)
        run = Agent(case, conversation, registry.offer_for(case), context, settings or AgentSettings()).run()
        if run.status in {"ok", "truncated"}:
            conversation.save()
    return run


def result_without_times(case: ToolUseCase, run: Run) -> dict[str, Any]:
    """Return what the result file says of a run, but for the time that it took."""
    shown = record(case, ToolUseResult(run))
    return {key: value for key, value in shown.items() if key != "latencySeconds"}
