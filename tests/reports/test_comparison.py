"""A run against a baseline, on documents written by hand."""

from __future__ import annotations

import copy

import pytest

from pytest_tooleval.gates.evaluate import Regressed
from pytest_tooleval.reports.comparison import (
    CaseKey,
    MetricChange,
    compare,
    comparison_section,
    regressed_by_corpus,
)
from pytest_tooleval.reports.comparison_summary import MOST_CASES, comparison_blocks
from pytest_tooleval.reports.tables import rendered


def case(case_id: str, verdict: str = "passed", *, target: str = "m", trial: int = 1, **fields):
    return {
        "id": case_id,
        "target": target,
        "trial": trial,
        "corpus": "evals",
        "file": "evals/fixtures/a.json",
        "verdict": verdict,
        "reason": "" if verdict == "passed" else f"{case_id} is {verdict}",
        **fields,
    }


def tool_use(*cases, verdict: str = "pass", **sections):
    measured = {record["target"]: {"passRate": 0.5} for record in cases}
    return {
        "schema": "tooleval/v1",
        "generatedAt": "2026-01-02T03:04:05+00:00",
        "provenance": {"gitCommit": "abc"},
        "toolUse": {"byTarget": measured, "cases": list(cases)},
        "gates": [],
        "verdict": verdict,
        **sections,
    }


def discovery(*cases, **overall):
    document = tool_use()
    del document["toolUse"]
    section = {"overall": overall, "byCategory": {"lexical": dict(overall)}, "cases": list(cases)}
    return {**document, "discovery": section}


def kinds(comparison):
    return {change.case.id: (change.kind, change.changes) for change in comparison.cases}


@pytest.mark.parametrize(
    ("before", "now", "kind", "changes"),
    [
        ("passed", "passed", "same", ()),
        ("passed", "missed", "regression", ("passed -> missed",)),
        ("missed", "passed", "better", ("missed -> passed",)),
        ("missed", "missed", "same", ()),
        ("passed", "error", "unmeasured", ("passed -> error",)),
        ("missed", "skipped", "unmeasured", ("missed -> skipped",)),
        ("error", "missed", "newly measured", ("error -> missed",)),
        ("skipped", "passed", "newly measured", ("skipped -> passed",)),
        ("skipped", "error", "same", ()),
    ],
)
def test_what_becomes_of_a_verdict(before, now, kind, changes):
    comparison = compare(tool_use(case("a", before)), tool_use(case("a", now)))
    assert kinds(comparison) == {"a": (kind, changes)}


@pytest.mark.parametrize(
    ("before", "now", "kind", "changes"),
    [
        ({"accuracy": 1.0}, {"accuracy": 0.0}, "worse", ("accuracy 1 -> 0",)),
        ({"accuracy": 0.0}, {"accuracy": 1.0}, "better", ("accuracy 0 -> 1",)),
        ({"accuracy": None}, {"accuracy": 1.0}, "same", ()),
        ({"redundant": 0, "errors": 2}, {"redundant": 3, "errors": 2}, "worse", ("redundant 0 -> 3",)),
        (
            {"redundant": 1, "errors": 0},
            {"redundant": 0, "errors": 1},
            "worse",
            ("errors 0 -> 1", "redundant 1 -> 0"),
        ),
        ({"tokens": 10, "calls": 2}, {"tokens": 99, "calls": 9}, "same", ()),
        ({"parity": True}, {"parity": False}, "worse", ("parity yes -> no",)),
        ({"parity": None}, {"parity": False}, "same", ()),
    ],
)
def test_fields_of_which_more_or_less_is_better(before, now, kind, changes):
    comparison = compare(tool_use(case("a", **before)), tool_use(case("a", **now)))
    assert kinds(comparison) == {"a": (kind, changes)}


@pytest.mark.parametrize(
    ("before", "now", "kind", "changes"),
    [
        (1, 4, "worse", ("rank 1 -> 4",)),
        (4, 1, "better", ("rank 4 -> 1",)),
        (1, None, "worse", ("rank 1 -> none",)),
        (None, 7, "better", ("rank none -> 7",)),
        (None, None, "same", ()),
        (2, 2, "same", ()),
    ],
)
def test_a_rank_is_better_the_smaller_it_is_and_worst_when_there_is_none(before, now, kind, changes):
    comparison = compare(discovery(case("a", rank=before)), discovery(case("a", rank=now)))
    assert kinds(comparison) == {"a": (kind, changes)}


def test_what_has_no_better_is_told_beside_what_has():
    before = discovery(case("a", rank=1, decision="use"), case("b", rank=1, decision="use"))
    now = discovery(case("a", "missed", rank=3, decision="ambiguous"), case("b", rank=1, decision="ambiguous"))
    assert kinds(compare(before, now)) == {
        "a": ("regression", ("passed -> missed", "rank 1 -> 3", "decision use -> ambiguous")),
        "b": ("same", ()),
    }


