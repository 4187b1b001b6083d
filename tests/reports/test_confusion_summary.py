from __future__ import annotations

import json
from typing import Any

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.confusion_summary import MOST_ROWS, confusion_blocks, confusion_section
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import rendered


def run(expected: list[str], *called: str, target: str = "a:m", outcome: str = "ok") -> Measurement:
    trace = [{"name": name, "arguments": {}, "outcome": outcome} for name in called]
    record: dict[str, Any] = {"names": list(called), "trace": trace, "expectedNames": [expected]}
    return Measurement("tool_use", "n", "evals", "f", 0, "c", target, record=record)


def shown(*runs: Measurement) -> str:
    return rendered(confusion_blocks(result(*runs)), 80, color=False)


def result(*runs: Measurement) -> SuiteResult:
    return SuiteResult(runs, targets=tuple(dict.fromkeys(each.target for each in runs)))


def test_nothing_is_printed_where_nothing_was_confused():
    assert shown(run(["grep"], "grep")) == ""
    assert shown() == ""


def test_the_most_frequent_confusions_come_first():
    text = shown(
        run(["grep"], "glob"),
        run(["grep"], "glob"),
        run(["grep"], "grep"),
        run(["read"]),
        run([], "list"),
        run(["read"], "read_file", outcome="unknown_tool"),
    )
    assert text.splitlines() == [
        "",
        "expected called                   times",
        "grep     glob                         2",
        "read     read_file (no such tool)     1",
        "read     (no call)                    1",
        "(none)   list                         1",
    ]


def test_several_targets_are_told_apart():
    text = shown(run(["grep"], "glob"), run(["grep"], "list", target="b:m"), run(["x"], "x", target="c:m"))
    assert text.splitlines()[1:] == [
        "expected called target times",
        "grep     glob   a:m        1",
        "grep     list   b:m        1",
    ]


def test_rows_are_bounded_and_the_rest_is_counted():
    text = shown(*(run(["grep"], f"tool{number:02}") for number in range(MOST_ROWS + 3)))
    assert len(text.splitlines()) == 2 + MOST_ROWS + 1
    assert text.splitlines()[-1] == "(3 more of a:m; --tooleval-json FILE holds them all)"


def test_names_that_models_make_up_keep_to_their_line_and_to_80_columns():
    evil = "x\x1b[31m\n" + "y" * 5_000
    text = shown(run(["grep"], evil, outcome="unknown_tool"), run(["z" * 300], "", outcome="unknown_tool"))
    assert "\x1b" not in text
    assert "x\\x1b[31m" in text
    assert "(no name) (no such tool)" in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 10


def test_faulty_arguments_are_told_also_where_no_tool_was_confused():
    text = shown(run(["grep"], "grep"), run(["grep"], "grep", outcome="invalid_arguments"), run([], target="b:m"))
    assert text.splitlines() == ["a:m: arguments valid in 0.50 of the calls that were checked"]


def test_the_section_holds_every_pair_and_every_rate_of_every_target():
    section = confusion_section(
        result(
            run(["grep"], "glob"),
            run(["grep"], "grep"),
            run(["grep"], "find", outcome="unknown_tool"),
            run([], target="b:m"),
        )
    )
    assert json.loads(json.dumps(section, allow_nan=False)) == section
    assert section == {
        "a:m": {
            "runs": 3,
            "validArguments": 1.0,
            "pairs": [
                {"expected": "grep", "called": "find", "count": 1, "unknownTool": True},
                {"expected": "grep", "called": "glob", "count": 1},
                {"expected": "grep", "called": "grep", "count": 1},
            ],
            "tools": {
                "glob": {
                    "support": 0,
                    "called": 1,
                    "right": 0,
                    "precision": 0.0,
                    "recall": None,
                    "f1": 0.0,
                    "validArguments": 1.0,
                },
                "grep": {
                    "support": 3,
                    "called": 1,
                    "right": 1,
                    "precision": 1.0,
                    "recall": 1 / 3,
                    "f1": 0.5,
                    "validArguments": 1.0,
                },
            },
        },
        "b:m": {"runs": 1, "validArguments": None, "pairs": [], "tools": {}},
    }
