"""The statistics against those of another library, on inputs that neither was made for."""

from __future__ import annotations

import random

import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from pytest_tooleval.measures.intervals import wilson
from pytest_tooleval.measures.significance import holm, mcnemar_p_value


@pytest.mark.parametrize(("passed", "cases"), [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (41, 57), (999, 1000)])
def test_wilson(passed: int, cases: int) -> None:
    low, high = proportion_confint(passed, cases, alpha=0.05, method="wilson")
    ours = wilson(passed / cases, cases)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(("one", "other"), [(0, 0), (0, 1), (1, 5), (6, 6), (3, 17), (40, 71), (0, 300)])
def test_exact_mcnemar(one: int, other: int) -> None:
    theirs = mcnemar([[5, one], [other, 8]], exact=True).pvalue
    assert mcnemar_p_value(one, other) == pytest.approx(float(theirs), rel=1e-9)


def test_holm() -> None:
    chance = random.Random(5)
    for number in (1, 2, 3, 10):
        values = [chance.random() ** 3 for _ in range(number)]
        theirs = multipletests(values, method="holm")[1]
        assert holm(values) == pytest.approx([float(value) for value in theirs], rel=1e-12)
