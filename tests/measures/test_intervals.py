from __future__ import annotations

import random

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.intervals import (
    CaseMean,
    Interval,
    effective_cases,
    share_difference_interval,
    share_interval,
    wilson,
)


def single(*values: int) -> list[CaseMean]:
    return [CaseMean(float(value), 1) for value in values]


def trials(*counts: tuple[int, int]) -> list[CaseMean]:
    """Return the means of cases of which so many of so many trials passed."""
    return [CaseMean(passed / valid, valid) for passed, valid in counts]


COUNTS = st.integers(1, 5).flatmap(lambda valid: st.tuples(st.integers(0, valid), st.just(valid)))
CASES = st.lists(COUNTS, min_size=1, max_size=30).map(lambda counts: trials(*counts))
PAIRED = st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=30).map(
    lambda pairs: (trials(*(one for one, _ in pairs)), trials(*(other for _, other in pairs)))
)


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize(
    ("passed", "n"), [(0, 1), (1, 1), (0, 10), (10, 10), (1, 2), (7, 10), (81, 263), (9_999, 10_000)]
)
def test_wilsons_interval_is_scipys(passed, n):
    theirs = scipy.stats.binomtest(passed, n).proportion_ci(method="wilson")
    assert ends(wilson(passed / n, n)) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilsons_interval_as_published():
    """81 of 263, from Newcombe (1998), Statistics in Medicine 17, 857-872, table I."""
    assert ends(wilson(81 / 263, 263)) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_all_or_nothing_is_not_certain():
    assert ends(wilson(1.0, 5)) == pytest.approx((0.5655, 1.0), abs=1e-4)
    assert ends(wilson(0.0, 5)) == pytest.approx((0.0, 0.4345), abs=1e-4)
    assert wilson(0.0, 5).low == 0.0
    assert wilson(1.0, 5).high == 1.0


@pytest.mark.parametrize("n", [0, -1])
def test_no_observations_have_no_interval(n):
    with pytest.raises(ValueError, match="observations"):
        wilson(0.5, n)


def test_no_cases_have_no_interval():
    assert share_interval([]) is None
    assert share_difference_interval([], []) is None


def test_with_one_trial_each_it_is_wilsons_over_the_cases():
    interval = share_interval(single(1, 1, 0, 1))
    assert interval == wilson(0.75, 4)
    assert interval.method == "Wilson"


def test_trials_that_always_agree_are_worth_no_more_than_their_cases():
    """Three trials of four cases, each case always the same: four observations, not twelve."""
    same = trials((3, 3), (3, 3), (0, 3), (3, 3))
    assert effective_cases(same) == 4
    assert ends(share_interval(same)) == ends(wilson(0.75, 4))


def test_trials_without_a_difference_between_cases_are_worth_all_of_them():
    assert effective_cases(trials(*[(1, 2)] * 20)) == 40


def test_what_trials_are_worth_by_hand():
    """Means 0, 0.5, 1, 0.5, ... of 20 cases: s2 = 20/8/19 and v = s2/20, reduced by (1.960/2.093)**2."""
    means = trials(*[(0, 4), (2, 4), (4, 4), (2, 4)] * 5)
    worth = 0.25 / (20 / 8 / 19 / 20) * (1.959964 / 2.093024) ** 2
    assert effective_cases(means) == pytest.approx(worth, rel=1e-4)
    assert ends(share_interval(means)) == pytest.approx(ends(wilson(0.5, worth)), abs=1e-4)


@pytest.mark.parametrize("passed", [0, 100])
def test_one_case_is_one_observation_however_often_it_is_tried(passed):
    assert effective_cases(trials((passed, 100))) == 1
    assert effective_cases(trials((37, 100))) == 1


@given(CASES)
def test_an_interval_lies_between_0_and_1_and_holds_the_share(means):
    interval = share_interval(means)
    share = sum(mean.value for mean in means) / len(means)
    assert 0 <= interval.low < interval.high <= 1
    assert interval.low - 1e-12 <= share <= interval.high + 1e-12


@given(CASES)
def test_trials_are_worth_at_least_their_cases_and_at_most_themselves(means):
    worth = effective_cases(means)
    assert len(means) <= worth <= sum(mean.trials for mean in means) * (1 + 1e-12)


@given(CASES, st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(means, shuffler):
    shuffled = shuffler.sample(means, len(means))
    assert share_interval(shuffled) == share_interval(means)


@given(CASES)
def test_misses_have_the_mirrored_interval_of_passes(means):
    misses = [CaseMean(1 - mean.value, mean.trials) for mean in means]
    low, high = ends(share_interval(means))
    assert ends(share_interval(misses)) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize(
    ("both", "only_first", "only_second", "neither", "published"),
    [
        (36, 12, 2, 0, (0.0569, 0.3404)),
        (18, 12, 2, 18, (0.0562, 0.3290)),
        (53, 0, 0, 1, (-0.0729, 0.0729)),
        (0, 30, 0, 0, (0.8395, 1.0)),
        (14, 5, 0, 22, (0.011, 0.226)),
    ],
)
def test_newcombes_interval_as_published(both, only_first, only_second, neither, published):
    """Four of Newcombe (1998), Statistics in Medicine 17, 2635-2650; one of Altman et al. (2000), p. 52."""
    first = single(*[1] * (both + only_first), *[0] * (only_second + neither))
    second = single(*[1] * both, *[0] * only_first, *[1] * only_second, *[0] * neither)
    interval = share_difference_interval(second, first)
    assert ends(interval) == pytest.approx(published, abs=6e-4 if both == 14 else 1e-4)
    assert interval.method == "Newcombe"


def test_two_targets_that_always_pass_may_differ_all_the_same():
    interval = share_difference_interval(single(*[1] * 20), single(*[1] * 20))
    assert ends(interval) == pytest.approx((-0.1611, 0.1611), abs=1e-4)


@given(PAIRED)
def test_a_differences_interval_is_bounded_and_holds_it(pair):
    before, now = pair
    interval = share_difference_interval(before, now)
    difference = sum(mean.value for mean in now) / len(now) - sum(mean.value for mean in before) / len(before)
    assert -1 <= interval.low < interval.high <= 1
    assert interval.low - 1e-12 <= difference <= interval.high + 1e-12


@given(PAIRED)
def test_it_is_mirrored_when_the_sides_are_swapped(pair):
    before, now = pair
    low, high = ends(share_difference_interval(before, now))
    assert ends(share_difference_interval(now, before)) == pytest.approx((-high, -low), abs=1e-12)


@given(PAIRED, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(pair, shuffler):
    shuffled = shuffler.sample(list(zip(*pair, strict=True)), len(pair[0]))
    before, now = zip(*shuffled, strict=True)
    assert share_difference_interval(before, now) == share_difference_interval(*pair)


def covered_share(cases: int, trials_each: int) -> float:
    """Return how often the interval holds the true difference, of suites in which most cases always pass."""
    chance = random.Random(7)
    held = 0
    for _ in range(300):
        before, now = [], []
        for _ in range(cases):
            rate = 1.0 if chance.random() < 0.8 else chance.random()
            drawn = [sum(chance.random() < rate for _ in range(trials_each)) for _ in range(2)]
            before.append((drawn[0], trials_each))
            now.append((drawn[1], trials_each))
        held += 0.0 in share_difference_interval(trials(*before), trials(*now))
    return held / 300


@pytest.mark.parametrize(("cases", "trials_each"), [(8, 1), (8, 4), (25, 3)])
def test_it_holds_its_level_where_a_bootstrap_does_not(cases, trials_each):
    assert covered_share(cases, trials_each) >= 0.94
