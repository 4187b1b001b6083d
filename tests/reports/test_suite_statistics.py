from __future__ import annotations

import random

from trial_samples import discovery_rows, tool_use_trials

from pytest_tooleval.measures.trials import trial_statistics
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.suite_statistics import SuiteStatistics, suite_statistics


def test_a_run_without_tool_use_and_discovery_has_none():
    assert suite_statistics(SuiteResult((), targets=("mock",))) == SuiteStatistics()


def test_one_model_and_one_search_have_nothing_to_be_compared_with():
    measurements = (*tool_use_trials("m", "++", "+-"), *discovery_rows("lexical", 1, 2))
    found = suite_statistics(SuiteResult(measurements, targets=("m",), gold_targets=("lexical", "broker")))
    assert found.by_target == {"m": trial_statistics(measurements[:4])}
    assert found.comparisons == ()


def test_models_then_searches_are_compared_in_the_order_of_the_options():
    measurements = (
        *tool_use_trials("z", "+", "-"),
        *tool_use_trials("a", "+", "+"),
        *discovery_rows("mine", 1, 1),
        *discovery_rows("lexical", 1, None),
    )
    result = SuiteResult(measurements, targets=("z", "a"), gold_targets=("mine", "lexical", "broker"))
    found = suite_statistics(result)
    assert [(c.family, c.reference, c.target) for c in found.comparisons] == [
        ("tool_use", "z", "a"),
        ("discovery", "mine", "lexical"),
    ]
    assert [c.primary.difference for c in found.comparisons] == [0.5, -0.5]
    assert list(found.by_target) == ["z", "a"]


def test_a_model_of_which_nothing_was_measured_is_compared_with_a_reason():
    result = SuiteResult((*tool_use_trials("a", "+"), *tool_use_trials("b", "E")), targets=("a", "b"))
    found = suite_statistics(result)
    assert found.by_target["b"].interval is None
    assert found.comparisons[0].primary.reason == "no case was measured on both"


def test_the_order_of_measurements_does_not_matter():
    """As they come home from several workers in any order."""
    chance = random.Random(3)
    measurements = [
        *tool_use_trials("a", *("".join(chance.choice("+-E") for _ in range(3)) for _ in range(30))),
        *tool_use_trials("b", *("".join(chance.choice("++-") for _ in range(3)) for _ in range(30))),
        *discovery_rows("x", *(chance.choice([1, 1, 2, 5, None]) for _ in range(40))),
        *discovery_rows("y", *(chance.choice([1, 2, 3, None]) for _ in range(40))),
    ]
    targets, searches = ("a", "b"), ("x", "y")
    found = suite_statistics(SuiteResult(tuple(measurements), targets=targets, gold_targets=searches))
    for _ in range(5):
        chance.shuffle(measurements)
        assert suite_statistics(SuiteResult(tuple(measurements), targets=targets, gold_targets=searches)) == found
