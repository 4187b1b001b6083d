from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.significance import DRAWS, EXACT_UP_TO, holm, mcnemar_p_value, sign_flip_p_value

DIFFERENCES = st.lists(st.integers(-4, 4).map(lambda quarter: quarter / 4), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("one", "other", "p_value"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (3, 3, 1.0),
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (1, 7, 2 * (1 + 8) / 256),
    ],
)
def test_mcnemar_by_hand(one, other, p_value):
    assert mcnemar_p_value(one, other) == mcnemar_p_value(other, one) == p_value


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_one_half(one, other):
    exact = scipy.stats.binomtest(one, one + other, 0.5).pvalue if one + other else 1.0
    assert mcnemar_p_value(one, other) == pytest.approx(exact, abs=1e-12)


def test_mcnemar_of_very_many_cases():
    exact = scipy.stats.binomtest(4_850, 10_000, 0.5).pvalue
    assert mcnemar_p_value(4_850, 5_150) == pytest.approx(exact, rel=1e-9)


def by_enumeration(differences: list[float]) -> float:
    found = abs(math.fsum(differences))
    sums = [
        abs(math.fsum(sign * size for sign, size in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(total >= found - 1e-9 for total in sums) / len(sums)


@pytest.mark.parametrize(
    "differences",
    [
        [0.5],
        [0.0, 0.0],
        [1.0, 2.0, 4.0],
        [1 / 3, -2 / 3, 1.0, 1 / 3, 0.0],
        [3.0, -1.0, 2.5, 7.0, 0.25, -0.5, 9.0],
    ],
)
def test_few_differences_are_counted_out(differences):
    assert sign_flip_p_value(differences) == by_enumeration(differences)


def test_it_is_scipys_permutation_test():
    differences = [12.0, -3.5, 8.25, 4.0, 19.0, -1.0, 6.5, 2.0, 11.0]
    theirs = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=math.inf, alternative="two-sided"
    )
    assert sign_flip_p_value(differences) == pytest.approx(theirs.pvalue, abs=1e-12)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.sampled_from([1.0, 0.25, 17.0]))
def test_of_one_size_it_is_mcnemars(rises, falls, same, size):
    differences = [size] * rises + [-size] * falls + [0.0] * same
    if differences:
        assert sign_flip_p_value(differences) == mcnemar_p_value(rises, falls)


def test_no_differences_have_no_p_value():
    assert sign_flip_p_value([]) is None


def test_thirds_that_differ_in_their_last_digit_are_one_size():
    assert sign_flip_p_value([1 / 3, 1 - 2 / 3, 2 / 3 - 1 / 3] * 6) == 2 / 2**18


def test_drawn_signs_come_close_to_all_signs():
    """Seventeen differences are drawn, though all 2**17 assignments can still be counted."""
    differences = [float(size) for size in range(1, 13)] + [-2.5, -7.5, -11.5, -9.5, -3.5]
    assert len(differences) == EXACT_UP_TO + 1
    sums = np.array([0.0])
    for size in differences:
        sums = np.concatenate([sums + size, sums - size])
    exact = float(np.mean(np.abs(sums) >= abs(sum(differences)) - 1e-9))
    drawn = sign_flip_p_value(differences)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / DRAWS))
    assert drawn != exact


def test_a_drawn_p_value_is_never_0():
    assert sign_flip_p_value([1.0 + number / 100 for number in range(200)]) == 1 / (DRAWS + 1)


def test_the_same_seed_gives_the_same_and_another_not():
    differences = [(-1) ** number * number * 0.3 for number in range(1, 40)]
    assert sign_flip_p_value(differences) == sign_flip_p_value(differences)
    assert sign_flip_p_value(differences, seed=1) != sign_flip_p_value(differences, seed=2)


def test_very_many_differences_have_the_normal_limit():
    chance = np.random.default_rng(3)
    differences = chance.normal(0.05, 1.0, 2_000)
    score = abs(differences.sum()) / math.sqrt((differences**2).sum())
    assert sign_flip_p_value(differences.tolist()) == pytest.approx(2 * scipy.stats.norm.sf(score), rel=1e-6)


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_neither_order_nor_sign_matters(differences, shuffler):
    p_value = sign_flip_p_value(differences)
    assert 0 < p_value <= 1
    assert sign_flip_p_value(shuffler.sample(differences, len(differences))) == p_value
    assert sign_flip_p_value([-difference for difference in differences]) == p_value


def test_holm_by_hand():
    """0.01 x 4, 0.02 x 3, then 0.03 x 2 = 0.06 and 0.04 x 1, which is raised to 0.06."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_leaves_one_p_value_alone_and_passes_over_what_is_none():
    assert holm([]) == []
    assert holm([None, 0.03, None]) == [None, 0.03, None]
    assert holm([0.6, None, 0.7]) == [1.0, None, 1.0]


def rejected_by_closed_testing(p_values: list[float], alpha: float) -> set[int]:
    """Return what is rejected when every set with it is rejected by Bonferroni: the principle that Holm shortens."""
    places = range(len(p_values))
    sets = [chosen for size in range(1, len(p_values) + 1) for chosen in itertools.combinations(places, size)]
    kept = [chosen for chosen in sets if min(p_values[place] for place in chosen) * len(chosen) > alpha]
    return {place for place in places if not any(place in chosen for chosen in kept)}


@given(st.lists(st.integers(1, 1_000).map(lambda number: number / 2_000), min_size=1, max_size=6))
def test_holm_rejects_what_closed_testing_rejects(p_values):
    adjusted = holm(p_values)
    for alpha in (0.0501, 0.1003, 0.2007):
        rejected = {place for place, value in enumerate(adjusted) if value <= alpha}
        assert rejected == rejected_by_closed_testing(p_values, alpha)
