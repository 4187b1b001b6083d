from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.gold import DiscoveryRow, ErgonomicsCase, InvocationScenario, TokensWorkload
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.gold_failure import gold_failure_text
from pytest_tooleval.reports.gold_sections import gold_sections
from pytest_tooleval.reports.gold_summary import gold_blocks, gold_notes
from pytest_tooleval.reports.hygiene import hygiene_findings
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import rendered
from pytest_tooleval.reports.terminal import terminal_summary

SOURCE = Source(Path("f"))
ISSUE = "words alone find it"


def row(
    row_id: str,
    category: str = "lexical",
    verdict: str = "passed",
    *,
    target: str = "lexical",
    corpus: str = "evals",
    rank: int | None = 1,
    **fields: object,
) -> Measurement:
    record = {
        "intent": f"do {row_id}",
        "category": category,
        "acceptable": ["s.t"],
        "pass": verdict == "passed",
        "rank": rank,
        "decision": "use",
        "wrongServer": None,
        **fields,
    }
    return Measurement(
        family="discovery",
        nodeid=f"{corpus}/r.jsonl::{row_id}[{target}]",
        corpus=corpus,
        file=f"{corpus}/r.jsonl",
        index=0,
        id=row_id,
        target=target,
        tags=(category,),
        verdict=verdict,
        record=record if verdict in {"passed", "missed"} else {},
    )


def other(
    family: str, row_id: str = "n", verdict: str = "passed", corpus: str = "evals", **record: object
) -> Measurement:
    return Measurement(family, f"x::{row_id}", corpus, "f", 0, row_id, "broker", verdict=verdict, record=record)


SCENARIO = {
    "validArguments": True,
    "firstCallOk": True,
    "repaired": None,
    "schemaErrorSurfaced": None,
    "offlineHandled": None,
    "clearErrors": [],
}
ERGONOMICS = {
    "decisionKnown": True,
    "instructive": True,
    "errorDisposed": None,
    "withinBudget": True,
    "parity": True,
}
TOKENS = {
    "pass": True,
    "estimator": "chars/4",
    "directStartupTokens": 12_345,
    "brokerStartupTokens": 678,
    "startupReductionRatio": 0.945,
    "directTokensToSuccess": 12_400,
    "brokerTokensToSuccess": 1234,
    "largestPayloadTokens": 300,
    "brokerCalls": 3,
}
CACHE = {
    "pass": True,
    "estimator": "chars/4",
    "operations": 8,
    "cacheableOps": 6,
    "servedFromCache": 3,
    "delegatedOps": 5,
    "redundantCallReduction": 0.5,
    "workloadResponseTokens": 1000,
    "executedResponseTokens": 600,
    "tokensAvoided": 400,
}
TIMING = {"n": 3, "p50Micros": 12.4, "p95Micros": 1234.6, "opsPerSec": 10.0}
PERFORMANCE = {"pass": True, "lexical": TIMING, "fusion": TIMING, "endToEnd": TIMING}


def result(*measurements: Measurement) -> SuiteResult:
    return SuiteResult(measurements, selected=len(measurements))


def printed(*measurements: Measurement, width: int = 120) -> list[str]:
    return rendered(gold_blocks(result(*measurements)), width, color=False).splitlines()


def sections(*measurements: Measurement) -> dict:
    return gold_sections(result(*measurements), lambda each: {"id": each.id})


def cells(line: str) -> list[str]:
    return line.split()


def test_the_discovery_table():
    lines = printed(
        row("a"),
        row("b", verdict="missed", rank=2),
        row("c", "no_match", rank=None, decision="no_good_match"),
        row("d", "wrong_server", "missed", rank=None, wrongServer=True),
    )
    assert [cells(line) for line in lines if line] == [
        ["discovery", "rows", "top-1", "top-3", "MRR", "wrong", "server", "no", "match", "refused"],
        ["lexical", "2", "0.500", "1.000", "0.750", "-", "-", "0.000"],
        ["no_match", "1", "-", "-", "-", "-", "1.000", "-"],
        ["wrong_server", "1", "0.000", "0.000", "0.000", "1.000", "-", "0.000"],
        ["overall", "4", "0.333", "0.667", "0.500", "1.000", "1.000", "0.000"],
    ]


