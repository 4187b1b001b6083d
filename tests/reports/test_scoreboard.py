"""The scoreboard, from documents written by hand."""

from __future__ import annotations

import copy
import json

import pytest

from pytest_tooleval.reports.markdown import code, count, prose, rate, table
from pytest_tooleval.reports.scoreboard import scoreboard, without_cases

BARE = {
    "schema": "tooleval/v1",
    "generatedAt": "2026-01-02T03:04:05+00:00",
    "provenance": {},
    "gates": [],
    "verdict": "fail",
}

WHOLE = {
    **BARE,
    "provenance": {
        "corpusVersion": {"evals/a": 1, "evals/b": None},
        "targets": ["mock", "lexical"],
        "model": "lexical-only",
        "semanticRan": False,
        "tokenEstimator": "chars/4",
        "gitCommit": "0123abc",
        "host": "h",
        "versions": {"pytest-tooleval": "0.1.0", "python": "3.11.7"},
    },
    "toolUse": {
        "byTarget": {
            "mock": {
                "n": 2,
                "measured": 1,
                "accuracy": None,
                "passRate": 2 / 3,
                "calls": 1234,
                "redundant": 0.5,
                "errors": 0,
                "tokens": None,
                "latencySeconds": 1.255,
            }
        },
        "cases": [],
    },
    "discovery": {
        "overall": {"n": 3, "measured": 3, "top1": 0.5, "top3": 1, "mrr": 0.75, "noMatchCorrectness": 0.0},
        "byCategory": {"no_match": {"n": 1, "measured": 1, "top1": None, "noMatchCorrectness": 0.0}},
        "cases": [{"id": "x", "target": "lexical"}],
    },
    "invocation": {"overall": {"n": 1, "validArgumentRate": 1.0, "repairSuccess": None}, "cases": []},
    "ergonomics": {
        "overall": {"n": 2, "decisionRate": 0.5},
        "cases": [],
        "nonInstructional": ["a|b"],
        "budgetExceeded": [],
        "parityMismatches": ["c", "d"],
    },
    "tokenEconomy": {"estimator": "chars/4", "directStartupTokens": 1595, "startupReductionRatio": 0.8545454},
    "performance": {"lexical": {"n": 100, "p50Micros": 116.08, "p95Micros": 0.041, "opsPerSec": 4868.2}},
    "cache": {
        "byCorpus": {
            "evals/a": {"servedFromCache": 3, "redundantCallReduction": 0.5},
            "evals/b": {"servedFromCache": 0, "redundantCallReduction": None},
        }
    },
    "hygiene": [{"intent": "find *it*", "category": "semantic", "issue": "found"}],
    "gates": [
        {"name": "discovery.overall.top1", "comparator": "min", "threshold": 0.45, "actual": 0.5, "pass": True},
        {
            "name": "discovery.semantic.top1",
            "comparator": "min",
            "threshold": 0.35,
            "actual": None,
            "pass": False,
            "skipped": True,
            "skipReason": "semantic leg did not run",
        },
        {
            "name": "regressions",
            "comparator": "max",
            "threshold": 0,
            "actual": 1.0,
            "pass": False,
            "detail": "regressions is 1, expected at most 0; regressed: a_b",
        },
    ],
    "notes": ["a <b> note"],
    "interrupted": True,
}

EXPECTED = r"""# Scoreboard

| provenance      | value                                |
| --------------- | ------------------------------------ |
| verdict         | fail (the run was interrupted)       |
| time            | 2026-01-02T03:04:05+00:00            |
| targets         | `mock`, `lexical`                    |
| corpus version  | `evals/a`: 1, `evals/b`: n/a         |
| search model    | `lexical-only`                       |
| semantic leg    | did not run                          |
| token estimator | `chars/4`                            |
| git commit      | `0123abc`                            |
| host            | `h`                                  |
| versions        | pytest-tooleval 0.1.0, python 3.11.7 |

Note: a \<b\> note

## Tool use

| target | cases | measured | accuracy | pass rate | calls | redundant | errors | tokens | seconds |
| ------ | ----: | -------: | -------: | --------: | ----: | --------: | -----: | -----: | ------: |
| `mock` |     2 |        1 |      n/a |     0.667 | 1,234 |       0.5 |      0 |    n/a |    1.25 |

`mock` plays scripts: its numbers measure fixtures and tools, not a model.

## Discovery

| category   | rows | measured | top-1 | top-3 |   MRR | wrong server | no match | false refusal |
| ---------- | ---: | -------: | ----: | ----: | ----: | -----------: | -------: | ------------: |
| overall    |    3 |        3 | 0.500 | 1.000 | 0.750 |          n/a |    0.000 |           n/a |
| `no_match` |    1 |        1 |   n/a |   n/a |   n/a |          n/a |    0.000 |           n/a |

## Invocation

| rate                | value |
| ------------------- | ----: |
| cases               |     1 |
| valid argument rate | 1.000 |
| repair success      |   n/a |

## Ergonomics

| rate          | value |
| ------------- | ----: |
| cases         |     2 |
| decision rate | 0.500 |

Without a next step: `a\|b`.

Surfaces disagree: `c`, `d`.

## Token economy

| measure                 |     value |
| ----------------------- | --------: |
| estimator               | `chars/4` |
| direct startup tokens   |     1,595 |
| startup reduction ratio |     0.855 |

## Result cache

| measure                  | `evals/a` | `evals/b` |
| ------------------------ | --------: | --------: |
| served from cache        |         3 |         0 |
| redundant call reduction |     0.500 |       n/a |

## Performance

Machine dependent: measured on `h`.

| path    |   n | p50 µs | p95 µs | operations/s |
| ------- | --: | -----: | -----: | -----------: |
| lexical | 100 |  116.1 |  0.041 |      4,868.2 |

## Hygiene

| category   | intent      | issue |
| ---------- | ----------- | ----- |
| `semantic` | find \*it\* | found |

## Gates

1 pass, 1 fail, 1 skipped.

| gate                      | result  | bound  | actual | reason                                                |
| ------------------------- | ------- | ------ | ------ | ----------------------------------------------------- |
| `discovery.overall.top1`  | pass    | ≥ 0.45 | 0.5    |                                                       |
| `discovery.semantic.top1` | skipped | ≥ 0.35 | n/a    | semantic leg did not run                              |
| `regressions`             | fail    | ≤ 0    | 1      | regressions is 1, expected at most 0; regressed: a\_b |
"""


