from __future__ import annotations

import pytest
import scipy.stats

from pytest_tooleval.measures.quantiles import POWER, TAIL, normal_quantile, normal_share, student_quantile


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.5, POWER, TAIL])
def test_the_normal_quantile_is_scipys(probability):
    assert normal_quantile(probability) == pytest.approx(scipy.stats.norm.ppf(probability), abs=1e-12)
    assert normal_share(normal_quantile(probability)) == pytest.approx(probability, abs=1e-12)


@pytest.mark.parametrize("probability", [POWER, TAIL])
@pytest.mark.parametrize("freedom", [5, 6, 9, 20, 1_000])
def test_students_quantile_is_scipys_from_five_degrees_of_freedom_on(probability, freedom):
    exact = scipy.stats.t.ppf(probability, freedom)
    assert student_quantile(probability, freedom) == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4])
def test_below_it_is_at_most_a_ninth_too_small(freedom):
    exact = scipy.stats.t.ppf(TAIL, freedom)
    assert exact * 8 / 9 < student_quantile(TAIL, freedom) < exact
