from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.cases.case import FileCheck, Source, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.first_call import (
    FirstTurn,
    first_turn_accuracy,
    judge_first_turn,
    undecided_by_any_first_turn,
)
from pytest_tooleval.measures.verify import Behaviour, CalledTool, verify

SAYS_SO = TextCheck(contains=("done",))


def case(verifier: Verifier | None = None, expected: Any = None, **keys: Any) -> ToolUseCase:
    return ToolUseCase("c", "t", Source(Path("c.json")), verifier=verifier, expected=expected, **keys)


def turn(*names: str, answer: str = "") -> Behaviour:
    return Behaviour([CalledTool(name, {}) for name in names], answer)


def calls(*pairs: tuple[str, dict[str, Any] | None]) -> Behaviour:
    return Behaviour([CalledTool(*pair) for pair in pairs])


def judged(checked: ToolUseCase, behaviour: Behaviour) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    found = judge_first_turn(checked, behaviour)
    return [str(mismatch) for mismatch in found.mismatches], found.judged, found.not_judged


@pytest.mark.parametrize(
    ("expected", "names", "value"),
    [
        (None, (), None),
        (None, ("a",), None),
        ((("a", "b"),), ("a",), 1.0),
        ((("a", "b"),), ("a", "b"), 1.0),
        ((("a", "b"),), ("b",), 0.0),
        ((("a", "b"),), ("a", "b", "c"), 0.0),
        ((("a", "b"),), ("a", "c"), 0.0),
        ((("a", "b"), ("c", "a")), ("c",), 1.0),
        ((("a",),), (), 0.0),
        (((),), (), 1.0),
        (((), ("a",)), (), 1.0),
        (((),), ("a",), 0.0),
    ],
)
def test_accuracy_asks_for_the_start_of_an_acceptable_sequence(expected, names, value):
    assert first_turn_accuracy(expected, names) == value


@pytest.mark.parametrize("as_verifier", [False, True])
@pytest.mark.parametrize(
    ("acceptable", "names", "messages"),
    [
        ((("grep", "file_edit"),), ("grep",), []),
        (
            (("grep", "file_edit"),),
            ("file_edit",),
            ["different: call 1: expected grep, called file_edit; expected [grep, file_edit], called [file_edit]"],
        ),
        (
            (("grep",),),
            ("grep", "grep"),
            ["different: call 2: expected no further call, called grep; expected [grep], called [grep, grep]"],
        ),
        (((), ("grep",)), ("grep",), []),
    ],
)
def test_a_sequence_is_judged_by_its_start(acceptable, names, messages, as_verifier):
    checked = case(Verifier(exact=acceptable)) if as_verifier else case(expected=acceptable)
    assert judged(checked, turn(*names)) == (messages, ("exact" if as_verifier else "expected",), ())


@pytest.mark.parametrize(
    ("verifier", "names", "messages", "decided"),
    [
        (Verifier(must_include=("a", "b")), ("b",), [], True),
        (Verifier(must_include=("a", "b")), ("c", "a"), [], True),
        (Verifier(must_include=("a", "b")), ("c",), [], False),
        (Verifier(avoid=("a",)), ("b",), [], True),
        (Verifier(avoid=("a",)), ("b", "a"), ["unexpected: a was called once, and is to be avoided"], True),
        (Verifier(max_calls=1), ("b",), [], True),
        (Verifier(max_calls=1), ("b", "b"), ["unexpected: 2 calls, expected at most 1"], True),
        (Verifier(min_calls=2), ("b", "b"), [], True),
        (Verifier(min_calls=2), ("b",), [], False),
        (Verifier(no_calls=True), ("b",), ["unexpected: expected an answer without a tool, called b"], True),
        (Verifier(in_order=("a", "b")), ("a",), [], True),
        (Verifier(in_order=("a", "b")), ("c", "a", "b"), [], True),
        (Verifier(in_order=("a", "b")), ("b", "a"), [], True),
        (Verifier(in_order=("a", "b")), ("c",), [], False),
        (
            Verifier(in_order=("a", "b")),
            ("c", "b"),
            ["missing: a call of a before b; expected in order [a, b], called [c, b]"],
            True,
        ),
        (Verifier(any_order=("a", "b", "a")), ("a",), [], True),
        (Verifier(any_order=("a", "b", "a")), ("a", "a"), [], True),
        (Verifier(any_order=("a", "b")), ("a", "a"), ["unexpected: a once too often; expected once"], True),
        (Verifier(any_order=("a",)), ("c",), ["unexpected: c once too often; expected never"], True),
        (Verifier(any_order=()), ("c",), ["unexpected: c once too often; expected never"], True),
        (Verifier(answer=SAYS_SO), ("c",), [], False),
        (Verifier(files={"x": FileCheck(exists=True)}), ("c",), [], False),
    ],
)
def test_what_each_check_says_of_a_turn_with_calls(verifier, names, messages, decided):
    found, by, not_by = judged(case(verifier), turn(*names))
    assert found == messages
    assert (bool(by), bool(not_by)) == (decided, not decided)


