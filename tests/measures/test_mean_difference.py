from __future__ import annotations

import itertools
import random
from statistics import fmean

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.mean_difference import mean_difference_interval, standard_deviation
from pytest_tooleval.measures.significance import sign_flip_p_value

NUMBERS = st.lists(st.integers(-500, 500).map(float), min_size=6, max_size=30).filter(lambda n: min(n) != max(n))


def sample(cases: int, seed: int = 4) -> list[float]:
    chance = random.Random(seed)
    return [chance.lognormvariate(2, 0.8) - 5 for _ in range(cases)]


def test_fewer_than_six_cases_have_no_interval():
    assert mean_difference_interval([]) is None
    assert mean_difference_interval([100.0, 101.0, 99.0, 100.5, 100.2]) is None
    assert mean_difference_interval([100.0, 101.0, 99.0, 100.5, 100.2, 100.1]) is not None


@pytest.mark.parametrize("cases", [6, 40, 2_000])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_differences_have_no_interval_of_no_width(cases, value):
    assert mean_difference_interval([value] * cases) is None


@pytest.mark.parametrize(("cases", "outside"), [(6, 1), (7, 3), (9, 12)])
def test_few_cases_have_the_interval_between_means_of_subsets(cases, outside):
    values = sample(cases)
    means = sorted(fmean(chosen) for size in range(1, cases + 1) for chosen in itertools.combinations(values, size))
    interval = mean_difference_interval(values)
    assert (interval.low, interval.high) == pytest.approx((means[outside - 1], means[-outside]))
    assert interval.method == "typical values"


@given(st.lists(st.integers(-20, 30).map(lambda n: n / 8), min_size=6, max_size=9, unique=True))
def test_it_then_holds_0_exactly_when_the_sign_flip_test_does_not_reject(values):
    interval = mean_difference_interval(values)
    assert (0.0 in interval) == (sign_flip_p_value(values) > 0.05 + 1e-12)


@pytest.mark.parametrize("cases", [10, 30, 200])
def test_more_cases_have_the_expanded_percentiles_of_a_bootstrap(cases):
    values = sample(cases)
    tail = scipy.stats.norm.cdf(-((cases / (cases - 1)) ** 0.5) * scipy.stats.t.ppf(0.975, cases - 1))
    theirs = scipy.stats.bootstrap(
        (values,), fmean, confidence_level=1 - 2 * tail, method="percentile", n_resamples=9_999, vectorized=False
    ).confidence_interval
    ours = mean_difference_interval(values)
    width = theirs.high - theirs.low
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.06 * width)
    assert ours.method == "bootstrap"


def test_very_many_cases_have_the_normal_interval():
    values = sample(1_500)
    mean, error = fmean(values), scipy.stats.sem(values)
    interval = mean_difference_interval(values)
    assert (interval.low, interval.high) == pytest.approx((mean - 1.959964 * error, mean + 1.959964 * error))
    assert interval.method == "normal"


@given(NUMBERS)
def test_the_mean_lies_in_it(values):
    assert fmean(values) in mean_difference_interval(values)


@given(NUMBERS, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_negated_is_the_mirrored(values, shuffler):
    interval = mean_difference_interval(values)
    assert mean_difference_interval(shuffler.sample(values, len(values))) == interval
    negated = mean_difference_interval([-value for value in values])
    assert (negated.low, negated.high) == (-interval.high, -interval.low)


def test_the_same_seed_gives_the_same_and_another_not():
    values = sample(25)
    assert mean_difference_interval(values, seed=1) == mean_difference_interval(values, seed=1)
    assert mean_difference_interval(values, seed=1) != mean_difference_interval(values, seed=2)


@pytest.mark.parametrize("cases", [6, 9, 10, 30])
def test_it_holds_its_level(cases):
    chance = random.Random(11)
    held = 0
    for _ in range(300):
        held += 3.0 in mean_difference_interval([chance.gauss(3.0, 2.0) for _ in range(cases)])
    assert held / 300 >= 0.92


def test_the_standard_deviation_is_that_of_a_sample():
    assert standard_deviation([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) == pytest.approx((32 / 7) ** 0.5)