def test_cases_are_the_same_by_family_file_id_target_and_trial():
    before = tool_use(case("a"), case("a", target="n"), case("a", trial=2), case("b"))
    moved = {**case("b"), "file": "evals/fixtures/b.json"}
    now = tool_use(case("a", "missed"), case("a", trial=3), moved)
    comparison = compare(before, now)
    file = "evals/fixtures/a.json"
    assert [change.case for change in comparison.regressions] == [CaseKey("tool_use", file, "a", "m", 1)]
    assert comparison.added == (
        CaseKey("tool_use", file, "a", "m", 3),
        CaseKey("tool_use", "evals/fixtures/b.json", "b", "m", 1),
    )
    assert comparison.vanished == (
        CaseKey("tool_use", file, "a", "n", 1),
        CaseKey("tool_use", file, "a", "m", 2),
        CaseKey("tool_use", file, "b", "m", 1),
    )


@pytest.mark.parametrize("there", ["/venv/a/bundled/x.json", "C:\\venv\\bundled\\x.json"])
def test_a_file_outside_the_root_folder_is_the_same_on_every_machine(there):
    here = {**case("x", "missed"), "file": "/home/me/lib/bundled/x.json"}
    comparison = compare(tool_use({**case("x"), "file": there}), tool_use(here))
    assert [str(change.case) for change in comparison.regressions] == ["x.json::x [m]"]


def test_metrics_change_by_target():
    before = discovery(case("a", target="lexical", rank=1), top1=0.5, mrr=None, wrongServerRate=0.1)
    now = discovery(case("a", target="lexical", rank=1), top1=0.75, mrr=0.5, wrongServerRate=0.1 + 1e-15)
    found = compare(before, now).metrics
    assert [(metric.section, metric.metric, metric.change, metric.differs) for metric in found] == [
        ("discovery", "overall.top1[lexical]", 0.25, True),
        ("discovery", "overall.mrr[lexical]", None, True),
        ("discovery", "overall.wrongServerRate[lexical]", 0.0, False),
        ("discovery", "lexical.top1[lexical]", 0.25, True),
        ("discovery", "lexical.mrr[lexical]", None, True),
        ("discovery", "lexical.wrongServerRate[lexical]", 0.0, False),
    ]


def test_the_scores_of_another_first_engine_are_not_taken_for_those_of_the_same():
    before = discovery(case("a", target="lexical", rank=1), top1=0.5)
    both = {name: {"overall": {"top1": top1}, "byCategory": {}} for name, top1 in (("new", 0.9), ("lexical", 0.5))}
    now = discovery(case("a", target="new", rank=1), case("a", target="lexical", rank=1), top1=0.9)
    now["discovery"]["byTarget"] = both
    comparison = compare(before, now)
    assert comparison.metrics == (MetricChange("discovery", "overall.top1[lexical]", 0.5, 0.5),)
    assert "discovery was measured on lexical and is now on lexical, new" in comparison.notes


def test_metrics_of_workloads_are_found_whatever_their_depth():
    def economy(ratio, seconds):
        return {
            "tokenEconomy": {"estimator": "chars/4", "startupReductionRatio": ratio},
            "performance": {"byCorpus": {"evals": {"lexical": {"p50Micros": seconds}}}},
        }

    found = compare(tool_use(**economy(0.5, 100.0)), tool_use(**economy(0.75, 50.0))).metrics
    assert [(metric.section, metric.metric, metric.before, metric.now, metric.change) for metric in found] == [
        ("tokenEconomy", "startupReductionRatio", 0.5, 0.75, 0.25),
        ("performance", "byCorpus.evals.lexical.p50Micros", 100.0, 50.0, -50.0),
    ]


def test_notes_say_what_cannot_be_compared():
    before = tool_use(case("a", target="old"), verdict="fail", cache={"servedFromCache": 1})
    before["provenance"] |= {"tokenEstimator": "chars/4", "semanticRan": False, "host": "there"}
    now = tool_use(case("a", target="new"))
    now["provenance"] |= {"tokenEstimator": "o200k", "semanticRan": True, "host": "here"}
    assert compare(before, now).notes == (
        "the baseline's own verdict is fail",
        "only the baseline has cache",
        "tool_use was measured on old and is now on new",
        "no case stands in both: nothing is compared case by case",
        "semanticRan was no and is yes",
        "tokenEstimator was chars/4 and is o200k",
    )


def test_a_run_compared_with_itself_has_nothing_to_tell():
    document = discovery(case("a", rank=1), case("b", "missed", rank=None), top1=0.5)
    comparison = compare(document, copy.deepcopy(document))
    assert (comparison.notes, comparison.added, comparison.vanished) == ((), (), ())
    assert {change.kind for change in comparison.cases} == {"same"}
    assert not any(metric.differs for metric in comparison.metrics)
    assert text_of(comparison) == "2 cases in both: 0 regressions, 0 worse, 0 better, 2 the same\n"


