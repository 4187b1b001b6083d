from __future__ import annotations

import random

from trial_samples import discovery_rows, tool_use_trials

from pytest_tooleval.reports.statistics_summary import (
    MOST_FLAKY,
    MOST_PAIRS,
    discovery_statistics,
    tool_use_statistics,
)
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.suite_statistics import suite_statistics
from pytest_tooleval.reports.tables import rendered


def summary(*measurements, targets: tuple[str, ...] = (), searches: tuple[str, ...] = (), width: int = 80) -> str:
    result = SuiteResult(tuple(measurements), targets=targets, gold_targets=searches)
    statistics = suite_statistics(result)
    return rendered((*tool_use_statistics(statistics), *discovery_statistics(statistics)), width, color=False)


def test_one_model_has_its_interval():
    assert summary(*tool_use_trials("openai:a", *"+++-E"), targets=("openai:a",)) == (
        "openai:a: pass rate 0.75 (95 % CI 0.30 to 0.95), 4 cases\n"
    )


def test_scripts_and_what_was_not_measured_have_none():
    assert summary(*tool_use_trials("mock", *"++"), targets=("mock",)) == ""
    assert summary(*tool_use_trials("mock+broker", *"++"), targets=("mock+broker",)) == ""
    assert summary(*tool_use_trials("m", *"EE"), targets=("m",)) == ""


def test_trials_and_what_is_flaky():
    assert summary(*tool_use_trials("m", "+++", "+-+", "--", "-E+"), targets=("m",)) == (
        "m: pass rate 0.54 (95 % CI 0.17 to 0.87), 4 cases, up to 3 trials each\n"
        "m: pass@3 1.00 (2 of 4 cases), pass^3 0.50 (2 of 4 cases); 2 of 4 cases flaky: c1 2 of 3, c3 1 of 2\n"
    )


def test_steady_trials():
    text = summary(*tool_use_trials("m", "++", "--"), targets=("m",))
    assert text.endswith("m: pass@2 0.50, pass^2 0.50; no case is flaky\n")


def test_k_is_the_most_that_a_case_has_valid_trials_for():
    text = summary(*tool_use_trials("m", "++E", "+-E"), targets=("m",))
    assert "pass@2 1.00, pass^2 0.50" in text


def test_the_flaky_are_bounded():
    (_, line) = summary(*tool_use_trials("m", *["+-"] * 20), targets=("m",)).splitlines()
    assert line.count(" 1 of 2") == MOST_FLAKY
    assert line.endswith("and 12 more")


def test_a_pair_of_models():
    before, now = (
        tool_use_trials("openai:a", *"+" * 20 + "-" * 20),
        tool_use_trials("openai:b", *"+" * 24 + "-" * 16),
    )
    lines = summary(*before, *now, targets=("openai:a", "openai:b")).splitlines()
    assert lines[0] == ""
    assert lines[3:] == [
        "",
        "openai:b against openai:a: pass rate +0.10 (95 % CI +0.00 to +0.20, p 0.12), 40 cases, "
        "no difference shown; this suite could have shown 0.20 or more",
        "metric  difference 95 % CI    p cases finding",
        "calls        +0.00       - 1.00    40 no difference shown",
        "errors       +0.00       - 1.00    40 no difference shown",
        "tokens       +0.00       - 1.00    40 no difference shown",
        "seconds      +0.00       - 1.00    40 no difference shown",
    ]


def test_numbers_fit_into_80_columns():
    chance = random.Random(8)

    def costly(target: str, share: float) -> list:
        signs = "".join("+" if chance.random() < share else "-" for _ in range(60))
        return [
            m
            for place, sign in enumerate(signs)
            for m in tool_use_trials(
                target, *"s" * place, sign, tokens=chance.randrange(20_000), calls=chance.random()
            )
            if m.measured
        ]

    text = summary(*costly("a", 0.2), *costly("b", 0.9), targets=("a", "b"))
    table = text.splitlines()[5:]
    assert all(len(line) <= 80 for line in table)
    tokens = next(line for line in table if line.startswith("tokens"))
    assert "." not in tokens.split(" to ")[0]
    assert ", better" in text
    assert "could have shown" not in text.splitlines()[4]


def test_cases_that_were_measured_on_one_only_are_told():
    text = summary(*tool_use_trials("a", *"+++E"), *tool_use_trials("b", *"++-+"), targets=("a", "b"))
    assert ", 3 of 4 cases, no difference shown; so few cases can show none\n" in text


def test_a_metric_without_a_value_on_both_has_no_line():
    text = summary(*tool_use_trials("a", *"+-", tokens=None), *tool_use_trials("b", *"+-"), targets=("a", "b"))
    assert "calls" in text
    assert "tokens" not in text
    assert "accuracy" not in text


def test_a_pair_without_a_common_case():
    text = summary(*tool_use_trials("a", *"+E"), *tool_use_trials("b", *"E+"), targets=("a", "b"))
    assert text.endswith("\nb against a: no case was measured on both\n")


def test_corrected_p_values_and_the_note_on_scripts():
    signs = {"mock": "+" * 20, "a": "-" * 20, "b": "+" * 7 + "-" * 13, "c": "+" * 9 + "-" * 11}
    measurements = [m for target, outcome in signs.items() for m in tool_use_trials(target, *outcome)]
    text = summary(*measurements, targets=tuple(signs))
    assert "b against a: pass rate +0.35 (95 % CI +0.12 to +0.57, p 0.016, corrected for 3 pairs 0.031), " in text
    assert "a against mock: pass rate -1.00 (95 % CI -1.00 to -0.77, p < 0.001), 20 cases, lower\n" in text
    assert text.count("note: mock plays the fixtures' scripts") == 1
    assert "metric" not in text


def test_pairs_are_bounded():
    names = tuple(f"m{number}" for number in range(6))
    text = summary(*(m for name in names for m in tool_use_trials(name, *"+-")), targets=names)
    assert text.count(" against ") == MOST_PAIRS
    assert "(5 more pairs; --tooleval-json FILE holds every pair and metric)" in text


def test_searches_are_compared_by_top_1():
    text = summary(
        *discovery_rows("lexical", *[2] * 8, *[1] * 22),
        *discovery_rows("mine", *[1] * 30),
        searches=("lexical", "mine"),
    )
    line, _, mrr = text.splitlines()[1:]
    assert line.startswith("mine against lexical: top-1 +0.27 (95 % CI +0.10 to +0.44, p 0.008), 30 cases, better")
    assert mrr.split() == ["MRR", "+0.13", "+0.05", "to", "+0.22", "0.008", "30", "better"]


def test_very_many_cases_have_three_decimals():
    before, now = "+" * 400 + "-" * 100, "+" * 402 + "-" * 98
    text = summary(*tool_use_trials("a", *before), *tool_use_trials("b", *now), targets=("a", "b"))
    assert "pass rate +0.004 (95 % CI -0.00" in text


def test_a_limit_is_rounded_up():
    """0.2421 could have been shown, 0.24 not."""
    before, now = "+" * 6 + "-" * 6 + "+" * 28, "-" * 6 + "+" * 6 + "+" * 28
    text = summary(*tool_use_trials("a", *before), *tool_use_trials("b", *now), targets=("a", "b"))
    assert "could have shown 0.25 or more" in text


def test_names_of_others_are_shown_as_they_are():
    evil = "a\x1b[31m[red]"
    text = summary(*tool_use_trials(evil, *"+-"), *tool_use_trials("b", *"+-"), targets=(evil, "b"))
    assert "\x1b" not in text
    assert "b against a\\x1b[31m[red]: pass rate" in text
