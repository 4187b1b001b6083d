"""Each target against itself on another day, on case records as result files hold them."""

from __future__ import annotations

from pytest_tooleval.reports.comparison import compare, comparison_section
from pytest_tooleval.reports.comparison_summary import comparison_blocks
from pytest_tooleval.reports.tables import rendered


def record(case: str, target: str, verdict: str, *, trial: int = 1, **fields):
    return {
        "id": case,
        "target": target,
        "trial": trial,
        "corpus": "evals",
        "file": "evals/fixtures/a.json",
        "verdict": verdict,
        **fields,
    }


def document(*records, family: str = "toolUse"):
    targets = {found["target"]: {} for found in records}
    scores = {
        "overall": {},
        "byCategory": {},
        "byTarget": {target: {"overall": {}, "byCategory": {}} for target in targets},
    }
    section = {"byTarget": targets} if family == "toolUse" else scores
    return {
        "schema": "tooleval/v1",
        "generatedAt": "2026-01-02T03:04:05+00:00",
        "provenance": {},
        family: {**section, "cases": list(records)},
        "gates": [],
        "verdict": "pass",
    }


def outcomes(target: str, signs: str, **fields):
    """Return a record for each case: passed, missed, errored."""
    verdicts = {"+": "passed", "-": "missed", "E": "error"}
    return [record(f"c{place}", target, verdicts[sign], **fields) for place, sign in enumerate(signs)]


def told(before, now) -> list[str]:
    text = rendered(comparison_blocks(compare(before, now)), 80, color=False)
    return [line for line in text.splitlines() if " against the baseline: " in line]


def test_a_model_that_got_better():
    before = document(*outcomes("openai:m", "-" * 9 + "+" * 11, tokens=900))
    now = document(*outcomes("openai:m", "+" * 20, tokens=1_000))
    (found,) = compare(before, now).statistics
    assert (found.family, found.reference, found.target) == ("tool_use", "openai:m", "openai:m")
    assert (found.primary.reference, found.primary.target, found.primary.verdict) == (0.55, 1.0, "better")
    assert found.primary.p_value == 2 / 2**9
    tokens = found.differences[4]
    assert (tokens.metric, tokens.difference, tokens.verdict) == ("tokens", 100.0, "worse")
    assert told(before, now) == [
        "openai:m against the baseline: pass rate +0.45 (95 % CI +0.20 to +0.66, p 0.004), 20 cases, better"
    ]


def test_one_regression_of_a_model_shows_no_difference():
    before = document(*outcomes("m", "+" * 20))
    now = document(*outcomes("m", "-" + "+" * 19))
    (line,) = told(before, now)
    assert ", no difference shown; this suite could have shown 0.37 or more" in line


def test_only_targets_of_both_are_compared_and_only_cases_that_both_measured():
    before = document(*outcomes("kept", "++E-"), *outcomes("gone", "++++"))
    now = document(*outcomes("new", "++++"), *outcomes("kept", "-E++"), record("added", "kept", "passed"))
    (found,) = compare(before, now).statistics
    assert (found.target, found.cases, found.primary.pairs) == ("kept", 5, 2)
    assert (found.primary.rises, found.primary.falls) == (1, 1)


def test_trials_are_averaged_by_case_though_their_numbers_differ():
    before = document(*(record("x", "m", "passed", trial=trial) for trial in (1, 2)))
    now = document(*(record("x", "m", verdict, trial=trial) for trial, verdict in ((1, "missed"), (3, "passed"))))
    (found,) = compare(before, now).statistics
    assert (found.primary.pairs, found.primary.difference) == (1, -0.5)


def test_several_models_are_corrected_together():
    before = document(*outcomes("a", "-" * 12), *outcomes("b", "-" * 12), *outcomes("mock", "-" * 12))
    now = document(*outcomes("a", "+" * 7 + "-" * 5), *outcomes("b", "-" * 12), *outcomes("mock", "+" * 12))
    found = {pair.target: pair for pair in compare(before, now).statistics}
    assert found["a"].primary.corrected_p_value == 2 * found["a"].primary.p_value == 4 / 2**7
    assert (found["a"].corrected_over, found["mock"].primary.corrected_p_value) == (2, None)


def test_scripts_are_counted_but_not_told():
    before, now = document(*outcomes("mock", "-" * 12)), document(*outcomes("mock", "+" * 12))
    (found,) = compare(before, now).statistics
    assert (found.primary.difference, found.primary.verdict) == (1.0, "higher")
    assert told(before, now) == []


def test_a_search_is_told_when_its_first_tools_changed():
    def searched(*ranks):
        rows = [record(f"r{place}", "lexical", "passed", rank=rank) for place, rank in enumerate(ranks)]
        return document(*rows, family="discovery")

    assert told(searched(1, 2, 3), searched(1, 2, 4)) == []
    (line,) = told(searched(1, 2, 3), searched(1, 1, 3))
    assert line.startswith("lexical against the baseline: top-1 +0.33 (")


def test_records_of_a_damaged_file_have_no_values_where_these_are_none():
    wrong = {"accuracy": "high", "calls": None, "errors": [], "tokens": 10**400, "latencySeconds": {}}
    before = document(*outcomes("m", "+-" * 4, **wrong))
    now = document(*outcomes("m", "++" * 4, accuracy=1.0, calls=1, errors=0, tokens=5, latencySeconds=0.1))
    (found,) = compare(before, now).statistics
    assert [difference.pairs for difference in found.differences] == [8, 0, 0, 0, 0, 0]


def test_numbers_that_no_float_holds_are_told_and_compared_with_nothing():
    before, now = (document(*outcomes("m", "+", errors=errors)) for errors in (10**400, 0))
    before["toolUse"]["byTarget"]["m"] = now["toolUse"]["byTarget"]["m"] = {"errors": 10**400}
    found = compare(before, now)
    assert [change.kind for change in found.cases] == ["better"]
    assert found.metrics == ()


def test_values_of_a_target_that_are_no_numbers_are_no_metrics():
    before, now = (document(*outcomes("m", "++")) for _ in range(2))
    for found in (before, now):
        found["toolUse"]["byTarget"]["m"] = {"passRate": 1.0, "flaky": [], "passRateInterval": {"low": 0.3}}
    assert [metric.metric for metric in compare(before, now).metrics] == ["passRate[m]"]


def test_the_section_holds_a_record_for_each_target():
    before, now = document(*outcomes("m", "-" * 8)), document(*outcomes("m", "+" * 8))
    section = comparison_section(compare(before, now), before, "base.json")
    (found,) = section["statistics"]
    assert (found["reference"], found["target"], found["metrics"][0]["verdict"]) == ("m", "m", "better")
