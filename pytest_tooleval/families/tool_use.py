"""Tool use: a model works on a fixture's task in a folder of its own, and its run is measured."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tooleval.agent.directory import working_directory
from pytest_tooleval.agent.end_state import read_end_state
from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import InfrastructureError, nearest
from pytest_tooleval.families.speaking import Speaker
from pytest_tooleval.families.tool_sets import ToolSet
from pytest_tooleval.measures.confusion import expected_sequences
from pytest_tooleval.measures.cost import Billing, run_cost
from pytest_tooleval.measures.lost import Reach, Stage, lost_at
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.measures.tool_use import count_errors, redundant_calls
from pytest_tooleval.measures.verify import (
    Behaviour,
    CalledTool,
    Mismatch,
    accuracy,
    count_checks,
    demanded_tools,
    verify,
)
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import Provider
from pytest_tooleval.tools.registry import Offer, ToolRegistry
from pytest_tooleval.tools.source import OwnToolsOnly, ToolSource
from pytest_tooleval.tools.tool import ToolContext, ToolLimits
from pytest_tooleval.transcript import BrokerCall, Run, TraceEntry

if TYPE_CHECKING:
    from pytest_tooleval.providers.replay import CassetteShelf


_MEASURED = frozenset({"ok", "truncated"})
_MOST_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class ToolUseResult:
    """A run and what it was found to be.

    Attributes:
        run: what happened.
        mismatches: the differences to what the case demands; empty when it passes.
        accuracy: see `measures.verify.accuracy`.
        worktree: where the folder was kept, empty when it was removed.
        hints: what about the case itself may explain a miss.
        tools: how many tools the model could call, None when it came to none.
        lost_at: see `measures.lost.lost_at`; None when the case passes or was not measured.

    """

    run: Run
    mismatches: tuple[Mismatch, ...] = ()
    accuracy: float | None = None
    worktree: str = ""
    hints: tuple[str, ...] = ()
    tools: int | None = None
    lost_at: Stage | None = None

    @property
    def passed(self) -> bool:
        """Whether the run ended well and met every demand."""
        return self.run.status == "ok" and not self.mismatches


@dataclass(frozen=True, slots=True)
class ToolUseRunner:
    """Runs tool-use cases.

    Attributes:
        tools: what can be offered.
        worktrees: where the cases' folders are made.
        settings: what holds for every case.
        limits: bounds of the tools.
        keep_worktrees: leave the folders for debugging.
        seconds: most seconds of a run whose case sets none, or None for any time.
        stop: set when runs have to end because nobody waits for them any more.
        servers: the servers whose tools cases can name.
        tool_set: what stands beside a case's tools, and how a model reaches them.

    """

    tools: ToolRegistry
    worktrees: WorktreeRoot
    settings: AgentSettings = field(default_factory=AgentSettings)
    limits: ToolLimits = field(default_factory=ToolLimits)
    keep_worktrees: bool = False
    seconds: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    servers: ToolSource = field(default_factory=OwnToolsOnly)
    tool_set: ToolSet = field(default_factory=ToolSet)

    def time_limit(self, case: ToolUseCase) -> float | None:
        """Return the most seconds that a run of the case may take, or None."""
        return self.seconds if case.timeout is None else case.timeout

    @contextlib.contextmanager
    def offer(self, case: ToolUseCase) -> Iterator[Offer]:
        """Give the tools of a case to those who run none of them.

        Raises:
            InfrastructureError: they cannot be had.

        """
        own = self.tools.offer_for(case)
        if not case.mcp:
            yield self.tool_set.of_case(own)
            return
        with self.worktrees.worktree(case) as worktree:
            context = ToolContext(worktree.path, worktree.environment, self.limits, case.pages)
            with self.servers.offer(case, own, context) as tools:
                yield self.tool_set.of_case(tools.offer)

    def run(self, case: ToolUseCase, speaker: Speaker) -> ToolUseResult:
        """Run a case once. What goes wrong with the infrastructure is a run with the status `error`."""
        try:
            with self.worktrees.worktree(case, keep=self.keep_worktrees) as worktree:
                context = ToolContext(worktree.path, worktree.environment, self.limits, case.pages)
                limit = TimeLimit(self.time_limit(case), self.stop)
                speech = speaker.open(case, worktree)
                with self.servers.offer(case, self.tools.offer_for(case), context) as tools:
                    offer = self.tool_set.of_case(tools.offer)
                    run = self._work(case, speech.provider, offer, context, limit)
                run = replace(run, notes=(*run.notes, *tools.notes))
                if run.status in _MEASURED and not limit.is_over:  # one that was cut off would be stale in a replay
                    speech.keep()
                checked = case.verifier.files if case.verifier else ()
                behaviour = _behaviour(run, worktree.path, read_end_state(worktree.path, checked))
                kept = str(worktree.path) if self.keep_worktrees else ""
        except InfrastructureError as error:
            return ToolUseResult(Run("error", detail=str(error)))
        result = replace(_judge(case, run, behaviour, kept), tools=len(offer.offered))
        if result.passed:
            return result
        lost = self._lost_at(case, run, offer, behaviour.worktree)
        return replace(result, hints=tuple(case_hints(case, offer)), lost_at=lost)

    def _work(
        self, case: ToolUseCase, provider: Provider, offer: Offer, context: ToolContext, limit: TimeLimit
    ) -> Run:
        played, open_desk = self.tool_set.played(provider, offer), self.tool_set.open_desk
        with _directory_for(offer, context.worktree):
            return Agent(case, played, offer, context, self.settings, limit, open_desk=open_desk).run()

    def _lost_at(self, case: ToolUseCase, run: Run, offer: Offer, worktree: str) -> Stage | None:
        if run.status not in _MEASURED:
            return None
        named = {name for call in run.broker_calls for name in call.shown}
        shown = named if self.tool_set.variant.is_brokered else offer.offered
        return lost_at(case, run.trace, Reach(offer.offered, shown), worktree)


@dataclass(frozen=True, slots=True)
class ToolUseTarget:
    """A model, reached through an opened provider."""

    name: str
    provider: Provider | None
    runner: ToolUseRunner
    billing: Billing | None = None
    shelf: CassetteShelf | None = None

    @property
    def is_scripted(self) -> bool:
        """Whether replies come from the fixture, at once."""
        return isinstance(self.provider, MockProvider)

    def time_limit(self, case: ToolUseCase) -> float | None:
        """Return the most seconds that a run of the case may take, or None."""
        return self.runner.time_limit(case)

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the provider's or the tools' reason to skip the case, or None."""
        reason = None if self.provider is None else self.provider.cannot_run(case)
        return self.runner.servers.cannot_run(case) or reason

    def speaker(self, trial: int) -> Speaker:
        """Return who speaks for the model in a trial."""
        return Speaker(self.provider, self.name, trial, self.shelf)

    def measure(self, case: ToolUseCase, trial: int = 1) -> CaseOutcome:
        """Let the model work on the case once, and judge what it did."""
        result = self.runner.run(case, self.speaker(trial))
        ended = result.run.status in _MEASURED
        error = "" if ended else result.run.detail
        return CaseOutcome(result.passed, self.record(case, result), error, result.worktree)

    def record(self, case: ToolUseCase, result: ToolUseResult) -> dict[str, Any]:
        """Return the fields of a case in the result file, what it cost included."""
        cost = None if self.billing is None else run_cost(self.billing, result.run)
        return {**record(case, result), "cost": cost, **self._tool_set_record(result)}

    def _tool_set_record(self, result: ToolUseResult) -> dict[str, Any]:
        variant = self.runner.tool_set.variant
        told = {
            "model": self.name.removesuffix(variant.suffix),
            "tools": variant.way,
            "distractors": variant.distractors,
            "size": result.tools,
        }
        if not variant.is_brokered:
            return {"toolSet": told}
        return {"toolSet": told, "brokerCalls": [_broker_call(call) for call in result.run.broker_calls]}

    def close(self) -> None:
        """Release the provider's connections."""
        if self.provider is not None:
            self.provider.close()