def test_every_section():
    assert scoreboard(WHOLE) == EXPECTED


def test_the_document_is_not_changed_and_gives_the_same_text_again():
    document = copy.deepcopy(WHOLE)
    assert scoreboard(document) == scoreboard(json.loads(json.dumps(WHOLE)))
    assert document == WHOLE


def test_what_did_not_run_has_no_heading():
    text = scoreboard(BARE)
    assert text.startswith("# Scoreboard\n\n| provenance ")
    assert "##" not in text
    assert "| targets         | n/a  " in text


def test_a_section_without_findings_says_so():
    assert scoreboard({**BARE, "hygiene": []}).endswith("## Hygiene\n\nNo findings.\n")


def test_each_engine_has_its_own_table():
    scores = {"overall": {"n": 1, "top1": 1.0}, "byCategory": {}}
    section = {**scores, "cases": [], "byTarget": {"lexical": scores, "my:engine": {**scores, "overall": {"n": 1}}}}
    lines = scoreboard({**BARE, "discovery": section}).splitlines()
    assert [line for line in lines if line.startswith("Engine")] == ["Engine `lexical`:", "Engine `my:engine`:"]
    assert sum(line.startswith("| overall") for line in lines) == 2


def test_gates_of_several_files_are_told_apart():
    gate = {"name": "regressions", "comparator": "max", "threshold": 0, "actual": 0, "pass": True}
    gates = [{**gate, "file": "evals/a/thresholds.json"}, {**gate, "file": "evals/b/thresholds.json"}]
    text = scoreboard({**BARE, "gates": gates})
    assert "| `regressions` | `evals/a/thresholds.json` | pass " in text
    assert "| `regressions` | `evals/b/thresholds.json` | pass " in text


def test_json_holds_the_numbers_without_the_cases():
    document = {**WHOLE, "comparison": {"regressions": []}}
    found = without_cases(document)
    assert found["toolUse"] == {"byTarget": WHOLE["toolUse"]["byTarget"]}
    assert "cases" not in found["discovery"]
    assert "comparison" not in found
    assert {key: found[key] for key in BARE if key != "toolUse"} == {key: WHOLE[key] for key in BARE}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "n/a"),
        (0, "0.000"),
        (1, "1.000"),
        (0.5, "0.500"),
        (2 / 3, "0.667"),
        (0.99964, "0.99964"),
        (0.0003, "0.0003"),
    ],
)
def test_a_share_that_is_nearly_whole_does_not_read_as_whole(value, shown):
    assert rate(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "n/a"), (0, "0"), (1234567, "1,234,567"), (3.0, "3"), (2.25, "2.2"), (0.0412, "0.0412"), (-2, "-2")],
)
def test_a_number_is_short_and_not_zero_unless_it_is(value, shown):
    assert count(value) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a_b*c", "`a_b*c`"),
        ("a|b", r"`a\|b`"),
        ("a`b", "`` a`b ``"),
        ("a\nb", "`a b`"),
        ("\x1b[31m", r"`\x1b[31m`"),
        ("", '""'),
    ],
)
def test_names_are_code(name, shown):
    assert code(name) == shown


def test_markup_in_prose_is_escaped():
    assert prose("<b> | [x](y) `z`\n2*3_4") == r"\<b\> \| \[x\](y) \`z\` 2\*3\_4"


def test_columns_are_as_wide_as_what_they_show():
    assert list(table(["name", "n"], [["日本", "1"], ["a", "1000"]])) == [
        "| name |    n |",
        "| ---- | ---: |",
        "| 日本 |    1 |",
        "| a    | 1000 |",
    ]
