from __future__ import annotations

import time
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.cases.case import Source, ToolUseCase, Verifier
from pytest_tooleval.measures.confusion import (
    MOST_ALIGNED,
    Confusion,
    Pair,
    ToolSelection,
    align,
    confusion,
    expected_sequences,
)
from pytest_tooleval.measures.measurement import Measurement


def run(
    expected: list[list[str]] | None, *called: str, verdict: Any = "missed", trial: int = 1, **record: Any
) -> Measurement:
    """Return a measurement whose calls are `name` or `name:outcome`."""
    trace = [
        {"name": name, "arguments": {}, "outcome": outcome or "ok"}
        for name, _, outcome in (each.partition(":") for each in called)
    ]
    fields = {"names": [entry["name"] for entry in trace], "trace": trace, "expectedNames": expected, **record}
    return Measurement("tool_use", "n", "evals", "f", 0, "c", "m", trial, verdict=verdict, record=fields)


@pytest.mark.parametrize(
    ("expected", "called", "pairs"),
    [
        ("", "", []),
        ("a", "a", ["aa"]),
        ("a", "b", ["ab"]),
        ("a", "", ["a-"]),
        ("", "a", ["-a"]),
        ("ab", "b", ["a-", "bb"]),
        ("ab", "a", ["aa", "b-"]),
        ("ab", "c", ["ac", "b-"]),
        ("a", "cb", ["ac", "-b"]),
        ("a", "ba", ["-b", "aa"]),
        ("abc", "axc", ["aa", "bx", "cc"]),
        ("abc", "abbc", ["aa", "bb", "-b", "cc"]),
        # As many differences as two unlike pairs, and yet one name in common.
        ("ab", "ba", ["a-", "bb", "-a"]),
        ("abcd", "bcda", ["a-", "bb", "cc", "dd", "-a"]),
    ],
)
def test_an_alignment_has_the_fewest_differences(expected, called, pairs):
    found = align([tuple(expected)], tuple(called))
    assert ["".join(name or "-" for name in pair) for pair in found] == pairs


@pytest.mark.parametrize(
    ("acceptable", "called", "pairs"),
    [
        (["ab", "c"], "c", [("c", "c")]),
        (["ab", "cd"], "ad", [("a", "a"), ("b", "d")]),
        (["cd", "ab"], "ad", [("c", "a"), ("d", "d")]),
        (["", "a"], "b", [(None, "b")]),
        (["a", ""], "b", [("a", "b")]),
        (["xab", "ba"], "ab", [("x", None), ("a", "a"), ("b", "b")]),
    ],
)
def test_the_nearest_sequence_is_taken_and_of_equally_near_ones_the_first(acceptable, called, pairs):
    assert align([tuple(sequence) for sequence in acceptable], tuple(called)) == pairs


NAMES = st.lists(st.sampled_from("abc"), max_size=5).map(tuple)


