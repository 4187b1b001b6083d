from __future__ import annotations

import math

import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.detectable import detectable_mean_difference, detectable_share_difference
from pytest_tooleval.measures.mcnemar_power import mcnemar_power


def whole(rises: int, falls: int, cases: int) -> list[float]:
    return [1.0] * rises + [-1.0] * falls + [0.0] * (cases - rises - falls)


@pytest.mark.parametrize("cases", [1, 5])
def test_fewer_than_six_cases_could_have_shown_nothing(cases):
    assert detectable_share_difference(whole(0, 0, cases)) is None
    assert detectable_share_difference(whole(cases, 0, cases)) is None


def test_six_cases_could_have_shown_what_six_in_six_would():
    """All six must differ the same way: d**6 = 0.8."""
    assert detectable_share_difference(whole(0, 0, 6)) == pytest.approx(0.8 ** (1 / 6), abs=1e-6)


def test_without_a_differing_case_at_least_six_must_differ():
    """Of 40 cases six or more, with a chance of 80 %."""
    chance = scipy.optimize.brentq(lambda share: scipy.stats.binom.sf(5, 40, share) - 0.8, 0.01, 0.9)
    assert detectable_share_difference(whole(0, 0, 40)) == pytest.approx(chance, abs=1e-6)


@pytest.mark.parametrize(("rises", "falls", "cases"), [(6, 4, 40), (20, 20, 100), (0, 30, 60), (150, 90, 900)])
def test_it_is_where_the_power_is_80_percent(rises, falls, cases):
    found = detectable_share_difference(whole(rises, falls, cases))
    assert mcnemar_power(cases)(max(found, (rises + falls) / cases), found) == pytest.approx(0.8, abs=1e-5)


def test_of_many_cases_it_is_connetts_formula():
    """n d - 1 = 1.960 sqrt(n p) + 0.842 sqrt(n (p - d d)), with n = 1,000 and p = 0.2."""
    found = detectable_share_difference(whole(100, 100, 1_000))
    assert 1_000 * found - 1 == pytest.approx(
        1.959964 * math.sqrt(200) + 0.841621 * math.sqrt(200 - 1_000 * found**2)
    )


def test_the_more_cases_differ_the_less_is_shown():
    found = [detectable_share_difference(whole(differing, differing, 50)) for differing in (4, 8, 16, 25)]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_with_trials_it_is_that_of_a_mean():
    parts = [1 / 3, -1 / 3, 0.0, 2 / 3] * 10
    assert detectable_share_difference(parts) == detectable_mean_difference(parts)


def test_a_mean_that_no_share_reaches_is_none():
    parts = [1.0, -1.0, 1.0, -1.0, 1.0, -0.5]
    assert detectable_mean_difference(parts) > 1
    assert detectable_share_difference(parts) is None


def test_a_few_parts_say_no_more_than_whole_cases():
    """One third of one case of 40 is no evidence that 0.03 could have been shown."""
    assert detectable_share_difference([1 / 3] + [0.0] * 39) == detectable_share_difference(whole(0, 0, 40))


def test_the_formula_of_means():
    differences = [4.0, -2.0, 7.0, 1.0, 0.0, 3.0, -5.0, 6.0]
    error = scipy.stats.sem(differences)
    multiple = scipy.stats.t.ppf(0.975, 7) + scipy.stats.t.ppf(0.8, 7)
    assert detectable_mean_difference(differences) == pytest.approx(multiple * error, rel=1e-3)


@pytest.mark.parametrize(
    "differences", [[], [3.0] * 5, [3.0] * 20, [0.0] * 20, [5.0, 1.0, -2.0, 4.0, 3.0] + [0.0] * 50]
)
def test_where_the_spread_is_not_known_nothing_is_said_of_means(differences):
    assert detectable_mean_difference(differences) is None


def test_a_mean_at_the_limit_is_shown_with_a_chance_of_80_percent():
    """By the noncentral t distribution, which the multiple of the standard error stands for."""
    differences = [(-1.0) ** number * (1 + number % 7) for number in range(30)]
    found = detectable_mean_difference(differences)
    shift = found / scipy.stats.sem(differences)
    power = scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, 29), 29, shift)
    assert power == pytest.approx(0.8, abs=0.01)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 40))
def test_it_is_a_share_and_the_same_for_swapped_sides(rises, falls, same):
    cases = max(rises + falls + same, 1)
    found = detectable_share_difference(whole(rises, falls, cases))
    assert found == detectable_share_difference(whole(falls, rises, cases))
    assert (found is None) == (cases < 6)
    assert found is None or 0 < found <= 1