ONE_PATH = Verifier(args={"read": {"path": "a.txt"}})


@pytest.mark.parametrize(
    ("verifier", "expected", "behaviour", "messages", "decided"),
    [
        (ONE_PATH, None, calls(("read", {"path": "a.txt", "limit": 5})), [], True),
        (ONE_PATH, None, calls(("read", {"path": "b.txt"}), ("read", {"path": "a.txt"})), [], True),
        (ONE_PATH, None, calls(("list", {})), [], False),
        (
            ONE_PATH,
            None,
            calls(("read", {"path": "b.txt"})),
            ['different: read: argument path: expected "a.txt", got "b.txt"'],
            True,
        ),
        (
            ONE_PATH,
            None,
            calls(("read", None)),
            ['different: expected a call of read with {"path": "a.txt"}; its arguments were no JSON object'],
            True,
        ),
        (
            Verifier(args_exact={"read": {"path": "a.txt"}}),
            None,
            calls(("read", {"path": "a.txt", "limit": 5})),
            ["unexpected: read: argument limit with 5"],
            True,
        ),
        # The call that is meant may be one that is still due.
        (ONE_PATH, (("read", "read"),), calls(("read", {"path": "b.txt"})), [], False),
        (ONE_PATH, (("read", "read"),), calls(("read", {"path": "a.txt"})), [], True),
        (ONE_PATH, (("read", "edit"), ("read", "list", "read")), calls(("read", {"path": "b.txt"})), [], False),
        (
            ONE_PATH,
            (("read", "edit"), ("list", "read")),
            calls(("read", {"path": "b.txt"})),
            ['different: read: argument path: expected "a.txt", got "b.txt"'],
            True,
        ),
        (
            Verifier(args=ONE_PATH.args, in_order=("read", "read")),
            None,
            calls(("read", {"path": "b.txt"})),
            [],
            False,
        ),
        (
            Verifier(args=ONE_PATH.args, any_order=("read", "read")),
            None,
            calls(("read", {"path": "b.txt"}), ("read", {"path": "c.txt"})),
            ['different: read: argument path: expected "a.txt", got "b.txt"'],
            True,
        ),
    ],
)
def test_arguments_are_judged_where_their_tool_is_called_and_not_due_again(
    verifier, expected, behaviour, messages, decided
):
    found, by, not_by = judged(case(verifier, expected), behaviour)
    tool_check = "args_exact.read" if verifier.args_exact else "args.read"
    assert found == messages
    assert (tool_check in by, tool_check in not_by) == (decided, not decided)


def test_each_check_is_listed_as_judged_or_not():
    verifier = Verifier(
        must_include=("edit",),
        avoid=("run",),
        max_calls=5,
        args={"edit": {"path": "a"}, "grep": {"pattern": "x"}},
        answer=SAYS_SO,
        files={"a": FileCheck(equals="x")},
    )
    found = judge_first_turn(case(verifier), calls(("grep", {"pattern": "x"})))
    assert found == FirstTurn(
        (), ("avoid", "max_calls", "args.grep"), ("must_include", "args.edit", "answer", "files")
    )


def test_expected_decides_where_the_verifier_can_decide_nothing():
    verifier = Verifier(answer=SAYS_SO)
    assert judged(case(verifier, (("grep",),)), turn("grep")) == ([], ("expected",), ("answer",))
    assert judged(case(verifier, (("grep",),)), turn("glob")) == (
        ["different: call 1: expected grep, called glob; expected [grep], called [glob]"],
        ("expected",),
        ("answer",),
    )


def test_expected_does_not_decide_where_the_verifier_does():
    assert judged(case(Verifier(max_calls=3), (("grep",),)), turn("glob")) == ([], ("max_calls",), ())


def test_a_turn_without_calls_ends_the_run_and_everything_is_judged():
    verifier = Verifier(
        min_calls=1,
        answer=SAYS_SO,
        files={"old": FileCheck(exists=False), "new": FileCheck(exists=True), "kept": FileCheck(equals="k")},
    )
    found, by, not_by = judged(
        case(verifier, files={"old": "o", "kept": "k"}), Behaviour(answer="All done.", files={})
    )
    assert found == [
        "missing: 0 calls, expected at least 1",
        "unexpected: file old, which must not exist",
        "missing: file new",
    ]
    assert (by, not_by) == (("min_calls", "answer", "files"), ())


