"""The first reply of a model alone: it is asked once, and nothing that it calls is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.providers.provider import Provider
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import ToolContext
from pytest_tooleval.transcript import AssistantMessage, Run, TraceEntry

CUT_OFF = "the reply was cut off by the output limit"


def ask_once(
    case: ToolUseCase,
    provider: Provider,
    offer: Offer,
    settings: AgentSettings,
    time_limit: TimeLimit | None = None,
) -> Run:
    """Ask the model once and run none of its calls; whatever happens is in the run.

    Returns:
        A run of one reply. Each complete call is in its trace: with the outcome `not_run` when it could be run,
        else with what the model would have been told. Its status is `ok` when the reply is whole, with calls or
        without; `truncated` when the output limit cut it off, since what is missing cannot be judged. There is an
        answer only where there are no calls.

    """
    once = replace(case, max_turns=1)
    agent = Agent(once, provider, _not_running(offer), ToolContext(Path()), settings, time_limit)
    return _first_turn(agent.run())


def _not_running(offer: Offer) -> Offer:
    """Return the same tools, of which none does anything."""
    return replace(offer, offered={name: replace(tool, run=_nothing) for name, tool in offer.offered.items()})


def _nothing(_arguments: Mapping[str, Any], _context: ToolContext) -> str:
    return ""


def _first_turn(run: Run) -> Run:
    """Return the run without the end that the loop gave it: its turn limit, and results that nobody was told."""
    reply = next((message for message in run.messages if isinstance(message, AssistantMessage)), None)
    if reply is None or not reply.calls:
        return run
    run = replace(run, messages=run.messages[:2], trace=tuple(map(_not_run, run.trace)))
    if run.status != "truncated":
        return run
    if reply.finish == "length":
        return replace(run, detail=CUT_OFF)
    return replace(run, status="ok", detail="") if len(run.trace) == len(reply.calls) else run


def _not_run(entry: TraceEntry) -> TraceEntry:
    return replace(entry, outcome="not_run") if entry.outcome == "ok" else entry
