from __future__ import annotations

from typing import Any

import pytest

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.cost_summary import cost_fields, cost_lines, cost_rows, money_text
from pytest_tooleval.reports.suite_result import SuiteResult


def run(verdict: Any, cost: float | None, tokens: int | None, target: str = "a:m") -> Measurement:
    record = {"cost": cost, "tokens": tokens, "turns": 1}
    return Measurement("tool_use", "n", "evals", "f", 0, "c", target, verdict=verdict, record=record)


def result(*runs: Measurement) -> SuiteResult:
    return SuiteResult(runs, targets=tuple(dict.fromkeys(each.target for each in runs)))


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        (
            [run("passed", 0.01, 4_000), run("missed", 0.03, 6_000)],
            "a:m: cost $0.0400; $0.0400 and 10,000 tokens for each case solved",
        ),
        ([run("missed", 0.03, 6_000)], "a:m: cost $0.0300"),
        (
            [run("passed", 0.01, 4_000), run("passed", None, 6_000)],
            "a:m: cost not known: 1 of 2 runs have a price; 5,000 tokens for each case solved",
        ),
        ([run("passed", None, 4_000)], "a:m: 4,000 tokens for each case solved"),
        ([run("passed", 0.25, None)], "a:m: cost $0.250; $0.250 for each case solved"),
    ],
)
def test_a_line_says_what_is_known_of_a_target(runs, line):
    assert list(cost_lines(result(*runs))) == [line]


def test_nothing_is_said_where_nothing_is_known():
    assert list(cost_lines(result(run("passed", None, None), run("missed", None, 50, "b:m")))) == []
    assert list(cost_rows(result(run("passed", None, None)))) == []


def test_rows_for_targets_side_by_side():
    both = result(run("passed", 0.5, 4_000), run("passed", None, 6_000, "b:m"), run("missed", None, 7_000, "c:m"))
    assert list(cost_rows(both)) == [
        ("cost", ("$0.500", "-", "-")),
        ("cost per solved", ("$0.500", "-", "-")),
        ("tokens per solved", ("4,000", "6,000", "-")),
    ]
    assert list(cost_rows(result(run("passed", None, 6_000)))) == [("tokens per solved", ("6,000",))]


def test_the_fields_of_a_target_in_the_result_file():
    both = result(run("passed", 0.5, 4_000), run("passed", 1.0, 6_000), run("passed", None, None, "b:m"))
    assert cost_fields(both, "a:m") == {
        "cost": 1.5,
        "costRuns": 2,
        "pricedRuns": 2,
        "costPerSolved": 0.75,
        "tokensPerSolved": 5_000.0,
    }
    assert cost_fields(both, "b:m") == {
        "cost": None,
        "costRuns": 1,
        "pricedRuns": 0,
        "costPerSolved": None,
        "tokensPerSolved": None,
    }


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (None, "-"),
        (0.0, "$0.00"),
        (0.0000123456, "$0.0000123"),
        (0.00559, "$0.00559"),
        (0.1, "$0.100"),
        (0.999, "$0.999"),
        (1.0, "$1.00"),
        (12.345, "$12.35"),
        (1234567.891, "$1,234,567.89"),
    ],
)
def test_money_has_three_digits_that_count_or_cents(dollars, text):
    assert money_text(dollars) == text
