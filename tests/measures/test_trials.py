from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.intervals import wilson
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_use import total
from pytest_tooleval.measures.trials import AtK, CaseTrials, TrialStatistics, trial_statistics

VERDICTS = {"+": "passed", "-": "missed", "E": "error", "s": "skipped"}


def measured(case: str, outcomes: str, corpus: str = "evals") -> list[Measurement]:
    """Return a case's trials, one for each sign: passed, missed, errored, skipped."""
    return [
        Measurement(
            "tool_use",
            f"{case}-t{number}",
            corpus,
            "f",
            0,
            case,
            "m",
            number,
            verdict=VERDICTS[sign],
            record={"pass": {"+": True, "-": False}.get(sign)},
        )
        for number, sign in enumerate(outcomes, start=1)
    ]


def suite(**outcomes: str) -> list[Measurement]:
    return [measurement for case, signs in outcomes.items() for measurement in measured(case, signs)]


def test_nothing_is_unknown_and_not_zero():
    assert trial_statistics([]) == TrialStatistics(0, 0, None, None, None, (), (), ())


def test_one_trial_each_gives_wilsons_interval_over_the_measured_cases():
    """Of ten cases six pass, two miss and two were not reached: 6 of 8, not 6 of 10."""
    cases = {f"p{number}": "+" for number in range(6)} | {"m1": "-", "m2": "-", "e1": "E", "e2": "E"}
    found = trial_statistics(suite(**cases))
    assert (found.cases, found.trials, found.pass_rate, found.effective) == (8, 1, 0.75, 8)
    assert found.interval == wilson(0.75, 8)
    assert found.pass_at_k == found.pass_hat_k == (AtK(1, 0.75, 8),)
    assert found.flaky == ()


def test_several_trials():
    found = trial_statistics(suite(always="+++", never="---", often="++-", once="-+-"))
    assert (found.cases, found.trials, found.pass_rate) == (4, 3, 0.5)
    assert found.pass_at_k == (AtK(1, 0.5, 4), AtK(2, pytest.approx((1 + 0 + 1 + 2 / 3) / 4), 4), AtK(3, 0.75, 4))
    assert found.pass_hat_k == (AtK(1, 0.5, 4), AtK(2, pytest.approx((1 + 0 + 1 / 3 + 0) / 4), 4), AtK(3, 0.25, 4))
    assert found.flaky == (CaseTrials("evals", "often", 3, 3, 2), CaseTrials("evals", "once", 3, 3, 1))


def test_trials_that_were_not_measured_count_neither_as_misses_nor_as_trials():
    found = trial_statistics(suite(a="+E+", b="-+-", c="Es-", d="EEE"))
    assert (found.cases, found.trials) == (3, 3)
    assert found.pass_rate == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.pass_at_k == (
        AtK(1, pytest.approx((1 + 1 / 3) / 3), 3),
        AtK(2, pytest.approx((1 + 2 / 3) / 2), 2),
        AtK(3, 1.0, 1),
    )
    assert found.pass_hat_k[1:] == (AtK(2, 0.5, 2), AtK(3, 0.0, 1))
    assert [case.id for case in found.flaky] == ["b"]


def test_more_trials_than_any_case_has_valid_ones_give_no_value():
    found = trial_statistics(suite(a="+E", b="E-"))
    assert found.pass_at_k == (AtK(1, 0.5, 2), AtK(2, None, 0))
    assert found.pass_hat_k == (AtK(1, 0.5, 2), AtK(2, None, 0))


def test_trials_of_one_case_do_not_narrow_the_interval_like_cases():
    pooled = wilson(0.5, 40)
    of_few_cases = trial_statistics(suite(a="+" * 10, b="+" * 10, c="-" * 10, d="-" * 10)).interval
    assert of_few_cases.low == pytest.approx(wilson(0.5, 4).low)
    assert of_few_cases.high - of_few_cases.low > 2 * (pooled.high - pooled.low)


def test_one_id_in_two_corpora_is_two_cases():
    both = [*measured("same", "+-", "one"), *measured("same", "--", "two")]
    found = trial_statistics(both)
    assert (found.cases, found.pass_rate) == (2, 0.25)
    assert found.flaky == (CaseTrials("one", "same", 2, 2, 1),)


SUITES = st.dictionaries(st.sampled_from("abcdefgh"), st.text("+-Es", min_size=1, max_size=4), max_size=8)


@given(SUITES, st.randoms(use_true_random=False))
def test_the_order_of_measurements_does_not_matter(outcomes, shuffler):
    measurements = suite(**outcomes)
    found = trial_statistics(measurements)
    assert trial_statistics(shuffler.sample(measurements, len(measurements))) == found


@given(SUITES)
def test_the_pass_rate_is_that_of_the_totals_and_what_holds_of_every_suite(outcomes):
    measurements = suite(**outcomes)
    found = trial_statistics(measurements)
    totals = total(measurements)
    assert (found.cases, found.pass_rate) == (totals.measured, totals.pass_rate)
    if found.pass_rate is not None:
        assert found.interval.low <= found.pass_rate <= found.interval.high
        assert found.pass_at_k[0].value == found.pass_hat_k[0].value == pytest.approx(found.pass_rate)
    for any_passes, all_pass in zip(found.pass_at_k, found.pass_hat_k, strict=True):
        assert any_passes.cases == all_pass.cases
        assert any_passes.value is None or any_passes.value >= all_pass.value