def test_the_discovery_table_of_several_engines():
    lines = printed(row("a"), row("a", target="m:rank", rank=4, verdict="missed"))
    assert [cells(line)[:4] for line in lines if line] == [
        ["discovery", "engine", "rows", "top-1"],
        ["lexical", "lexical", "1", "1.000"],
        ["lexical", "m:rank", "1", "0.000"],
        ["overall", "lexical", "1", "1.000"],
        ["overall", "m:rank", "1", "0.000"],
    ]


UNMEASURED = [
    row("a", verdict="error"),
    row("b", "semantic", verdict="skipped"),
    other("invocation", verdict="error"),
    other("ergonomics", verdict="skipped"),
    other("tokens", verdict="error"),
    other("cache", verdict="error"),
    other("performance", verdict="skipped"),
]


def test_what_was_not_measured_breaks_no_table():
    lines = printed(*UNMEASURED)
    numbers = ["-"] * 6
    assert [cells(line) for line in lines if line][1:4] == [
        ["lexical", "0", "of", "1", *numbers],
        ["semantic", "0", "of", "1", *numbers],
        ["overall", "0", "of", "2", *numbers],
    ]
    assert [cells(line) for line in lines if "." in line] == [
        ["invocation.validArgumentRate", "-"],
        ["invocation.firstCallSuccess", "-"],
        ["invocation.repairSuccess", "-"],
        ["invocation.schemaErrorRate", "-"],
        ["invocation.offlineHandledRate", "-"],
        ["invocation.errorClarity", "-"],
        ["ergonomics.decisionRate", "-"],
        ["ergonomics.instructionRate", "-"],
        ["ergonomics.errorDispositionRate", "-"],
        ["ergonomics.withinBudgetRate", "-"],
        ["ergonomics.parityRate", "-"],
    ]
    assert list(gold_notes(result(*UNMEASURED))) == []
    assert "nothing measured: 4 error: ; 3 skipped:" in terminal_summary(result(*UNMEASURED), 80, color=False)


def test_what_was_not_measured_breaks_no_section():
    found = sections(*UNMEASURED)
    assert sorted(found) == ["discovery", "ergonomics", "hygiene", "invocation"]
    assert found["discovery"]["overall"] == {
        "n": 2,
        "measured": 0,
        "top1": None,
        "top3": None,
        "mrr": None,
        "wrongServerRate": None,
        "noMatchCorrectness": None,
        "falseRefusalRate": None,
    }
    assert sorted(found["discovery"]["byCategory"]) == ["lexical", "semantic"]
    assert found["discovery"]["cases"] == [{"id": "a"}, {"id": "b"}]
    assert (found["invocation"]["overall"]["n"], found["invocation"]["overall"]["measured"]) == (1, 0)
    assert found["ergonomics"]["parityMismatches"] == []
    assert found["hygiene"] == []


def test_an_errored_row_stands_beside_measured_ones():
    lines = printed(row("a"), row("b", verdict="error"))
    assert cells(lines[2])[:5] == ["lexical", "1", "of", "2", "1.000"]
    assert sections(row("a"), row("b", verdict="error"))["discovery"]["overall"]["top1"] == 1.0


def test_families_that_did_not_run_are_absent():
    assert sections() == {}
    assert printed() == []
    assert list(sections(other("cache", **CACHE))) == ["cache"]


def test_the_rates_of_a_broker():
    lines = printed(
        other("invocation", **SCENARIO),
        other("invocation", "b", "missed", **{**SCENARIO, "firstCallOk": False, "clearErrors": [True, False]}),
    )
    assert [cells(line) for line in lines if line] == [
        ["rate", "value"],
        ["invocation.validArgumentRate", "1.00"],
        ["invocation.firstCallSuccess", "0.50"],
        ["invocation.repairSuccess", "-"],
        ["invocation.schemaErrorRate", "-"],
        ["invocation.offlineHandledRate", "-"],
        ["invocation.errorClarity", "0.50"],
    ]


