from __future__ import annotations

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.intervals import CaseMean, share_difference_interval
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.significance import holm, mcnemar_p_value, sign_flip_p_value
from pytest_tooleval.measures.target_comparison import (
    SCRIPTED_NOTE,
    Difference,
    TargetComparison,
    compare_targets,
)

NAMES = ("passRate", "accuracy", "calls", "errors", "tokens", "latencySeconds")


def run(case: str, target: str, *, passed: bool | None = True, trial: int = 1, **record) -> Measurement:
    """Return what one item measured; `passed` None for one that errored."""
    fields = {"accuracy": None, "calls": 2, "errors": 0, "tokens": 100, "latencySeconds": 1.0} | record
    verdict = "error" if passed is None else "passed" if passed else "missed"
    return Measurement("tool_use", "n", "evals", "f", 0, case, target, trial, verdict=verdict, record=fields)


def outcomes(target: str, signs: str, **record) -> list[Measurement]:
    """Return one trial of each case: passed, missed, or errored."""
    passed = {"+": True, "-": False, "E": None}
    return [run(f"c{place}", target, passed=passed[sign], **record) for place, sign in enumerate(signs)]


def row(case: str, target: str, rank: int | None, category: str = "lexical") -> Measurement:
    record = {"rank": rank, "category": category, "pass": rank == 1}
    verdict = "passed" if rank == 1 else "missed"
    return Measurement("discovery", "n", "evals", "f", 0, case, target, verdict=verdict, record=record)


def of(comparison: TargetComparison, metric: str) -> Difference:
    return next(difference for difference in comparison.differences if difference.metric == metric)


def pass_rate(before: str, now: str) -> Difference:
    (comparison,) = compare_targets("tool_use", [*outcomes("a", before), *outcomes("b", now)], ["a", "b"])
    return comparison.primary


def test_a_pair_that_differs_in_eight_of_twenty_cases():
    """Seven cases are gained and one is lost: exact McNemar 2 (1 + 8) / 256."""
    before, now = "+" * 6 + "-" * 7 + "+" + "-" * 6, "+" * 6 + "+" * 7 + "-" + "-" * 6
    found = pass_rate(before, now)
    assert (found.pairs, found.reference, found.target, found.difference) == (20, 0.35, 0.65, pytest.approx(0.3))
    assert (found.rises, found.falls, found.discordant) == (7, 1, 8)
    assert found.p_value == 2 * 9 / 256
    assert found.verdict == "no difference shown"
    assert (found.interval.low, found.interval.high) == (0.0, pytest.approx(0.51235, abs=1e-5))
    assert found.detectable == pytest.approx(0.38261, abs=1e-4)


def test_an_interval_holds_0_when_the_exact_test_does_not_reject():
    means = [[CaseMean(float(sign == "+"), 1) for sign in signs] for signs in ("-" * 5 + "+" * 15, "+" * 20)]
    assert share_difference_interval(*means).low > 0
    found = pass_rate("-" * 5 + "+" * 15, "+" * 20)
    assert (found.p_value, found.interval.low, found.verdict) == (2 / 32, 0.0, "no difference shown")


def test_an_interval_ends_at_0_when_the_exact_test_rejects():
    """Always 3 of 3 against 2 of 3 in six of nine cases: 2 / 2**6, though nine cases that pass may hide more."""
    before = [run(f"c{place}", "a", trial=trial) for place in range(9) for trial in range(1, 4)]
    now = [
        run(f"c{place}", "b", passed=place < 3 or trial < 3, trial=trial)
        for place in range(9)
        for trial in range(1, 4)
    ]
    means = [CaseMean(1.0, 3)] * 9, [CaseMean(1.0, 3)] * 3 + [CaseMean(2 / 3, 3)] * 6
    assert share_difference_interval(*means).high > 0
    (comparison,) = compare_targets("tool_use", before + now, ["a", "b"])
    found = comparison.primary
    assert (found.p_value, found.interval.high, found.verdict) == (2 / 2**6, 0.0, "worse")
    assert found.interval.low == share_difference_interval(*means).low
    assert found.detectable < abs(found.difference)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("-" * 8 + "+" * 8, "+" * 16, "better"),
        ("+" * 16, "-" * 8 + "+" * 8, "worse"),
        ("+" * 16, "+" * 16, "no difference shown"),
        ("-" * 5, "+" * 5, "no difference shown"),
        ("-" * 6, "+" * 6, "better"),
    ],
)
def test_what_a_difference_of_the_pass_rate_is(before, now, verdict):
    assert pass_rate(before, now).verdict == verdict


