"""What the reports say of the tools that targets were given: how many there were, and where tasks were lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from pytest_tooleval.measures.lost import STAGES, count_lost
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.text import printable
from pytest_tooleval.measures.tool_sets import BrokerTotals, ToolSetTotals, tool_set_totals
from pytest_tooleval.reports.cost_summary import costs_of, tokens_text
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import share_text
from pytest_tooleval.reports.wide_table import WideTable

Series: TypeAlias = tuple[str, str]
"""A model, and the way on which it reaches tools."""

_NAMES = {"direct": "", "broker": "+broker"}


def tool_set_fields(result: SuiteResult, target: str) -> dict[str, Any]:
    """Return the fields on tools and lost tasks of a target's record in the result file."""
    totals = _totals(result).get(target)
    return {
        "toolSet": None if totals is None else _tool_set(totals),
        "brokerCalls": None if totals is None or totals.broker is None else asdict(totals.broker),
        "lostAt": count_lost(_of_target(result, target)),
    }


def lost_blocks(result: SuiteResult) -> Iterator[Table | Text]:
    """Yield at which stages tasks were lost, where any was at a known one; of several targets a table."""
    lost = {target: count_lost(_of_target(result, target)) or {} for target in result.targets}
    stages = [stage for stage in STAGES if any(counts.get(stage) for counts in lost.values())]
    if not stages:
        return
    if len(lost) == 1:
        for target, counts in lost.items():
            told = ", ".join(f"{stage} {counts[stage]:,}" for stage in stages)
            yield Text(printable(f"{target}: lost at {told}"))
        return
    yield Text()
    table = WideTable(["lost at"], list(map(printable, lost)))
    for stage in stages:
        table.add_cells(stage, *(f"{counts[stage]:,}" if stage in counts else "-" for counts in lost.values()))
    yield table


def broker_lines(result: SuiteResult) -> Iterator[str]:
    """Yield a line for each target whose broker was asked anything beside calls of tools."""
    for target, totals in _totals(result).items():
        asked = totals.broker
        if asked is not None and asked != BrokerTotals(0, 0, 0):
            yield printable(
                f"{target} asked the broker: {_times(asked.finds, 'find')}, {_times(asked.describes, 'describe')}, "
                f"{_times(asked.errors, 'error')}"
            )


def broker_rows(result: SuiteResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield rows for the table of targets side by side: a name, and a text for each target in their order."""
    totals = _totals(result)
    asked = [totals[target].broker if target in totals else None for target in result.targets]
    if any(asked):
        yield "finds", tuple("-" if each is None else f"{each.finds:,}" for each in asked)
        yield "describes", tuple("-" if each is None else f"{each.describes:,}" for each in asked)
        yield "broker errors", tuple("-" if each is None else f"{each.errors:,}" for each in asked)


def size_blocks(result: SuiteResult) -> Iterator[Table | Text]:
    """Yield a table of what comes of more tools, where targets had different numbers of distractors."""
    totals = _totals(result)
    counts = sorted({each.distractors for each in totals.values()})
    if len(counts) < 2:
        return
    yield Text()
    yield _size_table(result, totals, counts)


def _size_table(result: SuiteResult, totals: Mapping[str, ToolSetTotals], counts: list[int]) -> Table:
    by_series: dict[Series, dict[int, str]] = {}
    for target, each in totals.items():
        by_series.setdefault((each.model, each.way), {})[each.distractors] = target
    names = [printable(f"{model}{_NAMES[way]}") for model, way in by_series]
    table = WideTable(["metric", "distractors", "tools"], names)
    for metric, text_of in _metrics(result).items():
        for count in counts:
            targets = [series.get(count) for series in by_series.values()]
            values = ["-" if target is None else text_of(target) for target in targets]
            sizes = _sizes([totals[target] for target in targets if target is not None])
            table.add_cells(metric if count == counts[0] else "", f"{count:,}", sizes, *values)
    return table


def _metrics(result: SuiteResult) -> dict[str, Callable[[str], str]]:
    """Return the metrics of which something is known, each with what gives its text for a target."""
    totals = result.totals()
    tokens = {target: costs_of(result, target).tokens_per_solved for target in result.targets}
    found: dict[str, Callable[[str], str]] = {}
    if any(each.accuracy is not None for each in totals.values()):
        found["accuracy"] = lambda target: share_text(totals[target].accuracy)
    found["pass rate"] = lambda target: share_text(totals[target].pass_rate)
    if any(each is not None for each in tokens.values()):
        found["tokens per solved"] = lambda target: tokens_text(tokens[target])
    return found


def _of_target(result: SuiteResult, target: str) -> list[Measurement]:
    return [measurement for measurement in result.of_family("tool_use") if measurement.target == target]


def _totals(result: SuiteResult) -> dict[str, ToolSetTotals]:
    found = {target: tool_set_totals(_of_target(result, target)) for target in result.targets}
    return {target: totals for target, totals in found.items() if totals is not None}


def _tool_set(totals: ToolSetTotals) -> dict[str, Any]:
    return {
        "model": totals.model,
        "tools": totals.way,
        "distractors": totals.distractors,
        "leastSize": totals.least,
        "mostSize": totals.most,
    }


def _sizes(found: list[ToolSetTotals]) -> str:
    least = min((each.least for each in found if each.least is not None), default=None)
    most = max((each.most for each in found if each.most is not None), default=None)
    if least is None or most is None:
        return "-"
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _times(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
