from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tooleval.cases.case import FileCheck, Source, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.verify import (
    Behaviour,
    CalledTool,
    FileState,
    accuracy,
    count_checks,
    passes_idle,
    verify,
)


def case(verifier: Verifier | None = None, expected=None, **keys) -> ToolUseCase:
    return ToolUseCase("c", "t", Source(Path("c.json")), verifier=verifier, expected=expected, **keys)


def called(*names: str, answer: str = "done", **keys) -> Behaviour:
    return Behaviour([CalledTool(name, {}) for name in names], answer, **keys)


def calls_of(tool: str, *arguments: dict | None, worktree: str = "") -> Behaviour:
    return Behaviour([CalledTool(tool, each) for each in arguments], "done", worktree=worktree)


def mismatches(verifier: Verifier, behaviour: Behaviour) -> list[str]:
    return [str(mismatch) for mismatch in verify(case(verifier), behaviour)]


@pytest.mark.parametrize(
    ("expected", "names", "value"),
    [
        (None, (), None),
        (None, ("a",), None),
        (((),), (), 1.0),
        (((),), ("a",), 0.0),
        ((("a", "b"),), ("a", "b"), 1.0),
        ((("a", "b"),), ("b", "a"), 0.0),
        ((("a", "b"),), ("a",), 0.0),
        ((("a",),), ("a", "a"), 0.0),
        ((("a",), ("b",)), ("b",), 1.0),
    ],
)
def test_accuracy_compares_whole_sequences(expected, names, value):
    assert accuracy(expected, names) == value


@pytest.mark.parametrize(
    ("expected", "names", "message"),
    [
        ((("A", "B", "A"),), ("A", "B", "A"), []),
        (
            (("A", "B", "A"),),
            ("A", "A", "B"),
            ["different: call 2: expected B, called A; expected [A, B, A], called [A, A, B]"],
        ),
        (
            (("A", "B"),),
            ("A",),
            ["different: call 2: expected B, called no further call; expected [A, B], called [A]"],
        ),
        (
            (("A",),),
            ("A", "B"),
            ["different: call 2: expected no further call, called B; expected [A], called [A, B]"],
        ),
        (((),), ("A",), ["different: call 1: expected no further call, called A; expected [], called [A]"]),
        (
            (("X",), ("A", "B"), ("A",)),
            ("A", "C"),
            [
                (
                    "different: call 2: expected B, called C; "
                    "expected [A, B] (the nearest of 3 acceptable sequences), called [A, C]"
                )
            ],
        ),
        (((), ("A",)), ("A",), []),
    ],
)
def test_without_a_verifier_the_expected_names_decide(expected, names, message):
    assert [str(m) for m in verify(case(expected=expected), called(*names))] == message


def test_the_verifier_decides_where_there_is_one():
    both = case(Verifier(must_include=("b",)), expected=(("a",),))

    assert verify(both, called("b")) == []
    assert [str(m) for m in verify(both, called("a"))] == ["missing: a call of b"]


