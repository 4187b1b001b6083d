from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.cases.case import Source, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.lost import STAGES, Reach, count_lost, lost_at
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.transcript import ToolCall, TraceEntry

OFFERED = ("grep", "file_read", "list_dir", "file_edit")
DIRECT = Reach(OFFERED, OFFERED)


def case(*expected: tuple[str, ...], **verifier: Any) -> ToolUseCase:
    checks = Verifier(**verifier) if verifier else None
    return ToolUseCase("c", "t", Source(Path("c.json")), expected=expected or None, verifier=checks)


def called(name: str, outcome: Any = "ok", **arguments: Any) -> TraceEntry:
    return TraceEntry(1, ToolCall("i", name, arguments), outcome, "")


def shown(*names: str) -> Reach:
    return Reach(OFFERED, names)


@pytest.mark.parametrize(
    ("reach", "trace", "stage"),
    [
        (shown(), (), "search"),
        (shown("list_dir"), (called("list_dir"),), "search"),
        (shown("grep"), (), "selection"),
        (DIRECT, (called("list_dir"),), "selection"),
        (shown("grep"), (called("grep", "invalid_arguments"),), "arguments"),
        (shown(), (called("grep", "invalid_arguments"),), "arguments"),
        (DIRECT, (called("grep", "error"),), "execution"),
        (DIRECT, (called("grep", "denied"),), "execution"),
        (DIRECT, (called("grep", "invalid_arguments"), called("grep", "error")), "execution"),
        (DIRECT, (called("grep", "error"), called("grep")), "answer"),
        (DIRECT, (called("grep"), called("list_dir")), "answer"),
    ],
)
def test_the_stage_of_one_tool(reach, trace, stage):
    assert lost_at(case(("grep",)), trace, reach) == stage
    assert lost_at(case(must_include=("grep",)), trace, reach) == stage


def test_the_first_tool_that_was_not_called_well_decides():
    wanted = case(("grep", "file_read"))
    assert lost_at(wanted, (called("grep", "error"),), shown("grep")) == "execution"
    assert lost_at(wanted, (called("grep"),), shown("grep")) == "search"
    assert lost_at(wanted, (called("file_read", "error"),), shown("file_read")) == "search"


def test_a_tool_that_is_called_less_often_than_demanded_was_not_selected():
    assert lost_at(case(("grep", "grep")), (called("grep"),), DIRECT) == "selection"
    assert (
        lost_at(case(any_order=("grep", "grep")), (called("grep"), called("grep", "error")), DIRECT) == "execution"
    )
    assert lost_at(case(in_order=("grep", "grep")), (called("grep"),) * 2, DIRECT) == "answer"
    twice = (called("grep"), called("grep", "invalid_arguments"))
    assert lost_at(case(("grep", "grep")), twice, DIRECT) == "arguments"


def test_arguments_have_to_be_those_that_the_case_demands():
    wanted = case(args={"grep": {"pattern": "port"}})
    assert lost_at(wanted, (called("grep", pattern="x"),), DIRECT) == "arguments"
    assert lost_at(wanted, (called("grep", pattern="port"),), DIRECT) == "answer"
    failed = (called("grep", "error", pattern="port"), called("grep", pattern="x"))
    assert lost_at(wanted, failed, DIRECT) == "execution"
    assert lost_at(wanted, (called("grep", "denied", pattern="x"),), DIRECT) == "execution"


def test_two_demands_on_arguments_may_be_met_by_two_calls():
    wanted = case(args={"grep": {"pattern": "a"}}, args_exact={"grep": {"pattern": "b"}})
    both = (called("grep", pattern="a", path="."), called("grep", pattern="b"))
    assert lost_at(wanted, both, DIRECT) == "answer"
    assert lost_at(wanted, both[:1], DIRECT) == "arguments"


def test_paths_are_compared_in_the_folder_of_the_case():
    wanted = case(args={"file_read": {"path": {"$path": "a.txt"}}})
    trace = (called("file_read", path="/work/a.txt"),)
    assert lost_at(wanted, trace, DIRECT, "/work") == "answer"
    assert lost_at(wanted, trace, DIRECT, "/elsewhere") == "arguments"


def test_of_several_acceptable_sequences_the_one_that_went_furthest_counts():
    wanted = case(("grep",), ("list_dir", "file_read"))
    assert lost_at(wanted, (called("list_dir"),), shown("list_dir")) == "search"
    assert lost_at(wanted, (called("list_dir"), called("file_read", "error")), shown("list_dir")) == "execution"
    assert lost_at(case(("gone",), ("grep",)), (), DIRECT) == "selection"


@pytest.mark.parametrize(
    "undemanding",
    [
        case(no_calls=True),
        case(()),
        case((), ("grep",)),
        case(answer=TextCheck(("x",))),
        case(avoid=("grep",), max_calls=1),
    ],
)
def test_nothing_is_lost_where_nothing_is_demanded_by_name(undemanding):
    assert lost_at(undemanding, (called("list_dir"),), DIRECT) is None


def test_a_verifier_that_demands_no_tool_leaves_that_to_expected():
    wanted = case(("grep",), answer=TextCheck(("x",)))
    assert lost_at(wanted, (), DIRECT) == "selection"
    assert lost_at(case(("grep",), must_include=("list_dir",)), (called("list_dir"),), DIRECT) == "answer"


def test_what_is_not_there_cannot_be_lost():
    assert lost_at(case(("gone",)), (), DIRECT) is None
    assert lost_at(case(("gone",)), (called("gone", "unknown_tool"),), DIRECT) is None
    assert lost_at(case(("run_command",)), (called("run_command", "denied"),), DIRECT) == "execution"


OUTCOMES = st.sampled_from(["ok", "error", "denied", "invalid_arguments"])
TRACES = st.lists(st.builds(called, st.sampled_from(OFFERED), OUTCOMES), max_size=6)
SEQUENCES = st.lists(st.sampled_from(OFFERED), min_size=1, max_size=3).map(tuple)


@given(trace=TRACES, expected=SEQUENCES, seen=st.sets(st.sampled_from(OFFERED)))
def test_more_that_is_shown_never_loses_a_task_earlier(trace, expected, seen):
    wanted = case(expected)
    less, more = lost_at(wanted, trace, Reach(OFFERED, seen)), lost_at(wanted, trace, DIRECT)
    assert less is not None
    assert more is not None
    assert STAGES.index(less) <= STAGES.index(more)
    assert more != "search"


@given(trace=TRACES, expected=SEQUENCES)
def test_a_run_that_called_all_well_is_lost_at_the_answer_and_no_other_is(trace, expected):
    worked = [entry.call.name for entry in trace if entry.outcome == "ok"]
    enough = all(worked.count(name) >= expected.count(name) for name in expected)
    assert (lost_at(case(expected), trace, DIRECT) == "answer") is enough


def run(stage: str | None, verdict: Any = "missed") -> Measurement:
    return Measurement("tool_use", "n", "e", "f", 0, "c", "t", verdict=verdict, record={"lostAt": stage})


def test_stages_are_counted_over_measured_runs():
    counts = count_lost([run("search"), run("search"), run("answer"), run(None, "passed"), run("search", "error")])
    assert counts == {"search": 2, "selection": 0, "arguments": 0, "execution": 0, "answer": 1}
    assert list(counts) == list(STAGES)


def test_nothing_measured_has_no_counts():
    assert count_lost([run(None, "error")]) is None
    assert count_lost([]) is None
