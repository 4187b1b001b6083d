"""What the page on statistics says of bounds is what they are."""

from __future__ import annotations

from doc_pages import DOCS
from trial_samples import tool_use_trials

from pytest_tooleval.measures import mcnemar_power, significance
from pytest_tooleval.measures.compared_metrics import METRICS
from pytest_tooleval.measures.detectable import detectable_share_difference
from pytest_tooleval.measures.intervals import wilson
from pytest_tooleval.measures.mean_difference import BOOTSTRAP_FROM, FEWEST_CASES
from pytest_tooleval.measures.significance import mcnemar_p_value
from pytest_tooleval.measures.target_comparison import compare_targets
from pytest_tooleval.measures.trials import trial_statistics
from pytest_tooleval.reports.statistics_sections import comparison_records, trial_fields

PAGE = " ".join((DOCS / "statistics.md").read_text(encoding="utf-8").split())


def test_the_bounds_of_the_methods():
    assert f"Up to {significance.EXACT_UP_TO} differences" in PAGE
    assert f"it draws {significance.DRAWS:,}" in PAGE
    assert f"From {significance.ASYMPTOTIC_FROM:,} cases on" in PAGE
    assert f"above {mcnemar_power.EXACT_UP_TO} cases" in PAGE
    assert f"for {FEWEST_CASES} to {BOOTSTRAP_FROM - 1} cases Hartigan's" in PAGE


def test_the_numbers_that_are_given():
    interval = wilson(1.0, 5)
    assert f"five passes in five cases is {interval.low:.2f} to {interval.high:.2f}" in PAGE
    assert f"p is {mcnemar_p_value(5, 0):.2f}" in PAGE
    limits = [detectable_share_difference([0.0] * cases) for cases in (10, 40, 100)]
    assert (
        f"about {limits[0]:.2f}. Forty show about 0.20 when few cases differ, a hundred about {limits[2]:.2f}"
        in PAGE
    )
    assert 0.19 < limits[1] < 0.2
    assert "0.20 or more" in PAGE


def test_every_key_of_the_sections_is_documented():
    trials_of_two = [*tool_use_trials("a", "+-", "++"), *tool_use_trials("b", "++", "++")]
    records = comparison_records(compare_targets("tool_use", trials_of_two, ["a", "b"]))
    fields = trial_fields(trial_statistics(m for m in trials_of_two if m.target == "a"))
    keys = {*records[0], *records[0]["metrics"][0], *fields, *fields["passRateInterval"], *fields["flaky"][0]}
    metrics = {metric.name for compared in METRICS.values() for metric in compared}
    assert [key for key in sorted(keys | metrics) if f"`{key}`" not in PAGE] == []