def edit_distance(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """Return the distance by its recursive definition."""

    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(
            between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (left[i - 1] != right[j - 1])
        )

    return between(len(left), len(right))


@given(NAMES, NAMES)
def test_an_alignment_holds_both_sequences_in_order_at_the_edit_distance(expected, called):
    pairs = align([expected], called)
    assert tuple(wanted for wanted, _ in pairs if wanted is not None) == expected
    assert tuple(name for _, name in pairs if name is not None) == called
    assert sum(wanted != name for wanted, name in pairs) == edit_distance(expected, called)


@given(NAMES, NAMES)
def test_equal_sequences_are_never_confused_and_order_costs_no_more_than_it_must(expected, called):
    assert align([called, expected], called) == [(name, name) for name in called]
    common = sum((Counter(expected) & Counter(called)).values())
    assert sum(wanted == name for wanted, name in align([expected], called)) <= common


def test_calls_without_end_are_not_aligned_without_end():
    started = time.perf_counter()
    pairs = align([tuple("abcdefghij")] * 20, ("x",) * 50_000)
    assert time.perf_counter() - started < 5
    assert len(pairs) == 50_000
    assert pairs[MOST_ALIGNED:] == [(None, "x")] * (50_000 - MOST_ALIGNED)


def test_nothing_gives_nothing_and_no_zeros():
    assert confusion([]) == Confusion(0, {}, {}, None)


def test_pairs_are_counted_over_runs_most_frequent_first():
    found = confusion(
        [
            run([["grep"]], "glob"),
            run([["grep"]], "glob", trial=2),
            run([["grep", "read"]], "grep"),
            run([[]], "read"),
            run([["read"]], "read_file:unknown_tool"),
            run([["grep"], ["glob"]], "glob", verdict="passed"),
        ]
    )
    assert found.runs == 6
    assert list(found.pairs.items()) == [
        (Pair("grep", "glob"), 2),
        (Pair("glob", "glob"), 1),
        (Pair("grep", "grep"), 1),
        (Pair("read", "read_file", unknown=True), 1),
        (Pair("read", None), 1),
        (Pair(None, "read"), 1),
    ]
    assert list(found.wrong) == [pair for pair in found.pairs if pair.expected != pair.called]


def test_the_rates_of_a_tool():
    found = confusion(
        [
            run([["grep", "read", "read"]], "grep", "read", "grep"),
            run([["glob"]], "grep"),
            run([["list"]]),
        ]
    )
    grep, read, glob, listed = (found.tools[name] for name in ("grep", "read", "glob", "list"))
    assert (grep.support, grep.called, grep.right) == (1, 3, 1)
    assert (grep.precision, grep.recall, grep.f1) == (1 / 3, 1.0, 0.5)
    assert (read.precision, read.recall, read.f1) == (1.0, 0.5, 2 / 3)
    assert (glob.precision, glob.recall, glob.f1) == (None, 0.0, 0.0)
    assert (listed.precision, listed.recall, listed.f1, listed.valid_arguments) == (None, 0.0, 0.0, None)


def test_a_tool_that_is_never_expected_has_no_recall():
    tool = confusion([run([[]], "glob")]).tools["glob"]
    assert (tool.support, tool.precision, tool.recall, tool.f1) == (0, 0.0, None, 0.0)


def test_an_unknown_name_is_no_tool():
    found = confusion([run([["read"]], "read_file:unknown_tool")])
    assert set(found.tools) == {"read"}
    assert found.tools["read"] == ToolSelection(support=1, called=0, right=0, checked=0, valid=0)


def test_a_name_that_is_expected_and_unknown_was_still_chosen_rightly():
    found = confusion([run([["gone"]], "gone:unknown_tool")])
    assert found.pairs == {Pair("gone", "gone"): 1}
    assert found.tools["gone"].recall == 1.0
    assert found.valid_arguments is None


def test_the_share_of_valid_arguments_is_over_the_calls_that_were_checked():
    found = confusion(
        [
            run([["grep"]], "grep:invalid_arguments", "grep:error", "made_up:unknown_tool", "edit:denied"),
            run(None, "grep", "glob:not_run"),
        ]
    )
    assert found.runs == 1
    assert found.valid_arguments == 3 / 4
    assert found.tools["grep"].valid_arguments == 2 / 3
    assert found.tools["glob"] == ToolSelection(support=0, called=0, right=0, checked=1, valid=1)
    assert (found.tools["edit"].called, found.tools["edit"].valid_arguments) == (1, None)
    assert confusion([run([["a"]], "b:unknown_tool", "c:denied")]).valid_arguments is None


@pytest.mark.parametrize("verdict", ["error", "skipped"])
def test_what_was_not_measured_does_not_count(verdict):
    assert confusion([run([["grep"]], "glob", verdict=verdict)]) == Confusion()


def test_a_skipped_case_without_fields_does_no_harm():
    bare = Measurement("tool_use", "n", "evals", "f", 0, "c", "m", verdict="skipped")
    assert confusion([bare]) == Confusion()


@pytest.mark.parametrize("record", [{}, {"pass": True}, {"names": ["a"], "trace": []}])
def test_a_record_without_expected_names_is_not_aligned(record):
    assert confusion([Measurement("tool_use", "n", "e", "f", 0, "c", "m", record=record)]) == Confusion()


@pytest.mark.parametrize(
    ("expected", "called", "pairs"),
    [
        ([["grep", "read", "edit"]], ["grep"], {Pair("grep", "grep"): 1}),
        ([["grep", "read"]], ["read"], {Pair("grep", "read"): 1}),
        ([["grep", "read"]], [], {Pair("grep", None): 1}),
        ([["grep", "read"], ["read"]], ["read"], {Pair("read", "read"): 1}),
        ([[]], [], {}),
        ([["grep"]], ["grep", "read"], {Pair("grep", "grep"): 1, Pair(None, "read"): 1}),
    ],
)
def test_of_a_first_turn_only_the_start_is_expected(expected, called, pairs):
    assert confusion([run(expected, *called, tier="first_call")]).pairs == pairs


@pytest.mark.parametrize(
    ("expected", "verifier", "sequences"),
    [
        ((("a", "b"), ()), None, [["a", "b"], []]),
        ((("a",),), Verifier(exact=(("b",),)), [["a"]]),
        (None, Verifier(exact=(("b",),)), [["b"]]),
        (None, Verifier(must_include=("b",)), None),
    ],
)
def test_a_case_expects_its_expected_names_or_else_its_exact_ones(expected, verifier, sequences):
    case = ToolUseCase("c", "t", Source(Path("c.json")), expected=expected, verifier=verifier)
    assert expected_sequences(case) == sequences


RUNS = st.lists(
    st.builds(
        lambda expected, called: run([list(each) for each in expected], *called),
        st.lists(NAMES, min_size=1, max_size=2),
        NAMES,
    ),
    max_size=6,
)


@given(RUNS)
def test_the_counts_add_up(runs):
    found = confusion(runs)
    assert found == confusion(reversed(runs))
    called = sum(len(each.record["names"]) for each in runs)
    assert sum(count for pair, count in found.pairs.items() if pair.called is not None) == called
    assert sum(tool.called for tool in found.tools.values()) == called
    assert sum(tool.right for tool in found.tools.values()) == sum(
        count for pair, count in found.pairs.items() if pair.is_right
    )
    for one, other in combinations(found.tools, 2):
        assert one < other
    for tool in found.tools.values():
        rates = (tool.precision, tool.recall, tool.f1)
        assert all(rate is None or 0 <= rate <= 1 for rate in rates)
        assert tool.right <= min(tool.called, tool.support)
