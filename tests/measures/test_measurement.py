from __future__ import annotations

import json

import pytest

from pytest_tooleval.measures.measurement import Measurement

FULL = Measurement(
    family="tool_use",
    nodeid="evals/fixtures/a.json::a[m-t2]",
    corpus="evals",
    file="evals/fixtures/a.json",
    index=3,
    id="a",
    target="m",
    trial=2,
    tags=("smoke", "slow"),
    verdict="missed",
    reason="expected x",
    deferred=True,
    worktree="/tmp/w",
    record={"pass": False, "trace": [{"name": "grep", "arguments": {"n": [1, None]}}]},
)


def test_a_measurement_survives_a_process_boundary():
    plain = FULL.to_plain()

    assert Measurement.from_plain(json.loads(json.dumps(plain, allow_nan=False))) == FULL
    assert type(plain["tags"]) is list
    assert type(plain["record"]["trace"][0]) is dict


@pytest.mark.parametrize(
    ("verdict", "measured"), [("passed", True), ("missed", True), ("error", False), ("skipped", False)]
)
def test_errors_and_skips_are_not_measured(verdict, measured):
    assert Measurement("f", "n", "c", "f", 0, "a", "m", verdict=verdict).measured is measured


def test_the_order_is_that_of_the_files_and_not_of_the_run():
    places = [
        ("b", "f", 0, "m", 1),
        ("a", "g", 0, "m", 1),
        ("a", "f", 10, "m", 1),
        ("a", "f", 9, "m", 2),
        ("a", "f", 9, "m", 1),
    ]
    run = [
        Measurement("t", "n", corpus, file, index, "id", target, trial)
        for corpus, file, index, target, trial in places
    ]

    ordered = sorted(run, key=lambda measurement: measurement.order({}))

    assert [(m.corpus, m.file, m.index, m.target, m.trial) for m in ordered] == list(reversed(places))
