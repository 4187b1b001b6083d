"""A run against what its fixture demands: the difference, as data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pytest_tooleval.cases.case import FileCheck, NameSequence, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.matching import ABSENT, matches, regex_found
from pytest_tooleval.measures.text import common_start, cut, cut_pair, fold_typography, listed

Kind: TypeAlias = Literal["missing", "unexpected", "different"]
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference between what was expected and what happened."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the worktree at the end: its text, or None with the reason why there is none to compare."""

    text: str | None = None
    reason: str = "does not exist"

    @property
    def exists(self) -> bool:
        """Whether something stands at the path."""
        return self.text is not None or self.reason != "does not exist"


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A call as a verifier sees it; `arguments` is None when the model's text was no JSON object."""

    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """All of a run that a verifier looks at.

    Attributes:
        calls: the calls in the model's order.
        answer: the final text.
        files: end state of the files that the verifier names.
        worktree: real path of the case's folder, for `$path`.

    """

    calls: Sequence[CalledTool] = ()
    answer: str = ""
    files: Mapping[str, FileState] = field(default_factory=dict)
    worktree: str = ""

    @property
    def names(self) -> NameSequence:
        """The called names in the model's order."""
        return tuple(call.name for call in self.calls)


def accuracy(expected: tuple[NameSequence, ...] | None, names: NameSequence) -> float | None:
    """Return 1.0 when the names equal an acceptable sequence, else 0.0; None when nothing is expected."""
    return None if expected is None else float(names in expected)


def verify(case: ToolUseCase, behaviour: Behaviour) -> list[Mismatch]:
    """Return every mismatch between a behaviour and the case, none when it passes.

    The verifier decides; without one the expected names do. A behaviour that is empty from end to end passes
    nothing, even where every check is met by doing nothing.
    """
    found = list(_mismatches(case, behaviour))
    if not found and not behaviour.calls and not behaviour.answer.strip():
        found.append(Mismatch("missing", "an answer: the model called nothing and said nothing"))
    return found


def passes_idle(case: ToolUseCase) -> bool:
    """Whether doing nothing meets every check of a case that does not ask for just that."""
    verifier = case.verifier
    if verifier is None or verifier.no_calls or () in (verifier.exact or ()) or verifier.any_order == ():
        return False
    untouched = {path: FileState(text) for path, text in case.files.items()}
    files = {path: untouched.get(path, FileState()) for path in verifier.files}
    return not list(_mismatches(case, Behaviour(files=files)))


def demanded_tools(case: ToolUseCase) -> list[str]:
    """Return the tools that every passing run calls, in the order in which the case names them."""
    verifier = case.verifier or Verifier(exact=case.expected)
    first, *others = verifier.exact or ((),)
    in_all = (name for name in first if all(name in sequence for sequence in others))
    named = (*in_all, *verifier.must_include, *verifier.in_order, *(verifier.any_order or ()))
    return list(dict.fromkeys([*named, *verifier.args, *verifier.args_exact]))


def count_checks(case: ToolUseCase) -> int:
    """Return how many separate demands decide whether the case passes; at least 1."""
    verifier = case.verifier
    if verifier is None:
        return 1
    singles = (verifier.exact, verifier.max_calls, verifier.min_calls, verifier.any_order)
    count = sum(single is not None for single in singles) + bool(verifier.in_order) + verifier.no_calls
    count += len(verifier.must_include) + len(verifier.avoid) + len(verifier.args) + len(verifier.args_exact)
    count += _count_text(verifier.answer or TextCheck())
    for check in verifier.files.values():
        count += (check.exists is not None) + (check.equals is not None) + _count_text(check.text)
    return count


def _count_text(check: TextCheck) -> int:
    return len(check.contains) + len(check.not_contains) + (check.regex is not None)


def _mismatches(case: ToolUseCase, behaviour: Behaviour) -> Iterator[Mismatch]:
    if case.verifier is None:
        yield from _sequence(case.expected or (), behaviour.names)
        return
    for check in _CHECKS:
        yield from check(case.verifier, behaviour)