def test_the_section_of_the_result_file():
    before = tool_use(case("a"), case("b", "missed"), case("gone"))
    now = tool_use(case("a", "missed", accuracy=0.0), case("b"), case("new"))
    key = {"family": "tool_use", "file": "evals/fixtures/a.json", "target": "m", "trial": 1}
    section = comparison_section(compare(before, now), before, "base.json")
    assert [pair["target"] for pair in section.pop("statistics")] == ["m"]
    assert section == {
        "baseline": {"file": "base.json", "generatedAt": "2026-01-02T03:04:05+00:00", "gitCommit": "abc"},
        "compared": 2,
        "same": 0,
        "regressions": [{**key, "id": "a", "changes": ["passed -> missed"], "reason": "a is missed"}],
        "worse": [],
        "better": [{**key, "id": "b", "changes": ["missed -> passed"], "reason": ""}],
        "unmeasured": [],
        "newlyMeasured": [],
        "added": [{**key, "id": "new"}],
        "vanished": [{**key, "id": "gone"}],
        "metrics": [{"section": "toolUse", "metric": "passRate[m]", "baseline": 0.5, "actual": 0.5, "change": 0.0}],
        "notes": ["not every case stands in both: their metrics are over different cases"],
    }


def test_regressions_are_counted_by_corpus():
    other = {**case("o", "missed"), "corpus": "evals/sub"}
    before = tool_use(case("a"), case("b"), {**other, "verdict": "passed"})
    comparison = compare(before, tool_use(case("a", "missed"), case("b"), other, case("new", "missed")))
    assert regressed_by_corpus(comparison) == {"evals": Regressed(2, ("a",)), "evals/sub": Regressed(1, ("o",))}


def text_of(comparison, width: int = 80) -> str:
    return rendered(comparison_blocks(comparison), width, color=False)


def test_the_summary_names_regressions_first_and_every_case_of_one_run_only():
    before = discovery(
        *(case(name, target="lexical", rank=1) for name in ("late", "same", "gone")),
        case("fixed", "missed", target="lexical", rank=None),
        top1=0.75,
    )
    now = discovery(
        case("fixed", target="lexical", rank=1),
        case("same", target="lexical", rank=1),
        case("late", "missed", target="lexical", rank=2),
        case("new", target="lexical", rank=1),
        top1=0.5,
    )
    assert text_of(compare(before, now)) == (
        "3 cases in both: 1 regression, 0 worse, 1 better, 1 the same\n"
        "regression: evals/fixtures/a.json::late [lexical]: passed -> missed, rank 1 -> 2: late is missed\n"
        "better: evals/fixtures/a.json::fixed [lexical]: missed -> passed, rank none -> 1\n"
        "only in this run: 1 case: evals/fixtures/a.json::new [lexical]\n"
        "only in the baseline: 1 case: evals/fixtures/a.json::gone [lexical]\n"
        "note: not every case stands in both: their metrics are over different cases\n"
        "\n"
        "metric                          baseline now change\n"
        "discovery.overall.top1[lexical]     0.75 0.5  -0.25\n"
        "discovery.lexical.top1[lexical]     0.75 0.5  -0.25\n"
        "lexical against the baseline: top-1 +0.00 (95 % CI -0.64 to +0.64, p 1.00), 3 of 5 cases, "
        "no difference shown; so few cases can show none\n"
    )


def test_the_summary_is_bounded():
    many = [f"c{number:03}" for number in range(MOST_CASES + 5)]
    before = tool_use(*(case(name) for name in many), *(case(f"old-{name}") for name in many))
    lines = text_of(compare(before, tool_use(*(case(name, "missed") for name in many)))).splitlines()
    assert sum(line.startswith("regression: evals/") for line in lines) == MOST_CASES
    assert "regression: and 5 more" in lines
    (gone,) = (line for line in lines if line.startswith("only in the baseline: 25 cases: "))
    assert gone.endswith(", and 5 more")


def test_times_stay_out_of_the_summary():
    def timed(seconds):
        document = tool_use(case("a"), performance={"lexical": {"p50Micros": seconds}})
        document["toolUse"]["byTarget"]["m"]["latencySeconds"] = seconds
        return document

    comparison = compare(timed(1.0), timed(2.0))
    assert [metric.change for metric in comparison.metrics if metric.differs] == [1.0, 1.0]
    assert "metric" not in text_of(comparison)


def test_text_of_others_is_shown_as_it_is():
    evil = "a\x1b[31m[red]"
    shown = text_of(compare(tool_use(case(evil)), tool_use(case(evil, "missed"))))
    assert "\x1b" not in shown
    assert "a\\x1b[31m[red]" in shown