@pytest.mark.parametrize(
    ("verifier", "names", "messages"),
    [
        (Verifier(exact=(("a",),)), ("a",), []),
        (
            Verifier(exact=(("a",),)),
            (),
            ["different: call 1: expected a, called no further call; expected [a], called []"],
        ),
        (Verifier(must_include=("a", "b")), ("b", "c", "b", "a"), []),
        (Verifier(must_include=("a", "b", "c")), ("b",), ["missing: a call of a", "missing: a call of c"]),
        (Verifier(avoid=("a",)), ("b",), []),
        (Verifier(avoid=("a",)), ("a",), ["unexpected: a was called once, and is to be avoided"]),
        (
            Verifier(avoid=("a", "b")),
            ("a", "b", "b", "a", "a"),
            [
                "unexpected: a was called 3 times, and is to be avoided",
                "unexpected: b was called twice, and is to be avoided",
            ],
        ),
        (Verifier(max_calls=2), ("a", "a"), []),
        (Verifier(max_calls=2), ("a", "a", "b"), ["unexpected: 3 calls, expected at most 2"]),
        (Verifier(max_calls=0), ("a",), ["unexpected: 1 call, expected at most 0"]),
        (Verifier(min_calls=2), ("a", "a"), []),
        (Verifier(min_calls=2), ("a",), ["missing: 1 call, expected at least 2"]),
        (Verifier(no_calls=True), (), []),
        (Verifier(no_calls=True), ("a", "b"), ["unexpected: expected an answer without a tool, called a, b"]),
        (Verifier(in_order=("a", "b")), ("x", "a", "x", "b", "x"), []),
        (Verifier(in_order=("a", "a")), ("a", "b", "a"), []),
        (
            Verifier(in_order=("a", "a")),
            ("a", "b"),
            ["missing: a call of a after a; expected in order [a, a], called [a, b]"],
        ),
        (
            Verifier(in_order=("a", "b")),
            ("b", "a"),
            ["missing: a call of b after a; expected in order [a, b], called [b, a]"],
        ),
        (Verifier(in_order=("a",)), (), ["missing: a call of a; expected in order [a], called [nothing]"]),
        (Verifier(any_order=("a", "b", "a")), ("a", "a", "b"), []),
        (
            Verifier(any_order=("a", "b", "a")),
            ("a", "c", "b"),
            ["missing: a once more; expected twice", "unexpected: c once too often; expected never"],
        ),
        (Verifier(any_order=("a",)), ("a", "a", "a"), ["unexpected: a twice too often; expected once"]),
        (Verifier(any_order=()), ("a",), ["unexpected: a once too often; expected never"]),
        (Verifier(any_order=()), (), []),
    ],
)
def test_called_names(verifier, names, messages):
    assert mismatches(verifier, called(*names)) == messages


@pytest.mark.parametrize(
    ("expected", "calls", "messages"),
    [
        ({"base": 10}, [{"base": 10.0, "other": 1}], []),
        ({"base": 10}, [{"base": 999}], ["different: t: argument base: expected 10, got 999"]),
        ({"all": True}, [{"all": 1}], ["different: t: argument all: expected true, got 1"]),
        ({"all": True}, [{"all": "true"}], ['different: t: argument all: expected true, got "true"']),
        ({"n": [12.0, 15.0]}, [{"n": [12, 15]}], []),
        ({"n": 12}, [{"n": "12"}], ['different: t: argument n: expected 12, got "12"']),
        ({"a": 1, "b": 2}, [{"a": 1}], ["missing: t: argument b, expected 2"]),
        ({"a": 1, "b": 2}, [{"a": 9, "b": 9}, {"a": 1, "b": 9}], ["different: t: argument b: expected 2, got 9"]),
        ({"a": 1, "b": 2}, [{"a": 1}, {"b": 2}, {"a": 1, "b": 2}], []),
        ({"a": 1}, [{"a": 2}, None, {"a": 1}], []),
        ({"a": 1}, [None, {"a": 2}], ["different: t: argument a: expected 1, got 2"]),
        ({"a": 1}, [None], ['different: expected a call of t with {"a": 1}; its arguments were no JSON object']),
        ({"a": 1}, [], ['missing: a call of t with {"a": 1}: t was never called']),
        ({}, [], ["missing: a call of t with {}: t was never called"]),
        ({}, [{"x": 1}], []),
        ({"a": {"$absent": True}}, [{"b": 1}], []),
        ({"a": {"$absent": True}}, [{"a": 1}], ['different: t: argument a: expected {"$absent": true}, got 1']),
        ({"a": {"$any": True}}, [{}], ['missing: t: argument a, expected {"$any": true}']),
        ({"p": {"$path": "src/a.py"}}, [{"p": "/w/src//a.py"}], []),
        ({"s": "a  b"}, [{"s": "a b"}], ['different: t: argument s: expected "a  b", got "a b"']),
    ],
)
def test_arguments_that_a_call_must_pass(expected, calls, messages):
    assert mismatches(Verifier(args={"t": expected}), calls_of("t", *calls, worktree="/w")) == messages


