"""The gold families' sections of the result file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_tooleval.measures.gold import GOLD_METRICS, Metrics, discovery_metrics
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.hygiene import hygiene_findings
from pytest_tooleval.reports.suite_result import SuiteResult

CaseRecord = Callable[[Measurement], dict[str, Any]]


def gold_sections(result: SuiteResult, case_record: CaseRecord) -> dict[str, Any]:
    """Return the sections of the gold families that ran.

    Args:
        result: the run.
        case_record: gives a case's record.

    """
    sections: dict[str, Any] = {}
    discovery = result.of_family("discovery")
    if discovery:
        sections["discovery"] = _discovery(discovery, case_record)
    for family, more in (("invocation", _no_more), ("ergonomics", _ergonomics_findings)):
        rows = result.of_family(family)
        if rows:
            overall = _numbers(rows, GOLD_METRICS[family])
            sections[family] = {"overall": overall, "cases": [case_record(row) for row in rows], **more(rows)}
    for family, key in (("tokens", "tokenEconomy"), ("performance", "performance"), ("cache", "cache")):
        rows = [row for row in result.of_family(family) if row.measured]
        if rows:
            sections[key] = _workload(rows)
    if discovery:
        sections["hygiene"] = hygiene_findings(discovery)
    return sections


def _discovery(rows: Sequence[Measurement], case_record: CaseRecord) -> dict[str, Any]:
    targets = list(dict.fromkeys(row.target for row in rows))
    first = _scores([row for row in rows if row.target == targets[0]])
    section = {**first, "cases": [case_record(row) for row in rows]}
    if len(targets) > 1:
        section["byTarget"] = {name: _scores([row for row in rows if row.target == name]) for name in targets}
    return section


def _scores(rows: Sequence[Measurement]) -> dict[str, Any]:
    categories = sorted({category for row in rows for category in row.tags})
    by_category = {
        name: _numbers([row for row in rows if name in row.tags], discovery_metrics) for name in categories
    }
    return {"overall": _numbers(rows, discovery_metrics), "byCategory": by_category}


def _numbers(rows: Sequence[Measurement], metrics: Callable[[Sequence[Measurement]], Metrics]) -> dict[str, Any]:
    return {"n": len(rows), "measured": sum(row.measured for row in rows), **metrics(rows)}


def _no_more(_: Sequence[Measurement]) -> dict[str, Any]:
    return {}


def _ergonomics_findings(rows: Sequence[Measurement]) -> dict[str, Any]:
    measured = [row for row in rows if row.measured]
    return {
        "nonInstructional": [row.id for row in measured if row.record["instructive"] is False],
        "budgetExceeded": [row.id for row in measured if row.record["withinBudget"] is False],
        "parityMismatches": [row.id for row in measured if row.record["parity"] is False],
    }


def _workload(rows: Sequence[Measurement]) -> dict[str, Any]:
    """Return the record of the only corpus, or of each corpus by its folder."""
    records = {row.corpus: dict(_fields(row.record)) for row in rows}
    return records[rows[0].corpus] if len(records) == 1 else {"byCorpus": records}


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in record.items() if key != "pass")