@pytest.mark.parametrize(
    ("metric", "less", "more"),
    [("calls", 1, 4), ("errors", 0, 3), ("tokens", 100, 900), ("latencySeconds", 0.5, 2.5)],
)
def test_less_is_better_of_what_costs(metric, less, more):
    def cost(target: str, least: float) -> list[Measurement]:
        return [run(f"c{place}", target, **{metric: least + place % 3}) for place in range(12)]

    (rising,) = compare_targets("tool_use", [*cost("a", less), *cost("b", more)], ["a", "b"])
    (falling,) = compare_targets("tool_use", [*cost("a", more), *cost("b", less)], ["a", "b"])
    assert of(rising, metric).difference == pytest.approx(more - less)
    assert (of(rising, metric).verdict, of(falling, metric).verdict) == ("worse", "better")
    assert of(rising, metric).reason == "no interval: the difference is the same in every case"
    assert of(rising, metric).interval is None


def test_costs_are_means_of_paired_differences():
    before = [
        run(f"c{place}", "a", tokens=tokens) for place, tokens in enumerate([100, 200, 300, 400, 500, 600, 700])
    ]
    now = [run(f"c{place}", "b", tokens=tokens) for place, tokens in enumerate([110, 150, 330, 440, 590, 560, 760])]
    (comparison,) = compare_targets("tool_use", before + now, ["a", "b"])
    found = of(comparison, "tokens")
    differences = [10.0, -50.0, 30.0, 40.0, 90.0, -40.0, 60.0]
    assert (found.reference, found.target, found.difference) == (400.0, 420.0, 20.0)
    assert found.p_value == sign_flip_p_value(differences)
    assert found.interval.method == "typical values"
    assert (found.rises, found.falls, found.verdict) == (5, 2, "no difference shown")


def test_few_cases_have_no_interval_of_costs():
    found = [
        run(f"c{place}", target, tokens=100 * place + extra)
        for place in range(5)
        for target, extra in (("a", 0), ("b", place))
    ]
    (comparison,) = compare_targets("tool_use", found, ["a", "b"])
    assert of(comparison, "tokens").reason == "no interval: fewer than 6 cases"
    assert of(comparison, "tokens").interval is None
    assert of(comparison, "passRate").interval is not None


def test_only_cases_that_were_measured_on_both_are_compared():
    (comparison,) = compare_targets("tool_use", [*outcomes("a", "+-E+"), *outcomes("b", "++-E")], ["a", "b"])
    assert (comparison.cases, comparison.primary.pairs) == (4, 2)
    assert (comparison.primary.reference, comparison.primary.target) == (0.5, 1.0)


def test_a_metric_is_compared_over_the_cases_that_have_a_value_on_both():
    before = [run("x", "a", accuracy=1.0, tokens=None), run("y", "a", accuracy=0.0), run("z", "a")]
    now = [run("x", "b", accuracy=0.0), run("y", "b", accuracy=None), run("z", "b", tokens=None)]
    (comparison,) = compare_targets("tool_use", before + now, ["a", "b"])
    assert [of(comparison, name).pairs for name in NAMES] == [3, 1, 3, 3, 1, 3]


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ("++E", "EE+", "no case was measured on both"),
        ("EEE", "+++", "no case was measured on both"),
        ("", "", "no case was measured on both"),
    ],
)
def test_a_pair_without_a_common_case_says_so(before, now, reason):
    found = pass_rate(before, now)
    assert found == Difference("passRate", reason=reason)
    assert (found.difference, found.interval, found.p_value, found.verdict) == (None, None, None, None)