def _behaviour(run: Run, worktree: Path, files: Mapping[str, Any]) -> Behaviour:
    calls = [CalledTool(entry.call.name, entry.call.arguments) for entry in run.trace]
    return Behaviour(calls, run.answer, files, str(worktree))


def _judge(case: ToolUseCase, run: Run, behaviour: Behaviour, kept: str) -> ToolUseResult:
    mismatches = verify(case, behaviour)
    if run.status == "truncated":
        mismatches.insert(0, Mismatch("different", f"the run: expected to end by itself, but {run.detail}"))
    return ToolUseResult(run, tuple(mismatches), accuracy(case.expected, behaviour.names), kept)


def case_hints(case: ToolUseCase, offer: Offer) -> Iterator[str]:
    """Yield a line for each tool that the case demands and does not offer."""
    for name in demanded_tools(case):
        if name in offer.denied:
            yield f"{name} is demanded and not offered: {offer.denied[name]}"
        elif name not in offer.offered:
            yield f"{name} is demanded, and there is no such tool{nearest(name, offer.offered)}"


def _directory_for(offer: Offer, path: Path) -> contextlib.AbstractContextManager[None]:
    """Stand in the worktree where a tool may open relative paths: registered ones do, ours are told the folder."""
    needed = any(tool.needs_directory for tool in offer.offered.values())
    return working_directory(path) if needed else contextlib.nullcontext()


