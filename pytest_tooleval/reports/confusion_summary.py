"""What the reports say of tools that were taken for one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from rich.table import Table
from rich.text import Text

from pytest_tooleval.measures.confusion import Confusion, Pair, ToolSelection, confusion
from pytest_tooleval.measures.text import printable, shorten
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.tables import share_text, summary_table

MOST_ROWS = 10
_MOST_CHARS = 40


def confusion_blocks(result: SuiteResult) -> Iterator[Table | Text]:
    """Yield a table of what was called in place of what, of each target the most frequent, where anything was."""
    found = {target: confusion for target, confusion in _by_target(result).items() if confusion.wrong}
    if found:
        yield Text()
        yield _table(found, several=len(result.targets) > 1)
        for target, each in found.items():
            yield from map(Text, _more(target, each))
    for target, each in _by_target(result).items():
        if each.valid_arguments is not None and each.valid_arguments < 1:
            share = share_text(each.valid_arguments)
            yield Text(printable(f"{target}: arguments valid in {share} of the calls that were checked"))


def confusion_section(result: SuiteResult) -> dict[str, Any]:
    """Return the section `confusion` of the result file: a record for each target."""
    return {target: _record(each) for target, each in _by_target(result).items()}


def _by_target(result: SuiteResult) -> dict[str, Confusion]:
    cases = result.of_family("tool_use")
    return {target: confusion(case for case in cases if case.target == target) for target in result.targets}


def _table(found: dict[str, Confusion], *, several: bool) -> Table:
    names = ["expected", "called", "target"] if several else ["expected", "called"]
    table = summary_table(*names, "times", text=frozenset(names))
    for target, each in found.items():
        for pair, count in islice(each.wrong.items(), MOST_ROWS):
            row = (
                [_expected(pair), _called(pair), printable(target)] if several else [_expected(pair), _called(pair)]
            )
            table.add_row(*row, f"{count:,}")
    return table


def _expected(pair: Pair) -> str:
    return "(none)" if pair.expected is None else _name(pair.expected)


def _called(pair: Pair) -> str:
    if pair.called is None:
        return "(no call)"
    return f"{_name(pair.called)} (no such tool)" if pair.unknown else _name(pair.called)


def _name(name: str) -> str:
    return shorten(printable(name), _MOST_CHARS) or "(no name)"


def _more(target: str, found: Confusion) -> Sequence[str]:
    hidden = len(found.wrong) - MOST_ROWS
    return [printable(f"({hidden} more of {target}; --tooleval-json FILE holds them all)")] if hidden > 0 else []


def _record(found: Confusion) -> dict[str, Any]:
    return {
        "runs": found.runs,
        "validArguments": found.valid_arguments,
        "pairs": [_pair(pair, count) for pair, count in found.pairs.items()],
        "tools": {name: _tool(tool) for name, tool in found.tools.items()},
    }


def _pair(pair: Pair, count: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"expected": pair.expected, "called": pair.called, "count": count}
    return shown | {"unknownTool": True} if pair.unknown else shown


def _tool(tool: ToolSelection) -> dict[str, Any]:
    return {
        "support": tool.support,
        "called": tool.called,
        "right": tool.right,
        "precision": tool.precision,
        "recall": tool.recall,
        "f1": tool.f1,
        "validArguments": tool.valid_arguments,
    }
