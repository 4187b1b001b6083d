from __future__ import annotations

import itertools
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.pass_at_k import pass_at_k, pass_hat_k

TRIALS = st.integers(1, 7).flatmap(
    lambda valid: st.tuples(st.just(valid), st.integers(0, valid), st.integers(1, valid))
)


@pytest.mark.parametrize(
    ("valid", "passed", "k", "any_passes", "all_pass"),
    [
        (1, 1, 1, 1.0, 1.0),
        (1, 0, 1, 0.0, 0.0),
        (4, 2, 1, 0.5, 0.5),
        (4, 2, 2, 1 - 1 / 6, 1 / 6),
        (5, 3, 3, 1.0, 1 / 10),
        (5, 2, 4, 1.0, 0.0),
        (10, 3, 5, 1 - 21 / 252, 0.0),
    ],
)
def test_by_hand(valid, passed, k, any_passes, all_pass):
    assert pass_at_k(valid, passed, k) == pytest.approx(any_passes)
    assert pass_hat_k(valid, passed, k) == pytest.approx(all_pass)


@given(TRIALS)
def test_they_are_shares_of_all_choices_of_k_trials(trials):
    valid, passed, k = trials
    outcomes = [True] * passed + [False] * (valid - passed)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at_k(valid, passed, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(valid, passed, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_their_mean_over_samples_is_the_chance_itself(chance):
    """Unlike 1 - (1 - c/n)**k, which is too small, and (c/n)**k, which is too large."""
    n, k = 6, 3
    samples = [
        (sum(sample), prod(chance if passed else 1 - chance for passed in sample))
        for sample in itertools.product((0, 1), repeat=n)
    ]
    assert sum(weight * pass_at_k(n, passed, k) for passed, weight in samples) == pytest.approx(
        1 - (1 - chance) ** k
    )
    assert sum(weight * pass_hat_k(n, passed, k) for passed, weight in samples) == pytest.approx(chance**k)


@pytest.mark.parametrize(("valid", "passed", "k"), [(0, 0, 1), (2, 2, 3), (2, 0, 3)])
def test_with_fewer_valid_trials_than_k_there_is_none(valid, passed, k):
    assert pass_at_k(valid, passed, k) is None
    assert pass_hat_k(valid, passed, k) is None


@pytest.mark.parametrize(("valid", "passed", "k"), [(2, 1, 0), (2, 3, 1), (2, -1, 1)])
def test_wrong_counts_are_refused(valid, passed, k):
    for measure in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"k is 0|trials passed"):
            measure(valid, passed, k)