@pytest.mark.parametrize(
    ("checked", "answer", "passes"),
    [
        (case(expected=((),)), "Hello.", True),
        (case(expected=((), ("grep",))), "Hello.", True),
        (case(expected=((),)), " ", False),
        (case(expected=(("grep",),)), "Hello.", False),
        (case(Verifier(exact=((),))), "Hello.", True),
        (case(Verifier(no_calls=True)), "Hello.", True),
        (case(Verifier(no_calls=True)), "", False),
        (case(Verifier(avoid=("grep",))), "Hello.", True),
        (case(Verifier(avoid=("grep",))), "", False),
        (case(Verifier(must_include=("grep",))), "Hello.", False),
        (case(Verifier(in_order=("grep",))), "Hello.", False),
        (case(Verifier(any_order=("grep",))), "Hello.", False),
        (case(Verifier(any_order=())), "Hello.", True),
        (case(Verifier(args={"grep": {}})), "Hello.", False),
        (case(Verifier(answer=SAYS_SO)), "done", True),
        (case(Verifier(answer=SAYS_SO)), "Hello.", False),
    ],
)
def test_an_empty_first_turn_passes_only_where_doing_nothing_may_pass(checked, answer, passes):
    assert (not judge_first_turn(checked, turn(answer=answer)).mismatches) is passes


@pytest.mark.parametrize(
    ("checked", "undecided"),
    [
        (case(Verifier(answer=SAYS_SO)), ("answer",)),
        (case(Verifier(answer=SAYS_SO, files={"a": FileCheck(exists=True)})), ("answer", "files")),
        (case(Verifier(answer=SAYS_SO), (("grep",),)), ()),
        (case(Verifier(answer=SAYS_SO, min_calls=1)), ()),
        (case(Verifier(answer=SAYS_SO, no_calls=True)), ()),
        (case(expected=(("grep",),)), ()),
    ],
)
def test_a_case_that_asks_for_the_end_only_is_known_beforehand(checked, undecided):
    assert undecided_by_any_first_turn(checked) == undecided


NAMES = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
SEQUENCES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
CASES = st.builds(
    case,
    st.builds(
        Verifier,
        exact=st.none() | SEQUENCES,
        must_include=NAMES,
        avoid=NAMES,
        max_calls=st.none() | st.integers(0, 4),
        min_calls=st.none() | st.integers(0, 4),
        in_order=NAMES,
        any_order=st.none() | NAMES,
        no_calls=st.booleans(),
    ),
    st.none() | SEQUENCES,
)


@st.composite
def passing_runs(draw: st.DrawFn) -> tuple[ToolUseCase, tuple[str, ...]]:
    names = draw(NAMES.filter(bool))
    others = [name for name in "abc" if name not in names]
    kept = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    verifier = Verifier(
        exact=draw(st.none() | SEQUENCES.map(lambda more: (*more, names))),
        must_include=draw(st.lists(st.sampled_from(names)).map(tuple)),
        avoid=draw(st.lists(st.sampled_from(others)).map(tuple)) if others else (),
        max_calls=draw(st.none() | st.integers(len(names), 6)),
        min_calls=draw(st.none() | st.integers(0, len(names))),
        in_order=tuple(name for name, keep in zip(names, kept, strict=True) if keep),
        any_order=draw(st.none() | st.permutations(names).map(tuple)),
    )
    return case(verifier), names


@given(passing_runs(), st.integers(1, 4))
def test_no_start_of_a_passing_run_misses_but_for_a_later_tool_called_first(run, length):
    checked, names = run
    assert verify(checked, turn(*names)) == []
    start, order = names[:length], checked.verifier.in_order
    begins_late = set(order) & set(start) and order[0] not in start
    assert bool(judge_first_turn(checked, turn(*start)).mismatches) is bool(begins_late)


@given(CASES)
def test_a_turn_without_calls_is_judged_like_a_whole_run(checked):
    for answer in ("", "done"):
        behaviour = turn(answer=answer)
        assert list(judge_first_turn(checked, behaviour).mismatches) == verify(checked, behaviour)


@given(CASES, NAMES.filter(bool))
def test_only_what_is_judged_can_mismatch_and_each_check_is_judged_or_not(checked, names):
    found = judge_first_turn(checked, turn(*names))
    assert not set(found.judged) & set(found.not_judged)
    assert found.judged or not found.mismatches
    assert ("exact" in found.judged) is (checked.verifier.exact is not None)
    assert ("must_include" in {*found.judged, *found.not_judged}) is bool(checked.verifier.must_include)