def test_a_metric_without_a_common_value_says_so():
    (comparison,) = compare_targets(
        "tool_use", [*outcomes("a", "++", tokens=None), *outcomes("b", "++")], ["a", "b"]
    )
    assert of(comparison, "tokens") == Difference("tokens", reason="no case has a value of tokens on both")


def test_trials_are_averaged_by_case_before_cases_are_compared():
    """Many trials of one case are one pair; those that errored are left out of it."""
    before = [run("often", "a", passed=number < 3, trial=number) for number in range(1, 11)] + [run("once", "a")]
    now = [run("often", "b", passed=passed, trial=number) for number, passed in ((1, True), (2, None), (3, False))]
    (comparison,) = compare_targets("tool_use", [*before, *now, run("once", "b")], ["a", "b"])
    found = comparison.primary
    assert (found.pairs, found.reference, found.target) == (2, pytest.approx(0.6), 0.75)
    assert (found.rises, found.falls) == (1, 0)


def test_a_case_with_a_trial_that_has_no_value_has_none():
    before = [run("x", "a", tokens=10), run("x", "a", trial=2, tokens=None), run("y", "a", tokens=10)]
    (comparison,) = compare_targets("tool_use", [*before, run("x", "b"), run("y", "b")], ["a", "b"])
    assert (of(comparison, "tokens").pairs, of(comparison, "calls").pairs) == (1, 2)


def test_equal_shares_of_different_numbers_of_trials_do_not_differ():
    before = [run("x", "a", passed=number < 1, trial=number + 1) for number in range(3)]
    now = [run("x", "b", passed=number < 2, trial=number + 1) for number in range(6)]
    (comparison,) = compare_targets("tool_use", before + now, ["a", "b"])
    assert (comparison.primary.difference, comparison.primary.discordant) == (0.0, 0)


