"""The terminal summary: a row for each case, the totals, the targets side by side, the gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from pytest_tooleval.gates.evaluate import GateResult, shown_apart
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.text import LINE_CHARS, bounded_lines, cut, printable
from pytest_tooleval.measures.tool_sets import is_scripted
from pytest_tooleval.measures.tool_use import ToolUseTotals, total
from pytest_tooleval.reports.confusion_summary import confusion_blocks
from pytest_tooleval.reports.cost_summary import cost_lines, cost_rows
from pytest_tooleval.reports.gold_summary import gold_blocks, gold_notes
from pytest_tooleval.reports.statistics_summary import discovery_statistics, tool_use_statistics
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.suite_statistics import suite_statistics
from pytest_tooleval.reports.tables import share_text, summary_console, summary_table, without_trailing_blanks
from pytest_tooleval.reports.tool_set_summary import broker_lines, broker_rows, lost_blocks, size_blocks
from pytest_tooleval.reports.wide_table import WideTable

MOST_ROWS = 200
LONGEST_GATE = 44
LEAST_REASON = 16
_GATE_COLUMNS = ("gate", "bound", "actual")
_NUMBERS = ("accuracy", "pass", "calls", "redundant", "errors", "tokens")
_MOCK_NOTE = "provider mock plays the fixtures' scripts: these numbers measure fixtures and tools, not a model"
_STYLES = {"passed": "green", "missed": "red", "error": "red", "skipped": "yellow"}


def summary_title(result: SuiteResult) -> str:
    """Return what the summary is about."""
    families = {measurement.family for measurement in result.measurements}
    titles = ["tool use"] if "tool_use" in families else []
    return " and ".join([*titles, "gold sets"] if families - {"tool_use"} else titles)


def terminal_summary(result: SuiteResult, width: int, *, color: bool) -> str:
    """Return the summary's text.

    Args:
        result: the run.
        width: columns of the terminal.
        color: whether to use ANSI colours.

    """
    console = summary_console(width, color=color)
    with console.capture() as capture:
        for block in _blocks(result):
            console.print(block)
        if result.gates:
            console.print()
            console.print(_gate_table(result.gates, console.width))
        for line in _notes(result):
            console.print(Text(printable(cut(line, LINE_CHARS))), soft_wrap=True)
    return without_trailing_blanks(capture.get())


def _blocks(result: SuiteResult) -> Iterator[Table | Text]:
    statistics = suite_statistics(result)
    yield from tool_use_blocks(result)
    yield from tool_use_statistics(statistics)
    yield from gold_blocks(result)
    yield from discovery_statistics(statistics)


def tool_use_blocks(result: SuiteResult) -> Iterator[Table | Text]:
    """Yield what is printed of tool use."""
    if not result.of_family("tool_use"):
        return
    yield _case_table(result)
    for line in [*_hidden_rows(result), *_measured_counts(result)]:
        yield Text(printable(line))
    if len(result.targets) > 1:
        yield Text()
        yield _side_by_side(result)
    else:
        yield from map(Text, [*cost_lines(result), *broker_lines(result)])
    yield from size_blocks(result)
    yield from confusion_blocks(result)
    yield from lost_blocks(result)


def _case_table(result: SuiteResult) -> Table:
    several = len(result.targets) > 1
    names = ["fixture", "target"] if several else ["fixture"]
    table = summary_table(*names, *_NUMBERS, "status", text=frozenset({*names, "status"}))
    for trials in _shown_rows(result):
        first = trials[0]
        name = [first.id, first.target] if several else [first.id]
        table.add_row(*map(printable, name), *_numbers(total(trials), trials), _status(trials))
    for target, totals in result.totals().items():
        name = ["total", target] if several else ["total"]
        table.add_row(*map(printable, name), *_total_numbers(totals), "", style="bold")
    return table


def _rows(result: SuiteResult) -> list[list[Measurement]]:
    """Return the measurements of each case and target, trials together."""
    rows: dict[tuple[str, str, str], list[Measurement]] = {}
    for measurement in result.of_family("tool_use"):
        rows.setdefault((measurement.corpus, measurement.id, measurement.target), []).append(measurement)
    return list(rows.values())


def _shown_rows(result: SuiteResult) -> list[list[Measurement]]:
    """Return every row, or, of a large suite, the first of those that did not pass."""
    rows = _rows(result)
    if len(rows) <= MOST_ROWS:
        return rows
    return [trials for trials in rows if any(trial.verdict != "passed" for trial in trials)][:MOST_ROWS]


def _hidden_rows(result: SuiteResult) -> Iterator[str]:
    hidden = len(_rows(result)) - len(_shown_rows(result))
    if hidden:
        yield f"({hidden} more rows; --tooleval-json FILE holds every case)"


def _measured_counts(result: SuiteResult) -> Iterator[str]:
    for target, totals in result.totals().items():
        yield f"{target}: {totals.measured} of {totals.n} measured"


def _numbers(totals: ToolUseTotals, trials: Sequence[Measurement]) -> Iterator[str]:
    measured = [trial for trial in trials if trial.measured]
    passed = sum(trial.verdict == "passed" for trial in measured)
    yield share_text(totals.accuracy)
    if len(trials) > 1:
        yield f"{passed}/{len(measured)}"
    else:
        yield ("yes" if passed else "no") if measured else "-"
    for number in (totals.calls, totals.redundant, totals.errors, totals.tokens):
        yield _count(number)


def _total_numbers(totals: ToolUseTotals) -> Iterator[str]:
    yield share_text(totals.accuracy)
    yield share_text(totals.pass_rate)
    for number in (totals.calls, totals.redundant, totals.errors, totals.tokens):
        yield _count(number)


def _status(trials: Sequence[Measurement]) -> Text:
    words = dict.fromkeys(_status_word(trial) for trial in trials)
    worst = next((v for v in ("error", "missed", "skipped") if any(t.verdict == v for t in trials)), "passed")
    return Text(", ".join(words), style=_STYLES[worst])


def _status_word(measurement: Measurement) -> str:
    return str(measurement.record.get("status", measurement.verdict)) if measurement.record else measurement.verdict


def _count(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def _side_by_side(result: SuiteResult) -> Table:
    totals = result.totals()
    table = WideTable(["metric"], list(map(printable, totals)))
    rows: tuple[tuple[str, Iterable[str]], ...] = (
        ("measured", (f"{t.measured} of {t.n}" for t in totals.values())),
        ("accuracy", (share_text(t.accuracy) for t in totals.values())),
        ("pass rate", (share_text(t.pass_rate) for t in totals.values())),
        ("calls", (_count(t.calls) for t in totals.values())),
        ("redundant", (_count(t.redundant) for t in totals.values())),
        ("errors", (_count(t.errors) for t in totals.values())),
        ("tokens", (_count(t.tokens) for t in totals.values())),
        ("seconds", ("-" if t.seconds is None else f"{t.seconds:.2f}" for t in totals.values())),
        *cost_rows(result),
        *broker_rows(result),
    )
    for name, values in rows:
        table.add_cells(name, *values)
    return table


def _gate_table(gates: Iterable[GateResult], width: int) -> Table:
    rows = [_gate_row(gate) for gate in gates]
    table = summary_table("gate", "bound", "actual", "result", text=frozenset({"gate", "bound", "result"}))
    columns = [(title, *(row[position] for row in rows)) for position, title in enumerate(_GATE_COLUMNS)]
    fixed = [max(map(len, column)) for column in columns]
    name_width = min(LONGEST_GATE, fixed[0])
    table.columns[0].width = name_width
    table.columns[3].width = max(LEAST_REASON, width - name_width - sum(fixed[1:]) - len(fixed) - 1)
    for name, bound, actual, result in rows:
        table.add_row(name, bound, actual, result)
    return table


def _gate_row(gate: GateResult) -> tuple[str, str, str, Text]:
    threshold = gate.planned.gate.threshold
    actual, bound = shown_apart(threshold if gate.actual is None else gate.actual, threshold)
    sign = "≥" if gate.planned.gate.comparator == "min" else "≤"
    word, style = ("skipped", "yellow") if gate.skipped else ("pass", "green") if gate.passed else ("FAIL", "red")
    reason = gate.skipped or gate.summary
    shown = Text(f"{word}: {printable(reason)}" if reason else word, style=style)
    return printable(gate.planned.name), f"{sign} {bound}", "-" if gate.actual is None else actual, shown


def _notes(result: SuiteResult) -> Iterator[str]:
    if any(map(is_scripted, result.targets)):
        yield f"note: {_MOCK_NOTE}"
    if any(measurement.record.get("tier") == "first_call" for measurement in result.measurements):
        yield "note: only first calls were asked for: no tool was run"
    if result.nothing_measured:
        yield result.nothing_measured
    else:
        yield from (f"not measured: {line}" for line in result.unmeasured())
    yield from (f"note: {note}" for note in result.notes)
    yield from gold_notes(result)
    for measurement in result.measurements:
        for note in bounded_lines(measurement.record.get("notes", ())) if measurement.family != "discovery" else ():
            yield f"note: {measurement.id} [{measurement.target}]: {note}"
        if measurement.worktree:
            yield f"worktree of {measurement.id} [{measurement.target}]: {measurement.worktree}"