def test_the_lines_of_workloads():
    failed = {**TOKENS, "directTokensToSuccess": None, "brokerTokensToSuccess": None, "startupReductionRatio": None}
    assert printed(
        other("tokens", **TOKENS),
        other("tokens", corpus="evals/sub", **failed),
        other("cache", **CACHE),
        other("cache", corpus="evals/sub", **{**CACHE, "cacheableOps": 0, "redundantCallReduction": None}),
        other("performance", **PERFORMANCE),
        width=200,
    ) == [
        "tokens (evals): startup 12,345 direct, 678 brokered (reduction 0.94); to success 12,400 and 1,234; chars/4",
        "tokens (evals/sub): startup 12,345 direct, 678 brokered (reduction -); no success to count to; chars/4",
        "cache (evals): 3 of 6 cacheable operations served (0.50); 400 tokens avoided",
        "cache (evals/sub): 3 of 0 cacheable operations served (-); 400 tokens avoided",
        "performance (evals): lexical p50 12 µs p95 1,235 µs, fusion p50 12 µs p95 1,235 µs, "
        "endToEnd p50 12 µs p95 1,235 µs",
    ]


def test_the_discovery_section():
    found = sections(row("a"), row("b", "no_match", "missed", rank=None))["discovery"]
    assert found["overall"]["n"] == 2
    assert (found["overall"]["top1"], found["overall"]["noMatchCorrectness"]) == (1.0, 0.0)
    assert list(found["byCategory"]) == ["lexical", "no_match"]
    assert found["byCategory"]["no_match"]["top1"] is None
    assert "byTarget" not in found


def test_the_discovery_section_of_several_engines_begins_with_the_first():
    found = sections(row("a", target="z"), row("a", target="b", rank=2, verdict="missed"))["discovery"]
    assert found["overall"]["top1"] == 1.0
    assert list(found["byTarget"]) == ["z", "b"]
    assert (found["byTarget"]["z"]["overall"]["top1"], found["byTarget"]["b"]["overall"]["top1"]) == (1.0, 0.0)
    assert found["byTarget"]["b"]["byCategory"]["lexical"]["mrr"] == 0.5
    assert len(found["cases"]) == 2


def test_the_ergonomics_section_names_what_was_found():
    found = sections(
        other("ergonomics", "ok", **ERGONOMICS),
        other("ergonomics", "vague", "missed", **{**ERGONOMICS, "instructive": False}),
        other("ergonomics", "fat", "missed", **{**ERGONOMICS, "withinBudget": False, "parity": False}),
        other("ergonomics", "none", "error"),
    )["ergonomics"]
    assert found["overall"]["decisionRate"] == 1.0
    assert (found["nonInstructional"], found["budgetExceeded"], found["parityMismatches"]) == (
        ["vague"],
        ["fat"],
        ["fat"],
    )


def test_workload_sections_of_one_corpus_and_of_several():
    one = sections(other("tokens", **TOKENS), other("cache", **CACHE), other("performance", **PERFORMANCE))
    assert one["tokenEconomy"] == {key: value for key, value in TOKENS.items() if key != "pass"}
    assert one["cache"]["tokensAvoided"] == 400
    assert one["performance"] == {"lexical": TIMING, "fusion": TIMING, "endToEnd": TIMING}
    two = sections(other("tokens", **TOKENS), other("tokens", corpus="evals/sub", **TOKENS))
    assert list(two["tokenEconomy"]["byCorpus"]) == ["evals", "evals/sub"]


def test_a_hygiene_finding_is_told_once_whatever_was_run():
    rows = [
        row("a", "semantic", hygiene=ISSUE),
        row("a", "semantic", target="m:rank", hygiene=ISSUE),
        row("a", "semantic", corpus="evals/sub", hygiene=ISSUE),
        row("b", "semantic"),
        row("c", "semantic", "error"),
    ]
    finding = {"intent": "do a", "category": "semantic", "issue": ISSUE}
    assert hygiene_findings(rows) == [finding, finding]
    assert sections(*rows)["hygiene"] == [finding, finding]
    assert list(gold_notes(result(*rows))) == [f"hygiene: semantic row 'do a': {ISSUE}"] * 2