def test_every_two_targets_are_compared_and_the_pass_rates_corrected():
    signs = {"a": "-" * 20, "b": "+" * 7 + "-" * 13, "c": "+" * 9 + "-" * 11}
    found = compare_targets("tool_use", [m for name in signs for m in outcomes(name, signs[name])], list(signs))
    assert [(c.reference, c.target) for c in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    p_values = [c.primary.p_value for c in found]
    assert p_values == [2 / 2**7, 2 / 2**9, 2 / 2**2]
    assert [c.primary.corrected_p_value for c in found] == holm(p_values) == [4 / 2**7, 6 / 2**9, 2 / 2**2]
    assert [c.corrected_over for c in found] == [3, 3, 3]
    assert [c.primary.verdict for c in found] == ["better", "better", "no difference shown"]
    assert {difference.corrected_p_value for c in found for difference in c.differences[1:]} == {None}


def test_a_difference_that_the_correction_takes_away():
    signs = {"a": "-" * 20, "b": "+" * 6 + "-" * 14, "c": "+" * 3 + "-" * 17}
    found = compare_targets("tool_use", [m for name in signs for m in outcomes(name, signs[name])], list(signs))
    first = found[0].primary
    assert (first.p_value, first.corrected_p_value) == (2 / 2**6, 6 / 2**6)
    assert first.verdict == "no difference shown"
    (alone,) = compare_targets("tool_use", [m for name in "ab" for m in outcomes(name, signs[name])], ["a", "b"])
    assert (alone.primary.corrected_p_value, alone.corrected_over, alone.primary.verdict) == (None, 1, "better")


def test_the_scripted_provider_is_compared_but_is_no_model():
    signs = {"mock": "+" * 20, "a": "-" * 10 + "+" * 10, "b": "-" * 3 + "+" * 17}
    found = compare_targets("tool_use", [m for name in signs for m in outcomes(name, signs[name])], list(signs))
    scripted, _, models = found
    assert (scripted.reference, scripted.target, scripted.notes) == ("mock", "a", (SCRIPTED_NOTE,))
    assert (scripted.primary.difference, scripted.primary.verdict) == (-0.5, "lower")
    assert (models.reference, models.target, models.notes) == ("a", "b", ())
    assert (models.primary.p_value, models.primary.corrected_p_value) == (2 / 2**7, None)
    assert models.primary.verdict == "better"


def test_scripts_on_other_tools_are_scripts_too():
    measurements = [*outcomes("mock", "+" * 8), *outcomes("mock+broker", "-" * 8)]
    (comparison,) = compare_targets("tool_use", measurements, ["mock", "mock+broker"])
    assert (comparison.is_scripted, comparison.primary.verdict) == (True, "lower")
    (models,) = compare_targets(
        "tool_use", [*outcomes("mocking:m", "++"), *outcomes("m", "++")], ["mocking:m", "m"]
    )
    assert not models.is_scripted


def test_searches_are_compared_by_top_1_and_mrr_of_matchable_rows():
    """A row without an acceptable tool counts as 0, one that should be refused does not count."""
    first = {"r1": 1, "r2": 2, "r3": None, "r4": 4}
    second = {"r1": 1, "r2": 1, "r3": 5, "r4": None}
    rows = [row(name, "lexical", rank) for name, rank in first.items()]
    rows += [row(name, "mine", rank) for name, rank in second.items()]
    rows += [row("none", target, None, "no_match") for target in ("lexical", "mine")]
    (comparison,) = compare_targets("discovery", rows, ["lexical", "mine"])
    top1, mrr = comparison.differences
    assert (top1.metric, top1.pairs, top1.reference, top1.target, top1.rises, top1.falls) == (
        "top1",
        4,
        0.25,
        0.5,
        1,
        0,
    )
    assert (mrr.metric, mrr.pairs, mrr.reference) == ("mrr", 4, pytest.approx((1 + 1 / 2 + 0 + 1 / 4) / 4))
    assert (mrr.target, mrr.rises, mrr.falls) == (pytest.approx((1 + 1 + 1 / 5 + 0) / 4), 2, 1)
    assert comparison.cases == 5


@pytest.mark.parametrize(
    ("ranks", "method"), [([2] * 5 + [1] * 15, "Newcombe"), ([2, 3, 2, 4, 2, 5] + [1] * 14, "bootstrap")]
)
def test_the_interval_of_mrr_is_that_of_shares_where_few_rows_differ(ranks, method):
    """Five halves out of twenty say little of how reciprocal ranks vary."""
    rows = [row(f"r{place}", "x", rank) for place, rank in enumerate(ranks)]
    rows += [row(f"r{place}", "y", 1) for place in range(len(ranks))]
    (comparison,) = compare_targets("discovery", rows, ["x", "y"])
    assert of(comparison, "mrr").interval.method == method


def test_one_id_in_two_files_of_a_corpus_is_two_rows():
    rows = []
    for file in ("one.jsonl", "two.jsonl"):
        for target, rank in (("x", 1), ("y", 1 if file == "one.jsonl" else 2)):
            rows.append(Measurement("discovery", "n", "evals", file, 0, "ask", target, record={"rank": rank}))
    (comparison,) = compare_targets("discovery", rows, ["x", "y"])
    assert (comparison.primary.pairs, comparison.primary.falls) == (2, 1)


@pytest.mark.parametrize("tokens", ["many", math.nan, math.inf, 10**400, [1], {}])
def test_what_is_no_number_is_no_value(tokens):
    found = [run("x", "a", tokens=tokens), run("x", "b")]
    (comparison,) = compare_targets("tool_use", found, ["a", "b"])
    assert of(comparison, "tokens").pairs == 0
    assert of(comparison, "calls").pairs == 1


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, 5])
def test_an_accuracy_beyond_its_bounds_is_no_value(accuracy):
    (comparison,) = compare_targets(
        "tool_use", [run("x", "a", accuracy=accuracy), run("x", "b", accuracy=1)], ["a", "b"]
    )
    assert of(comparison, "accuracy").pairs == 0


