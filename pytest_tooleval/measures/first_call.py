"""The model's first turn against the start of what its fixture demands.

A turn without calls ends the run, and every check decides. Of a turn with calls each check says one of three
things: that the turn is right so far, that it is wrong, or nothing, since what it asks for may still come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_tooleval.cases.case import NameSequence, ToolUseCase, Verifier
from pytest_tooleval.measures.verify import (
    Behaviour,
    FileState,
    Mismatch,
    avoided_tools,
    calls_beyond_any_order,
    calls_beyond_most,
    calls_where_none_may_be,
    sequence_mismatch,
    tool_arguments,
    verify,
)

Finding: TypeAlias = list[Mismatch] | None
"""Mismatches, none where the turn is right so far; None where the turn does not tell."""

_ENDS_ONLY = frozenset({"answer", "files"})


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """What a first turn was found to be.

    Attributes:
        mismatches: what is wrong with it.
        judged: the checks that it decides, by their keys in the fixture; `args.TOOL` for the arguments of one tool.
        not_judged: the checks that only later turns can decide, likewise.

    """

    mismatches: tuple[Mismatch, ...] = ()
    judged: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()


def first_turn_accuracy(expected: tuple[NameSequence, ...] | None, names: NameSequence) -> float | None:
    """Return 1.0 when the names begin an acceptable sequence, else 0.0; None when nothing is expected.

    No names begin the empty sequence only.
    """
    return None if expected is None else float(_begins(expected, names))


def undecided_by_any_first_turn(case: ToolUseCase) -> tuple[str, ...]:
    """Return the case's checks when no first turn with calls can decide any of them, else nothing."""
    if case.verifier is None or case.expected is not None:
        return ()
    checks = _checks_of(case.verifier)
    return checks if _ENDS_ONLY.issuperset(checks) else ()


def judge_first_turn(case: ToolUseCase, turn: Behaviour) -> FirstTurn:
    """Judge a first turn of which nothing was run.

    The verifier decides; where it can decide nothing, and where there is none, the expected names do.

    Args:
        case: what is demanded.
        turn: the calls, and the text where there are no calls; files are taken to be as the case made them.

    """
    if not turn.calls:
        checks = ("expected",) if case.verifier is None else _checks_of(case.verifier)
        return FirstTurn(tuple(verify(case, replace(turn, files=_untouched_files(case)))), checks)
    findings = {} if case.verifier is None else dict(_findings(case, case.verifier, turn))
    if case.expected is not None and all(finding is None for finding in findings.values()):
        findings["expected"] = _start(case.expected, turn.names)
    return FirstTurn(
        mismatches=tuple(mismatch for found in findings.values() for mismatch in found or ()),
        judged=tuple(check for check, found in findings.items() if found is not None),
        not_judged=tuple(check for check, found in findings.items() if found is None),
    )


def _untouched_files(case: ToolUseCase) -> dict[str, FileState]:
    named = case.verifier.files if case.verifier else ()
    return {path: FileState(case.files[path]) if path in case.files else FileState() for path in named}


def _checks_of(verifier: Verifier) -> tuple[str, ...]:
    """Return the keys of the checks that are made."""
    limits = {"max_calls": verifier.max_calls, "min_calls": verifier.min_calls}
    made = {
        "exact": verifier.exact is not None,
        "must_include": bool(verifier.must_include),
        "avoid": bool(verifier.avoid),
        **{key: limit is not None for key, limit in limits.items()},
        "no_calls": verifier.no_calls,
        "in_order": bool(verifier.in_order),
        "any_order": verifier.any_order is not None,
        **{f"args.{tool}": True for tool in verifier.args},
        **{f"args_exact.{tool}": True for tool in verifier.args_exact},
        "answer": verifier.answer is not None,
        "files": bool(verifier.files),
    }
    return tuple(key for key, is_made in made.items() if is_made)


def _findings(case: ToolUseCase, verifier: Verifier, turn: Behaviour) -> Iterator[tuple[str, Finding]]:
    """Yield each check with what it says of a turn that has calls."""
    for check in _checks_of(verifier):
        kind, _, tool = check.partition(".")
        yield check, _arguments(case, kind, tool, turn) if tool else _finding(kind, verifier, turn)


def _finding(check: str, verifier: Verifier, turn: Behaviour) -> Finding:
    match check:
        case "exact":
            return _start(verifier.exact or (), turn.names)
        case "must_include":
            return None if set(verifier.must_include).isdisjoint(turn.names) else []
        case "avoid":
            return list(avoided_tools(verifier, turn))
        case "max_calls":
            return list(calls_beyond_most(verifier, turn))
        case "min_calls":
            return [] if len(turn.calls) >= (verifier.min_calls or 0) else None
        case "no_calls":
            return list(calls_where_none_may_be(verifier, turn))
        case "in_order":
            return _in_order(verifier.in_order, turn.names)
        case "any_order":
            return list(calls_beyond_any_order(verifier, turn))
        case _:
            return None


def _start(acceptable: tuple[NameSequence, ...], names: NameSequence) -> list[Mismatch]:
    return [] if _begins(acceptable, names) else [sequence_mismatch(acceptable, names)]


def _begins(acceptable: tuple[NameSequence, ...], names: NameSequence) -> bool:
    if not names:
        return () in acceptable
    return any(sequence[: len(names)] == names for sequence in acceptable)


def _in_order(order: NameSequence, names: NameSequence) -> Finding:
    """Ask that a turn which calls any of the tools calls the first of them; others may come before it."""
    first_called = next((name for name in names if name in order), None)
    if first_called is None:
        return None
    if order[0] in names:
        return []
    called = ", ".join(names)
    what = f"a call of {order[0]} before {first_called}; expected in order [{', '.join(order)}], called [{called}]"
    return [Mismatch("missing", what)]


def _arguments(case: ToolUseCase, check: str, tool: str, turn: Behaviour) -> Finding:
    """Judge the arguments of a tool that was called, unless a later call of it may be the one that is meant."""
    verifier = case.verifier or Verifier()
    if tool not in turn.names:
        return None
    exact = check == "args_exact"
    expected = (verifier.args_exact if exact else verifier.args)[tool]
    found = list(tool_arguments(tool, expected, turn, exact=exact))
    return None if found and _is_due_again(case, verifier, tool, turn.names) else found


def _is_due_again(case: ToolUseCase, verifier: Verifier, tool: str, names: NameSequence) -> bool:
    sequences = (*(case.expected or ()), *(verifier.exact or ()))
    rests = (sequence[len(names) :] for sequence in sequences if sequence[: len(names)] == names)
    most = max(verifier.in_order.count(tool), (verifier.any_order or ()).count(tool))
    return any(tool in rest for rest in rests) or most > Counter(names)[tool]