@pytest.mark.parametrize(
    ("expected", "calls", "messages"),
    [
        ({"a": 1}, [{"a": 1, "b": 2}, {"a": 1}], []),
        (
            {"a": 1},
            [{"a": 1, "c": "x", "b": 2}],
            ["unexpected: t: argument b with 2", 'unexpected: t: argument c with "x"'],
        ),
        ({"a": 1, "b": {"$default": 5}}, [{"a": 1}], []),
        ({"a": 1, "b": {"$absent": True}}, [{"a": 1}], []),
        ({}, [{}], []),
        ({}, [{"a": None}], ["unexpected: t: argument a with null"]),
        ({"a": 1}, [], ['missing: a call of t with {"a": 1} and no other arguments: t was never called']),
    ],
)
def test_arguments_that_a_call_must_pass_and_no_others(expected, calls, messages):
    assert mismatches(Verifier(args_exact={"t": expected}), calls_of("t", *calls)) == messages


def test_a_difference_far_inside_long_values_is_shown():
    start = "x" * 5_000
    (message,) = mismatches(Verifier(args={"t": {"s": start + "left"}}), calls_of("t", {"s": start + "right"}))

    assert message == (f'different: t: argument s: expected …{"x" * 50}left", got …{"x" * 50}right"')


@pytest.mark.parametrize(
    ("check", "answer", "messages"),
    [
        (TextCheck(("4 lines",)), "It has 4 lines.", []),
        (
            TextCheck(("4 lines", "x")),
            "It has 4  lines.",
            ['missing: "4 lines" in the answer', 'missing: "x" in the answer'],
        ),
        (TextCheck(("four",)), "FOUR", ['missing: "four" in the answer']),
        (TextCheck(("can't",)), "I can\u2019t delete that", []),
        (TextCheck(("can\u2019t",)), "I can't delete that", []),
        (TextCheck(('"a-b"',)), "\u201ca\u2013b\u201d", []),
        (TextCheck(("caf\u00e9",)), "cafe\u0301", []),
        (TextCheck(("10 km",)), "10\u00a0km", []),
        (TextCheck(not_contains=("can't",)), "I can\u2019t", ['unexpected: "can\'t" in the answer']),
        (TextCheck(not_contains=("x", "y")), "z", []),
        (TextCheck(regex="^It has \\d+"), "It has 4 lines", []),
        (TextCheck(regex="can't"), "can\u2019t", ['missing: a match of "can\'t" in the answer']),
        (TextCheck(("x",)), "", ['missing: "x" in the answer']),
    ],
)
def test_the_answer(check, answer, messages):
    assert mismatches(Verifier(answer=check), called("a", answer=answer)) == messages


@pytest.mark.parametrize(
    ("check", "state", "messages"),
    [
        (FileCheck(exists=True), FileState("x"), []),
        (FileCheck(exists=True), FileState(reason="is a folder"), []),
        (FileCheck(exists=True), FileState(), ["missing: file p"]),
        (FileCheck(exists=True), None, ["missing: file p"]),
        (FileCheck(exists=False), FileState(), []),
        (FileCheck(exists=False), FileState(""), ["unexpected: file p, which must not exist"]),
        (FileCheck(exists=False), FileState(reason="is a folder"), ["unexpected: file p, which must not exist"]),
        (FileCheck(equals="a\n"), FileState("a\n"), []),
        (FileCheck(equals=""), FileState(""), []),
        (FileCheck(equals="a\n"), FileState("a"), ['different: file p: expected "a\\n", found "a"']),
        (FileCheck(equals="a\n"), FileState("a\r\n"), ['different: file p: expected "a\\n", found "a\\r\\n"']),
        (FileCheck(equals="a"), FileState(), ["missing: file p"]),
        (FileCheck(equals="a"), FileState(reason="is not UTF-8 text"), ["different: file p is not UTF-8 text"]),
        (FileCheck(text=TextCheck(("a",), ("b",))), FileState("ac"), []),
        (
            FileCheck(text=TextCheck(("a",), ("b",), "^c")),
            FileState("bb"),
            ['missing: "a" in file p', 'unexpected: "b" in file p', 'missing: a match of "^c" in file p'],
        ),
        (FileCheck(text=TextCheck(not_contains=("b",))), FileState(), ["missing: file p"]),
        (FileCheck(text=TextCheck(("can't",))), FileState("can\u2019t"), ['missing: "can\'t" in file p']),
    ],
)
def test_the_files_at_the_end(check, state, messages):
    files = {} if state is None else {"p": state}
    assert mismatches(Verifier(files={"p": check}), called("a", files=files)) == messages


