"""What the terminal summary says of gold sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from pytest_tooleval.measures.gold import GOLD_METRICS, discovery_metrics
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.text import printable
from pytest_tooleval.reports.hygiene import hygiene_findings
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import share_text, summary_table

MOST_FINDINGS = 20
_DISCOVERY = {
    "top-1": "top1",
    "top-3": "top3",
    "MRR": "mrr",
    "wrong server": "wrongServerRate",
    "no match": "noMatchCorrectness",
    "refused": "falseRefusalRate",
}
_RATES = ("invocation", "ergonomics")


def gold_blocks(result: SuiteResult) -> Iterator[Table | Text]:
    """Yield what is printed of the gold families that ran."""
    rows = result.of_family("discovery")
    if rows:
        yield Text()
        yield _discovery_table(rows)
    rates = [(family, result.of_family(family)) for family in _RATES]
    if any(found for _, found in rates):
        yield Text()
        yield _rate_table(rates)
    for line in _workload_lines(result):
        yield Text(printable(line))


def _discovery_table(rows: Sequence[Measurement]) -> Table:
    several = len({row.target for row in rows}) > 1
    names = ["discovery", "engine"] if several else ["discovery"]
    table = summary_table(*names, "rows", *_DISCOVERY, text=frozenset(names))
    for category in sorted({category for row in rows for category in row.tags}):
        for target, found in _by_target([row for row in rows if category in row.tags]).items():
            table.add_row(*([category, printable(target)] if several else [category]), *_discovery_numbers(found))
    for target, found in _by_target(rows).items():
        name = ["overall", printable(target)] if several else ["overall"]
        table.add_row(*name, *_discovery_numbers(found), style="bold")
    return table


def _by_target(rows: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for row in rows:
        found.setdefault(row.target, []).append(row)
    return found


def _discovery_numbers(rows: Sequence[Measurement]) -> Iterator[str]:
    metrics = discovery_metrics(rows)
    measured = sum(row.measured for row in rows)
    yield str(len(rows)) if measured == len(rows) else f"{measured} of {len(rows)}"
    for name in _DISCOVERY.values():
        number = metrics[name]
        yield "-" if number is None else f"{number:.3f}"


def _rate_table(families: Sequence[tuple[str, Sequence[Measurement]]]) -> Table:
    table = summary_table("rate", "value", text=frozenset({"rate"}))
    for family, rows in families:
        if rows:
            for name, value in GOLD_METRICS[family](rows).items():
                table.add_row(f"{family}.{name}", share_text(value))
    return table


def _workload_lines(result: SuiteResult) -> Iterator[str]:
    for row in result.of_family("tokens"):
        if row.measured:
            yield f"tokens ({row.corpus}): {_tokens_line(row.record)}"
    for row in result.of_family("cache"):
        if row.measured:
            yield f"cache ({row.corpus}): {_cache_line(row.record)}"
    for row in result.of_family("performance"):
        if row.measured:
            yield f"performance ({row.corpus}): {_performance_line(row.record)}"


def _tokens_line(record: Mapping[str, Any]) -> str:
    ratio = share_text(record["startupReductionRatio"])
    startup = f"startup {record['directStartupTokens']:,} direct, {record['brokerStartupTokens']:,} brokered"
    both = (record["directTokensToSuccess"], record["brokerTokensToSuccess"])
    success = "no success to count to" if None in both else "to success {:,} and {:,}".format(*both)
    return f"{startup} (reduction {ratio}); {success}; {record['estimator']}"


def _cache_line(record: Mapping[str, Any]) -> str:
    served = f"{record['servedFromCache']} of {record['cacheableOps']} cacheable operations served"
    return f"{served} ({share_text(record['redundantCallReduction'])}); {record['tokensAvoided']:,} tokens avoided"


def _performance_line(record: Mapping[str, Any]) -> str:
    paths = ((name, timing) for name, timing in record.items() if isinstance(timing, Mapping))
    return ", ".join(f"{name} p50 {t['p50Micros']:,.0f} µs p95 {t['p95Micros']:,.0f} µs" for name, t in paths)


def gold_notes(result: SuiteResult) -> Iterator[str]:
    """Yield hygiene findings, and what engines did that their rankings do not show."""
    rows = result.of_family("discovery")
    findings = [
        f"hygiene: {finding['category']} row {finding['intent']!r}: {finding['issue']}"
        for finding in hygiene_findings(rows)
    ]
    yield from _first(findings, "hygiene")
    notes = [f"note: {row.id} [{row.target}]: {note}" for row in rows for note in row.record.get("notes", ())]
    yield from _first(notes, "note")


def _first(lines: Sequence[str], kind: str) -> Iterator[str]:
    yield from lines[:MOST_FINDINGS]
    if len(lines) > MOST_FINDINGS:
        yield f"{kind}: and {len(lines) - MOST_FINDINGS} more; --tooleval-json FILE holds them all"