def _exact(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    if verifier.exact is not None:
        yield from _sequence(verifier.exact, behaviour.names)


def _sequence(acceptable: tuple[NameSequence, ...], names: NameSequence) -> Iterator[Mismatch]:
    if names not in acceptable:
        yield sequence_mismatch(acceptable, names)


def sequence_mismatch(acceptable: tuple[NameSequence, ...], names: NameSequence) -> Mismatch:
    """Return where the called names leave the acceptable sequence that they follow longest."""
    expected = max(acceptable, key=lambda sequence: common_start(sequence, names), default=())
    return Mismatch("different", _first_difference(expected, names, len(acceptable)))


def _first_difference(expected: NameSequence, names: NameSequence, alternatives: int) -> str:
    index = common_start(expected, names)
    wanted = expected[index] if index < len(expected) else "no further call"
    called = listed(names[index : index + 1]) or "no further call"
    nearest = f" (the nearest of {alternatives} acceptable sequences)" if alternatives > 1 else ""
    sequences = f"expected [{', '.join(expected)}]{nearest}, called [{listed(names)}]"
    return f"call {index + 1}: expected {wanted}, called {called}; {sequences}"


def _must_include(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    for name in verifier.must_include:
        if name not in behaviour.names:
            yield Mismatch("missing", f"a call of {name}")


def avoided_tools(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    """Yield a mismatch for each tool that was called and is to be avoided."""
    times = Counter(behaviour.names)
    for name in verifier.avoid:
        if times[name]:
            yield Mismatch("unexpected", f"{name} was called {_times(times[name])}, and is to be avoided")


def calls_beyond_most(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    """Yield a mismatch when there are more calls than `max_calls`."""
    count = len(behaviour.calls)
    if verifier.max_calls is not None and count > verifier.max_calls:
        yield Mismatch("unexpected", f"{_calls(count)}, expected at most {verifier.max_calls}")


def _calls_below_least(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    count = len(behaviour.calls)
    if verifier.min_calls is not None and count < verifier.min_calls:
        yield Mismatch("missing", f"{_calls(count)}, expected at least {verifier.min_calls}")


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def calls_where_none_may_be(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    """Yield a mismatch when there are calls in spite of `no_calls`."""
    if verifier.no_calls and behaviour.calls:
        yield Mismatch("unexpected", f"expected an answer without a tool, called {listed(behaviour.names)}")


def _in_order(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    remaining = iter(behaviour.names)
    for position, name in enumerate(verifier.in_order):
        if name not in remaining:
            after = f" after {', '.join(verifier.in_order[:position])}" if position else ""
            order = ", ".join(verifier.in_order)
            called = listed(behaviour.names) or "nothing"
            yield Mismatch("missing", f"a call of {name}{after}; expected in order [{order}], called [{called}]")
            return


def _any_order(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    wanted, called = Counter(verifier.any_order or ()), Counter(behaviour.names)
    for name, times in sorted((wanted - called).items()):
        yield Mismatch("missing", f"{name} {_times(times)} more; expected {_times(wanted[name])}")
    yield from calls_beyond_any_order(verifier, behaviour)


def calls_beyond_any_order(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    """Yield a mismatch for each tool that was called more often than it stands in `any_order`."""
    if verifier.any_order is None:
        return
    wanted, called = Counter(verifier.any_order), Counter(behaviour.names)
    for name, times in sorted((called - wanted).items()):
        yield Mismatch("unexpected", f"{listed([name])} {_times(times)} too often; expected {_times(wanted[name])}")


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _args(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    for tool, expected in verifier.args.items():
        yield from tool_arguments(tool, expected, behaviour, exact=False)
    for tool, expected in verifier.args_exact.items():
        yield from tool_arguments(tool, expected, behaviour, exact=True)


def tool_arguments(
    tool: str, expected: Mapping[str, Any], behaviour: Behaviour, *, exact: bool
) -> Iterator[Mismatch]:
    """Yield what keeps the best call of a tool from passing the expected arguments.

    Args:
        tool: the tool.
        expected: what one of its calls has to pass, by argument.
        behaviour: the run.
        exact: whether that call may pass no other arguments.

    """
    calls = [call for call in behaviour.calls if call.name == tool]
    demand = f"{tool} with {_shown(expected)}" + (" and no other arguments" if exact else "")
    readable = [call.arguments for call in calls if call.arguments is not None]
    if not calls:
        yield Mismatch("missing", f"a call of {demand}: {tool} was never called")
    elif not readable:
        yield Mismatch("different", f"expected a call of {demand}; its arguments were no JSON object")
    else:
        differences = (
            list(_argument_differences(tool, expected, actual, behaviour.worktree, exact=exact))
            for actual in readable
        )
        yield from min(differences, key=len)


def _argument_differences(
    tool: str, expected: Mapping[str, Any], actual: Mapping[str, Any], worktree: str, *, exact: bool
) -> Iterator[Mismatch]:
    for name, value in expected.items():
        got = actual.get(name, ABSENT)
        if matches(value, got, worktree):
            continue
        if got is ABSENT:
            yield Mismatch("missing", f"{tool}: argument {name}, expected {_shown(value)}")
        else:
            wanted, found = _shown_pair(value, got)
            yield Mismatch("different", f"{tool}: argument {name}: expected {wanted}, got {found}")
    if exact:
        for name in sorted(actual.keys() - expected.keys()):
            yield Mismatch("unexpected", f"{tool}: argument {listed([name])} with {_shown(actual[name])}")


def _shown(value: Any) -> str:
    return cut(_json(value), _SHOWN_CHARS)


def _shown_pair(expected: Any, actual: Any) -> tuple[str, str]:
    """Return both values, long ones from shortly before their first difference."""
    return cut_pair(_json(expected), _json(actual), _SHOWN_CHARS)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _answer(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    if verifier.answer is not None:
        yield from _text("the answer", verifier.answer, behaviour.answer, fold=fold_typography)


def _text(
    where: str, check: TextCheck, text: str, fold: Callable[[str], str] = lambda text: text
) -> Iterator[Mismatch]:
    folded = fold(text)
    for wanted in check.contains:
        if fold(wanted) not in folded:
            yield Mismatch("missing", f"{_shown(wanted)} in {where}")
    for unwanted in check.not_contains:
        if fold(unwanted) in folded:
            yield Mismatch("unexpected", f"{_shown(unwanted)} in {where}")
    if check.regex is not None and not regex_found(check.regex, text):
        yield Mismatch("missing", f"a match of {_shown(check.regex)} in {where}")


def _files(verifier: Verifier, behaviour: Behaviour) -> Iterator[Mismatch]:
    for path, check in verifier.files.items():
        yield from _file(path, check, behaviour.files.get(path, FileState()))


def _file(path: str, check: FileCheck, state: FileState) -> Iterator[Mismatch]:
    if check.exists is False:
        if state.exists:
            yield Mismatch("unexpected", f"file {path}, which must not exist")
        return
    if not state.exists:
        yield Mismatch("missing", f"file {path}")
    elif state.text is None:
        if check != FileCheck(exists=True):
            yield Mismatch("different", f"file {path} {state.reason}")
    else:
        if check.equals is not None and state.text != check.equals:
            wanted, found = _shown_pair(check.equals, state.text)
            yield Mismatch("different", f"file {path}: expected {wanted}, found {found}")
        yield from _text(f"file {path}", check.text, state.text)


_CHECKS: tuple[Callable[[Verifier, Behaviour], Iterator[Mismatch]], ...] = (
    _exact,
    _must_include,
    avoided_tools,
    calls_beyond_most,
    _calls_below_least,
    calls_where_none_may_be,
    _in_order,
    _any_order,
    _args,
    _answer,
    _files,
)