def test_notes_of_engines_are_told_and_cut():
    rows = [row(f"r{n}", notes=["left out 'x'"]) for n in range(25)]
    told = list(gold_notes(result(*rows)))
    assert told[0] == "note: r0 [lexical]: left out 'x'"
    assert told[19:] == [
        "note: r19 [lexical]: left out 'x'",
        "note: and 5 more; --tooleval-json FILE holds them all",
    ]
    summary = terminal_summary(result(*rows), 100, color=False)
    assert summary.count("left out 'x'") == 20


def test_many_hygiene_findings_are_cut():
    rows = [row(f"r{n}", "semantic", hygiene=ISSUE) for n in range(21)]
    assert list(gold_notes(result(*rows)))[20] == "hygiene: and 1 more; --tooleval-json FILE holds them all"


DISCOVERY_RECORD = {"decision": "use", "top": ["s.u", "s.v"], "rank": 4}
FIND = ErgonomicsCase("n", "find", "Because.", SOURCE, query="do it")


def discovery_row(
    category: str = "lexical", acceptable: tuple[str, ...] = ("s.t",), k: int = 1, intent: str = "do it"
):
    return DiscoveryRow("r", intent, category, acceptable, "Because.", SOURCE, k)


@pytest.mark.parametrize(
    ("case", "record", "text"),
    [
        (
            discovery_row(),
            DISCOVERY_RECORD,
            "expected s.t first; got use: s.u, s.v\n\nintent: do it\ncategory: lexical\n"
            "first acceptable tool: rank 4\nwhy it is labelled so: Because.",
        ),
        (
            discovery_row(acceptable=("s.t", "s.w"), k=3),
            {"decision": "no_good_match", "top": [], "rank": None, "notes": ["a note"]},
            "expected s.t or s.w in the first 3; got no_good_match: nothing\n\nintent: do it\ncategory: lexical\n"
            "first acceptable tool: not found\nwhy it is labelled so: Because.\nnote: a note",
        ),
        (
            discovery_row("no_match", ()),
            {"decision": "use", "top": ["s.u"], "rank": None},
            "expected a refusal; got use: s.u\n\nintent: do it\ncategory: no_match\nwhy it is labelled so: Because.",
        ),
        (
            discovery_row(intent="a\x1b[31m\u202eb"),
            DISCOVERY_RECORD,
            "expected s.t first; got use: s.u, s.v\n\nintent: a\\x1b[31m\\u202eb\ncategory: lexical\n"
            "first acceptable tool: rank 4\nwhy it is labelled so: Because.",
        ),
        (
            InvocationScenario("n", "s.t", {"a": "é"}, "success", "Because.", SOURCE),
            {"errorType": "CONFIG_ERROR", "message": "broken", "secondErrorType": None},
            'expected success; got CONFIG_ERROR\n\ncall: s.t({"a": "é"})\nmessage: broken\nwhy: Because.',
        ),
        (
            InvocationScenario(
                "n", "s.t", {}, "repair", "Because.", SOURCE, expected_error="X", corrected={"a": 1}
            ),
            {"errorType": "X", "message": "", "secondErrorType": "Y"},
            "expected X, then success with the corrected arguments; got X, then Y\n\ncall: s.t({})\nwhy: Because.",
        ),
        (
            InvocationScenario("n", "s.t", {}, "error", "Because.", SOURCE, expected_error="X"),
            {"errorType": None, "message": "", "secondErrorType": None},
            "expected X; got success\n\ncall: s.t({})\nwhy: Because.",
        ),
        (
            FIND,
            {**ERGONOMICS, "instructive": False, "parity": False, "decision": "use", "errorType": None, "bytes": 9},
            "expected a concrete next step; the same decision, tool and error type on both surfaces\n\nfind: do it\n"
            "answer: decision use, error None, 9 bytes\nwhy: Because.",
        ),
        (
            TokensWorkload("q", "s.t", {}, SOURCE),
            {"pass": False},
            'expected a measurement, got {"pass": false}',
        ),
    ],
)
def test_the_text_of_a_miss(case, record, text):
    assert gold_failure_text(case, record) == text


def test_the_first_line_of_a_miss_is_short_whatever_was_found():
    record = {**DISCOVERY_RECORD, "top": ["s." + "x" * 500] * 5}
    first = gold_failure_text(discovery_row(acceptable=("s." + "y" * 500,)), record).split("\n")[0]
    assert len(first) == 400