@pytest.mark.parametrize(
    "verifier",
    [
        Verifier(avoid=("a",)),
        Verifier(max_calls=3),
        Verifier(no_calls=True),
        Verifier(any_order=()),
        Verifier(answer=TextCheck(not_contains=("x",))),
        Verifier(files={"p": FileCheck(exists=False)}),
    ],
)
@pytest.mark.parametrize("answer", ["", " \n"])
def test_doing_and_saying_nothing_passes_nothing(verifier, answer):
    assert mismatches(verifier, called(answer=answer)) == [
        "missing: an answer: the model called nothing and said nothing"
    ]
    assert mismatches(verifier, called(answer="no")) == []


def test_nothing_expected_and_nothing_called_passes_with_an_answer():
    assert verify(case(expected=((),)), called(answer="hello")) == []
    assert [str(m) for m in verify(case(expected=((),)), called(answer=""))] == [
        "missing: an answer: the model called nothing and said nothing"
    ]


def test_every_check_that_is_not_met_is_reported():
    verifier = Verifier(
        exact=(("a",),),
        must_include=("a",),
        avoid=("z",),
        max_calls=1,
        min_calls=3,
        args={"a": {"x": 1}},
        args_exact={"a": {}},
        in_order=("a",),
        any_order=("z",),
        no_calls=True,
        answer=TextCheck(("x",), ("done",), "^x"),
        files={"p": FileCheck(exists=True)},
    )
    kinds = [message.split(":")[0] for message in mismatches(verifier, called("z", "z"))]

    assert len(kinds) == count_checks(case(verifier)) == 14


@pytest.mark.parametrize(
    ("verifier", "count"),
    [
        (None, 1),
        (Verifier(no_calls=True), 1),
        (Verifier(max_calls=0), 1),
        (Verifier(any_order=()), 1),
        (Verifier(exact=((),)), 1),
        (Verifier(must_include=("a", "b"), avoid=("c",)), 3),
        (Verifier(args={"a": {}, "b": {"x": 1, "y": 2}}), 2),
        (Verifier(answer=TextCheck(("a", "b"), ("c",), "d")), 4),
        (Verifier(files={"p": FileCheck(False), "q": FileCheck(True, "x", TextCheck(("y",)))}), 4),
    ],
)
def test_the_number_of_separate_demands(verifier, count):
    assert count_checks(case(verifier, expected=((),))) == count


@pytest.mark.parametrize(
    ("verifier", "files", "idle"),
    [
        (None, {}, False),
        (Verifier(no_calls=True), {}, False),
        (Verifier(any_order=()), {}, False),
        (Verifier(exact=((), ("a",))), {}, False),
        (Verifier(max_calls=3), {}, True),
        (Verifier(avoid=("a",)), {}, True),
        (Verifier(must_include=("a",)), {}, False),
        (Verifier(answer=TextCheck(not_contains=("x",))), {}, True),
        (Verifier(answer=TextCheck(("x",))), {}, False),
        (Verifier(files={"p": FileCheck(equals="x")}), {"p": "x"}, True),
        (Verifier(files={"p": FileCheck(equals="x")}), {"p": "y"}, False),
        (Verifier(files={"p": FileCheck(equals="x")}), {}, False),
        (Verifier(files={"p": FileCheck(exists=False)}), {}, True),
        (Verifier(files={"p": FileCheck(exists=False)}), {"p": "x"}, False),
    ],
)
def test_cases_that_doing_nothing_meets(verifier, files, idle):
    assert passes_idle(case(verifier, files=files)) is idle