@pytest.mark.parametrize("rank", [0, -3, math.nan, "1"])
def test_a_rank_that_is_none_is_not_found(rank):
    (comparison,) = compare_targets("discovery", [row("x", "a", rank), row("x", "b", 1)], ["a", "b"])
    assert [difference.reference for difference in comparison.differences] == [0.0, 0.0]


def test_one_target_has_nothing_to_be_compared_with():
    assert compare_targets("tool_use", outcomes("a", "+-"), ["a"]) == []


SIGNS = st.lists(st.tuples(st.sampled_from("+-E"), st.sampled_from("+-E")), min_size=1, max_size=30)


@given(SIGNS, st.randoms(use_true_random=False))
def test_the_order_of_measurements_does_not_matter(signs, shuffler):
    measurements = [
        m
        for target, outcome in zip("ab", zip(*signs, strict=True), strict=True)
        for m in outcomes(target, "".join(outcome))
    ]
    measurements = [
        Measurement(
            **{**m.to_plain(), "tags": (), "record": {**m.record, "tokens": 7 * int(m.id[1:]) % 41 + ord(m.target)}}
        )
        for m in measurements
    ]
    found = compare_targets("tool_use", measurements, ["a", "b"])
    assert compare_targets("tool_use", shuffler.sample(measurements, len(measurements)), ["a", "b"]) == found


@given(SIGNS)
def test_swapped_targets_differ_as_much_the_other_way(signs):
    first, second = ("".join(side) for side in zip(*signs, strict=True))
    one, other = pass_rate(first, second), pass_rate(second, first)
    assert (one.pairs, one.p_value, one.detectable) == (other.pairs, other.p_value, other.detectable)
    assert (one.rises, one.falls) == (other.falls, other.rises)
    opposite = {"better": "worse", "worse": "better"}
    assert opposite.get(one.verdict, one.verdict) == other.verdict
    if one.difference is not None:
        assert one.difference == pytest.approx(-other.difference)
        assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))


@given(SIGNS)
def test_verdict_p_value_and_interval_never_contradict_each_other(signs):
    found = pass_rate(*("".join(side) for side in zip(*signs, strict=True)))
    if found.pairs:
        assert found.p_value == mcnemar_p_value(found.rises, found.falls)
        assert found.interval.low - 1e-12 <= found.difference <= found.interval.high + 1e-12
        assert (found.verdict != "no difference shown") == (found.p_value <= 0.05)
        if found.p_value > 0.05:
            assert 0.0 in found.interval
        else:
            assert found.interval.low >= 0 or found.interval.high <= 0


def test_alike_targets_are_rarely_told_apart():
    chance = random.Random(5)
    told = 0
    for _ in range(200):
        signs = ["".join("+" if chance.random() < 0.6 else "-" for _ in range(25)) for _ in range(2)]
        told += pass_rate(*signs).verdict != "no difference shown"
    assert told / 200 <= 0.06


def test_a_difference_of_the_detectable_size_is_mostly_shown():
    """30 cases differ, of 60, by the difference that could have been shown: 80 % of such runs show it."""
    chance = random.Random(7)
    limit = pass_rate("+" * 15 + "-" * 15 + "+" * 30, "-" * 15 + "+" * 15 + "+" * 30).detectable
    shown = 0
    for _ in range(200):
        before = now = ""
        for _ in range(60):
            draw = chance.random()
            before += "+" if draw < (0.5 - limit) / 2 or draw >= 0.75 else "-"
            now += "+" if (0.5 - limit) / 2 <= draw < 0.5 or draw >= 0.75 else "-"
        shown += pass_rate(before, now).verdict == "better"
    assert 0.7 <= shown / 200 <= 0.9


def test_ten_thousand_cases_on_three_targets_take_about_a_second():
    chance = random.Random(2)
    measurements = [
        run(
            f"c{place}",
            target,
            passed=chance.random() < 0.7,
            tokens=chance.randrange(1_000),
            latencySeconds=chance.random(),
        )
        for place in range(10_000)
        for target in "abc"
    ]
    begun = time.process_time()
    compare_targets("tool_use", measurements, ["a", "b", "c"])
    assert time.process_time() - begun < 4
