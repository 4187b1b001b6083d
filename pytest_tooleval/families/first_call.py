"""Tool use, first call only: a model is asked once, and what it would do first is judged. Nothing is run."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_tooleval.agent.first_call import ask_once
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.families.tool_use import ToolUseResult, ToolUseTarget, case_hints
from pytest_tooleval.measures.first_call import (
    FirstTurn,
    first_turn_accuracy,
    judge_first_turn,
    undecided_by_any_first_turn,
)
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.measures.verify import Behaviour, CalledTool, Mismatch
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.transcript import Run

TIER = "first_call"
_BEYOND_RUNNING = frozenset({"unknown_tool", "invalid_arguments"})


@dataclass(frozen=True, slots=True)
class FirstCallTarget(ToolUseTarget):
    """A model of which only the first reply is asked for."""

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the provider's or the tools' reason to skip the case, that no first turn decides it, or None."""
        undecided = undecided_by_any_first_turn(case)
        reason = ToolUseTarget.cannot_run(self, case)
        return reason or (_nothing_decided(undecided) if undecided else None)

    def measure(self, case: ToolUseCase, trial: int = 1) -> CaseOutcome:
        """Ask the model once, and judge what it would do first."""
        runner = self.runner
        limit = TimeLimit(runner.time_limit(case), runner.stop)
        speech = self.speaker(trial).open(case)
        with runner.offer(case) as offer:
            run = ask_once(case, speech.provider, offer, runner.settings, limit)
        if run.status in {"ok", "truncated"} and not limit.is_over:
            speech.keep()
        return self._outcome(case, run, offer)

    def _outcome(self, case: ToolUseCase, run: Run, offer: Offer) -> CaseOutcome:
        turn = _judge(case, run)
        hints = tuple(case_hints(case, offer)) if turn.mismatches else ()
        accuracy = first_turn_accuracy(case.expected, run.names)
        result = ToolUseResult(run, turn.mismatches, accuracy, hints=hints, tools=len(offer.offered))
        fields = self.record(case, result) | {"tier": TIER, "notJudged": list(turn.not_judged)}
        ended = run.status in {"ok", "truncated"}
        nothing_decided = ended and not turn.judged and not turn.mismatches
        return CaseOutcome(
            passed=result.passed,
            record=fields,
            error="" if ended else run.detail,
            skipped=_nothing_decided(turn.not_judged) if nothing_decided else "",
        )


def _judge(case: ToolUseCase, run: Run) -> FirstTurn:
    calls = [CalledTool(entry.call.name, entry.call.arguments) for entry in run.trace]
    turn = judge_first_turn(case, Behaviour(calls, run.answer))
    if calls and all(entry.outcome in _BEYOND_RUNNING for entry in run.trace):
        useless = Mismatch("different", "the first turn: expected a call that can be run, but none can")
        return FirstTurn((*turn.mismatches, useless), turn.judged, turn.not_judged)
    if run.status != "truncated":
        return turn
    cut_off = Mismatch("different", f"the first turn: expected to be whole, but {run.detail}")
    return FirstTurn((cut_off,), not_judged=(*turn.judged, *turn.not_judged))


def _nothing_decided(checks: tuple[str, ...]) -> str:
    return f"the first turn decides nothing of what the case checks: {', '.join(checks)}"
