"""What the terminal summary says of a comparison with a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from pytest_tooleval.measures.target_comparison import TargetComparison
from pytest_tooleval.measures.text import printable, shorten
from pytest_tooleval.reports.comparison import CaseChange, CaseKey, Comparison, Kind, MetricChange
from pytest_tooleval.reports.statistics_summary import difference_line
from pytest_tooleval.reports.tables import summary_table

MOST_CASES = 20
MOST_METRICS = 20
_REASON_CHARS = 160
_TIMES = ("latencySeconds",)
_KINDS: dict[Kind, str] = {
    "regression": "red",
    "worse": "yellow",
    "unmeasured": "yellow",
    "better": "green",
    "newly measured": "green",
}


def comparison_blocks(comparison: Comparison) -> Iterator[Table | Text]:
    """Yield what is printed: regressions first, then other cases, what to know of both, metrics, statistics."""
    yield Text(_headline(comparison))
    for kind, style in _KINDS.items():
        yield from (Text(printable(line), style=style) for line in _case_lines(comparison.of_kind(kind), kind))
    yield from (Text(printable(line)) for line in _one_sided_lines(comparison))
    yield from (Text(printable(f"note: {note}")) for note in comparison.notes)
    metrics = [metric for metric in comparison.metrics if metric.differs and not _is_time(metric)]
    if metrics:
        yield Text()
        yield _metric_table(metrics[:MOST_METRICS])
    if len(metrics) > MOST_METRICS:
        yield Text(f"({len(metrics) - MOST_METRICS} more metrics changed; --tooleval-json FILE holds all)")
    yield from (difference_line(pair, "the baseline") for pair in comparison.statistics if _is_told(pair))


def _is_told(pair: TargetComparison) -> bool:
    """Whether a target's statistics are news: chance has no part in scripts, nor in a search that is as it was."""
    return not pair.is_scripted and (pair.family == "tool_use" or pair.primary.discordant > 0)


def _headline(comparison: Comparison) -> str:
    counts = {kind: len(comparison.of_kind(kind)) for kind in _KINDS}
    regressions = counts.pop("regression")
    words = [f"{regressions} {'regression' if regressions == 1 else 'regressions'}"]
    words += [f"{number} {kind}" for kind, number in counts.items() if number or kind in {"worse", "better"}]
    words.append(f"{len(comparison.of_kind('same'))} the same")
    return f"{_cases(len(comparison.cases))} in both: {', '.join(words)}"


def _case_lines(changes: Sequence[CaseChange], kind: Kind) -> Iterator[str]:
    for change in changes[:MOST_CASES]:
        reason = f": {shorten(change.reason, _REASON_CHARS)}" if change.reason else ""
        yield f"{kind}: {change.case}: {', '.join(change.changes)}{reason}"
    if len(changes) > MOST_CASES:
        yield f"{kind}: and {len(changes) - MOST_CASES} more"


def _one_sided_lines(comparison: Comparison) -> Iterator[str]:
    for words, keys in (("only in this run", comparison.added), ("only in the baseline", comparison.vanished)):
        if keys:
            yield f"{words}: {_named(keys)}"


def _named(keys: Sequence[CaseKey]) -> str:
    more = f", and {len(keys) - MOST_CASES} more" if len(keys) > MOST_CASES else ""
    return f"{_cases(len(keys))}: {', '.join(map(str, keys[:MOST_CASES]))}{more}"


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"


def _is_time(metric: MetricChange) -> bool:
    """Whether a metric changes with every run and machine; the result file has it all the same."""
    return metric.section == "performance" or metric.metric.startswith(_TIMES)


def _metric_table(metrics: Sequence[MetricChange]) -> Table:
    table = summary_table("metric", "baseline", "now", "change", text=frozenset({"metric"}))
    for metric in metrics:
        change = "-" if metric.change is None else f"{metric.change:+,.4g}"
        name = printable(f"{metric.section}.{metric.metric}")
        table.add_row(name, _number(metric.before), _number(metric.now), change)
    return table


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
