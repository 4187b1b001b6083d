from __future__ import annotations

from typing import Any

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import rendered
from pytest_tooleval.reports.tool_set_summary import (
    broker_lines,
    broker_rows,
    lost_blocks,
    size_blocks,
    tool_set_fields,
)

FIND = {"name": "findTool", "arguments": {"query": "x"}, "shown": ["grep"]}


def run(
    model: str, *, way: str = "direct", count: int = 0, passed: bool = True, lost: str | None = None, **more: Any
) -> Measurement:
    suffix = (f"+{count}" if count else "") + ("+broker" if way == "broker" else "")
    size = more.pop("size", 5 + count)
    asked = {"brokerCalls": more.pop("asked", [])} if way == "broker" else {}
    record = {
        "toolSet": {"model": model, "tools": way, "distractors": count, "size": size},
        "accuracy": float(passed),
        "pass": passed,
        "tokens": None,
        "lostAt": lost,
        **asked,
        **more,
    }
    verdict: Any = "passed" if passed else "missed"
    case_id = f"c{size}{passed}"
    return Measurement("tool_use", "n", "e", "f", 0, case_id, f"{model}{suffix}", verdict=verdict, record=record)


def result(*runs: Measurement) -> SuiteResult:
    return SuiteResult(runs, targets=tuple(dict.fromkeys(each.target for each in runs)))


def shown(blocks: Any) -> list[str]:
    return rendered(blocks, 80, color=False).splitlines()


def test_sizes_are_compared_for_each_model_and_way():
    runs = [
        run("a:m"),
        run("a:m", passed=False),
        run("a:m", count=100, passed=False, size=103),
        run("a:m", count=100, passed=False, size=107),
        run("a:m", way="broker"),
        run("a:m", way="broker", count=100),
        run("b:m", count=1000),
    ]
    assert shown(size_blocks(result(*runs))) == [
        "",
        "metric    distractors      tools  a:m a:m+broker  b:m",
        "accuracy            0          5 0.50       1.00    -",
        "                  100 103 to 107 0.00       1.00    -",
        "                1,000      1,005    -          - 1.00",
        "pass rate           0          5 0.50       1.00    -",
        "                  100 103 to 107 0.00       1.00    -",
        "                1,000      1,005    -          - 1.00",
    ]


def test_tokens_for_each_solved_case_stand_beside_where_they_are_known():
    runs = [run("a:m", tokens=1000), run("a:m", count=9, tokens=4000), run("a:m", count=20, passed=False, tokens=7)]
    assert shown(size_blocks(result(*runs)))[-3:] == [
        "tokens per solved           0     5 1,000",
        "                            9    14 4,000",
        "                           20    25     -",
    ]


def test_one_size_is_no_comparison():
    assert shown(size_blocks(result(run("a:m"), run("a:m", way="broker"), run("b:m")))) == []
    assert shown(size_blocks(result())) == []


def test_runs_that_came_to_no_tools_have_no_size():
    runs = [run("a:m"), run("a:m", count=9, size=None, accuracy=None)]
    assert shown(size_blocks(result(*runs)))[3] == "                    9     -    -"


def test_stages_of_one_target_are_a_line_and_of_several_a_table():
    one = [run("a:m", passed=False, lost="search"), run("a:m", passed=False, lost="answer"), run("a:m")]
    assert shown(lost_blocks(result(*one))) == ["a:m: lost at search 1, answer 1"]
    several = [*one, run("b:m", passed=False, lost="answer"), run("c:m", passed=False)]
    assert shown(lost_blocks(result(*several))) == [
        "",
        "lost at a:m b:m c:m",
        "search    1   0   0",
        "answer    1   1   0",
    ]


def test_a_target_that_was_not_measured_lost_nothing_that_is_known():
    errored = Measurement("tool_use", "n", "e", "f", 0, "c", "b:m", verdict="error")
    lost = run("a:m", passed=False, lost="selection")
    assert shown(lost_blocks(result(lost, errored)))[-1] == "selection   1   -"
    assert shown(lost_blocks(result(errored))) == []
    assert shown(lost_blocks(result(run("a:m"), run("a:m", passed=False)))) == []


def test_what_a_broker_was_asked_is_told_where_it_was_asked():
    failed = {"name": "describeTool", "arguments": {}, "error": "TOOL_NOT_FOUND", "result": "{}"}
    asked = run("a:m", way="broker", asked=[FIND, FIND, failed])
    direct, silent = run("a:m"), run("b:m", way="broker")
    assert list(broker_lines(result(direct, asked, silent))) == [
        "a:m+broker asked the broker: 2 finds, 1 describe, 1 error"
    ]
    assert list(broker_rows(result(direct, asked, silent))) == [
        ("finds", ("-", "2", "0")),
        ("describes", ("-", "1", "0")),
        ("broker errors", ("-", "1", "0")),
    ]
    assert list(broker_rows(result(direct))) == []


def test_the_result_file_tells_the_tools_of_a_target():
    runs = result(run("a:m", way="broker", count=9, passed=False, lost="arguments", asked=[FIND]), run("b:m"))
    assert tool_set_fields(runs, "a:m+9+broker") == {
        "toolSet": {"model": "a:m", "tools": "broker", "distractors": 9, "leastSize": 14, "mostSize": 14},
        "brokerCalls": {"finds": 1, "describes": 0, "errors": 0},
        "lostAt": {"search": 0, "selection": 0, "arguments": 1, "execution": 0, "answer": 0},
    }
    assert tool_set_fields(runs, "b:m")["brokerCalls"] is None
    assert tool_set_fields(runs, "c:m") == {"toolSet": None, "brokerCalls": None, "lostAt": None}