def record(case: ToolUseCase, result: ToolUseResult) -> dict[str, Any]:
    """Return the fields of a case in the result file, plain JSON values."""
    run = result.run
    measured = run.status in _MEASURED
    return {
        "status": run.status,
        "pass": result.passed if measured else None,
        "accuracy": result.accuracy if measured else None,
        "calls": len(run.trace),
        "redundant": redundant_calls(run.trace),
        "errors": count_errors(run),
        "tokens": run.usage.total if run.usage else None,
        "usage": _usage(run),
        "latencySeconds": run.seconds,
        "turns": run.turns,
        "attempts": run.attempts,
        "names": list(run.names),
        "expectedNames": expected_sequences(case),
        "trace": [_trace_entry(entry) for entry in run.trace],
        "answer": run.answer,
        "checks": count_checks(case),
        "mismatches": [asdict(mismatch) for mismatch in result.mismatches] if measured else [],
        "lostAt": result.lost_at,
        "notes": [*run.notes, *result.hints],
        "detail": run.detail,
    }


def _usage(run: Run) -> dict[str, int] | None:
    if run.usage is None:
        return None
    return {
        "input": run.usage.input,
        "cacheRead": run.usage.cache_read,
        "cacheWrite": run.usage.cache_write,
        "output": run.usage.output,
        "reasoning": run.usage.reasoning,
    }


def _trace_entry(entry: TraceEntry) -> dict[str, Any]:
    call = entry.call
    shown: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "outcome": entry.outcome}
    if call.arguments is None:
        shown["rawArguments"] = call.raw_arguments
    if call.raw_name and call.raw_name != call.name:
        shown["rawName"] = call.raw_name
    if entry.failed:
        shown["result"] = entry.result[:_MOST_SHOWN_CHARS]
    return shown


def _broker_call(call: BrokerCall) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": call.call.name, "arguments": call.call.arguments}
    if call.call.arguments is None:
        shown["rawArguments"] = call.call.raw_arguments
    if call.failed:
        return shown | {"error": call.error, "result": call.result[:_MOST_SHOWN_CHARS]}
    return shown | {"shown": list(call.shown)}
