"""At which stage a task was lost, on the way from a catalog to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from pytest_tooleval.cases.case import NameSequence, ToolUseCase, Verifier
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.verify import Behaviour, CalledTool, tool_arguments
from pytest_tooleval.transcript import TraceEntry

Stage: TypeAlias = Literal["search", "selection", "arguments", "execution", "answer"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a model could come to in a run.

    Attributes:
        offered: the tools that it could call.
        shown: those that it got to see: all of them where they were offered at once, else what the broker named.

    """

    offered: Collection[str]
    shown: Collection[str]


@dataclass(frozen=True, slots=True)
class _Demand:
    """A tool that a passing run calls.

    Attributes:
        name: the tool.
        times: how often at least.

    """

    name: str
    times: int


@dataclass(frozen=True, slots=True)
class _ArgumentCheck:
    """What one call of a tool has to pass, and whether it may pass no other arguments."""

    expected: Mapping[str, Any]
    exact: bool


def lost_at(case: ToolUseCase, trace: Sequence[TraceEntry], reach: Reach, worktree: str = "") -> Stage | None:
    """Return the stage at which a run that was measured and missed was lost.

    The tools that the case demands by name are gone through in its order; the first that was not called well
    decides:

    - `search`: it was never shown, nor called.
    - `selection`: it was shown, and not called, or not as often as demanded.
    - `arguments`: it was called, and no call kept its schema and passed the arguments that the case demands.
    - `execution`: such a call failed or was denied, and no other one did what was wanted.
    - `answer`: all were called well; the answer, the files, the order or further calls are wrong.

    A verifier that demands no tool leaves that to `expected`. Of several acceptable sequences the one that the run
    got furthest with counts.

    Args:
        case: what was demanded.
        trace: the calls of tools.
        reach: what the model could come to.
        worktree: real path of the case's folder, for `$path`.

    Returns:
        The stage; None when nothing is demanded by name, or what is demanded could not be called at all.

    """
    ways = _ways(case)
    if not all(ways):
        return None
    stages = [_stage(case, way, trace, reach, worktree) for way in ways]
    known = [stage for stage in stages if stage is not None]
    return max(known, key=STAGES.index, default=None)


def count_lost(measurements: Iterable[Measurement]) -> dict[Stage, int] | None:
    """Return how many measured runs were lost at each stage, each trial a run of its own; None without any run.

    Args:
        measurements: those of one target. Of their records `lostAt` is read.

    """
    measured = [each.record for each in measurements if each.measured]
    counts = Counter(record.get("lostAt") for record in measured)
    return {stage: counts[stage] for stage in STAGES} if measured else None


def _ways(case: ToolUseCase) -> list[list[_Demand]]:
    """Return what has to be called, for each acceptable sequence; an empty list where nothing has to be."""
    verifier = case.verifier or Verifier(exact=case.expected)
    named = [*verifier.must_include, *verifier.in_order, *(verifier.any_order or ())]
    named += [*verifier.args, *verifier.args_exact]
    sequences = verifier.exact
    if not named and not sequences:
        sequences = case.expected
    return [_demands(sequence, named, verifier) for sequence in sequences or ((),)]


def _demands(sequence: NameSequence, named: Sequence[str], verifier: Verifier) -> list[_Demand]:
    counted = (sequence, verifier.in_order, verifier.any_order or ())
    return [
        _Demand(name, max(1, *(names.count(name) for names in counted)))
        for name in dict.fromkeys([*sequence, *named])
    ]


def _stage(
    case: ToolUseCase, way: Sequence[_Demand], trace: Sequence[TraceEntry], reach: Reach, worktree: str
) -> Stage | None:
    stages = (_stage_of_tool(case, demand, trace, reach, worktree) for demand in way)
    return next((stage for stage in stages if stage != "answer"), "answer")


def _stage_of_tool(
    case: ToolUseCase, demand: _Demand, trace: Sequence[TraceEntry], reach: Reach, worktree: str
) -> Stage | None:
    calls = [each for each in trace if each.call.name == demand.name and each.outcome != "unknown_tool"]
    if len(calls) < demand.times:
        if demand.name not in reach.offered:
            return None
        return "selection" if calls or demand.name in reach.shown else "search"
    valid = [each for each in calls if each.outcome != "invalid_arguments"]
    passing = [_passing(valid, check, worktree) for check in _argument_checks(case, demand.name)]
    if len(valid) < demand.times or not all(passing):
        return "arguments"
    done = [each for each in valid if not each.failed]
    all_worked = all(any(not each.failed for each in calls) for calls in passing)
    return "answer" if len(done) >= demand.times and all_worked else "execution"


def _argument_checks(case: ToolUseCase, name: str) -> list[_ArgumentCheck]:
    if case.verifier is None:
        return []
    demanded = ((case.verifier.args, False), (case.verifier.args_exact, True))
    return [_ArgumentCheck(arguments[name], exact) for arguments, exact in demanded if name in arguments]


def _passing(calls: Sequence[TraceEntry], check: _ArgumentCheck, worktree: str) -> list[TraceEntry]:
    """Return the calls that pass what is demanded, and the denied ones: nobody looked at their arguments."""
    return [each for each in calls if each.outcome == "denied" or _passes(each, check, worktree)]


def _passes(entry: TraceEntry, check: _ArgumentCheck, worktree: str) -> bool:
    name = entry.call.name
    behaviour = Behaviour([CalledTool(name, entry.call.arguments)], worktree=worktree)
    return not list(tool_arguments(name, check.expected, behaviour, exact=check.exact))
