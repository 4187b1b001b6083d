from __future__ import annotations

import json

import pytest
from trial_samples import tool_use_trials

from pytest_tooleval.measures.target_comparison import SCRIPTED_NOTE, compare_targets
from pytest_tooleval.measures.trials import trial_statistics
from pytest_tooleval.reports.statistics_sections import comparison_records, trial_fields


def test_the_fields_of_a_target():
    fields = trial_fields(trial_statistics(tool_use_trials("m", "++", "+-", "-E", "--")))
    assert fields == {
        "passRateInterval": {
            "low": pytest.approx(0.0919, abs=1e-4),
            "high": pytest.approx(0.7806, abs=1e-4),
            "method": "Wilson, effective number of cases",
            "effectiveCases": 4.0,
        },
        "passAtK": [{"k": 1, "value": 0.375, "cases": 4}, {"k": 2, "value": 2 / 3, "cases": 3}],
        "passHatK": [{"k": 1, "value": 0.375, "cases": 4}, {"k": 2, "value": 1 / 3, "cases": 3}],
        "flaky": [{"corpus": "evals", "id": "c1", "passed": 1, "valid": 2}],
    }


def test_a_target_of_which_nothing_was_measured():
    assert trial_fields(trial_statistics(tool_use_trials("m", "E"))) == {
        "passRateInterval": None,
        "passAtK": [{"k": 1, "value": None, "cases": 0}],
        "passHatK": [{"k": 1, "value": None, "cases": 0}],
        "flaky": [],
    }


def test_a_comparison():
    measurements = [*tool_use_trials("a", *"------++"), *tool_use_trials("b", *"++++++++", tokens=None)]
    (record,) = comparison_records(compare_targets("tool_use", measurements, ["a", "b"]))
    metrics = record.pop("metrics")
    assert record == {
        "family": "tool_use",
        "reference": "a",
        "target": "b",
        "cases": 8,
        "correctedOver": 1,
        "notes": [],
    }
    assert metrics[0] == {
        "metric": "passRate",
        "pairs": 8,
        "referenceMean": 0.25,
        "targetMean": 1.0,
        "difference": 0.75,
        "interval": {
            "low": pytest.approx(0.2795, abs=1e-4),
            "high": pytest.approx(0.9285, abs=1e-4),
            "method": "Newcombe",
        },
        "pValue": 2 / 64,
        "correctedPValue": None,
        "verdict": "better",
        "discordant": 6,
        "rises": 6,
        "falls": 0,
        "detectable": pytest.approx(0.8014, abs=1e-4),
        "reason": "",
    }
    assert metrics[4] == {
        "metric": "tokens",
        "pairs": 0,
        **dict.fromkeys(("referenceMean", "targetMean", "difference", "interval", "pValue", "correctedPValue")),
        "verdict": None,
        "discordant": 0,
        "rises": 0,
        "falls": 0,
        "detectable": None,
        "reason": "no case has a value of tokens on both",
    }
    assert [metric["metric"] for metric in metrics] == [
        "passRate",
        "accuracy",
        "calls",
        "errors",
        "tokens",
        "latencySeconds",
    ]


def test_it_is_strict_json():
    signs = {"mock": "+" * 12, "a": "+-" * 6, "b": "E" * 12}
    measurements = [m for target, outcome in signs.items() for m in tool_use_trials(target, *outcome)]
    records = comparison_records(compare_targets("tool_use", measurements, list(signs)))
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert [record["notes"] for record in records] == [[SCRIPTED_NOTE], [SCRIPTED_NOTE], []]
    fields = [trial_fields(trial_statistics(tool_use_trials(name, *outcome))) for name, outcome in signs.items()]
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
