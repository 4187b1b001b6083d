from __future__ import annotations

import pytest
import scipy.stats

from pytest_tooleval.measures.mcnemar_power import EXACT_UP_TO, mcnemar_power


def power_by_enumeration(cases: int, differing: float, difference: float) -> float:
    rising = (differing + difference) / (2 * differing)
    total = 0.0
    for count in range(1, cases + 1):
        ups = range(count + 1)
        rejected = [up for up in ups if scipy.stats.binomtest(up, count, 0.5).pvalue <= 0.05]
        conditional = scipy.stats.binom.pmf(rejected, count, rising).sum() if rejected else 0.0
        total += scipy.stats.binom.pmf(count, cases, differing) * conditional
    return total


@pytest.mark.parametrize(
    ("cases", "differing", "difference"),
    [(6, 1.0, 1.0), (10, 0.6, 0.6), (12, 0.5, 0.3), (20, 0.4, 0.1), (25, 0.9, 0.5)],
)
def test_the_power_of_few_cases_is_counted_out(cases, differing, difference):
    assert mcnemar_power(cases)(differing, difference) == pytest.approx(
        power_by_enumeration(cases, differing, difference), abs=1e-9
    )


@pytest.mark.parametrize("cases", [1, 5])
def test_five_cases_never_show_anything(cases):
    assert mcnemar_power(cases)(1.0, 1.0) == 0.0


def test_six_cases_show_a_total_difference():
    assert mcnemar_power(6)(1.0, 1.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("differing", "difference"), [(0.3, 0.1), (0.5, 0.12), (0.2, 0.08)])
def test_the_approximation_goes_on_where_counting_ends(differing, difference):
    counted, approximated = (
        mcnemar_power(cases)(differing, difference) for cases in (EXACT_UP_TO, EXACT_UP_TO + 1)
    )
    assert approximated == pytest.approx(counted, abs=0.02)


def test_the_approximation_of_a_total_difference_is_certain():
    assert mcnemar_power(EXACT_UP_TO + 1)(1.0, 1.0) == 1.0
