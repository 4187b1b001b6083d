"""What the reports say of cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pytest_tooleval.measures.cost import CostTotals, cost_totals
from pytest_tooleval.measures.text import printable
from pytest_tooleval.reports.suite_result import SuiteResult


def cost_fields(result: SuiteResult, target: str) -> dict[str, Any]:
    """Return the fields on cost of a target's record in the result file."""
    totals = costs_of(result, target)
    return {
        "cost": totals.cost,
        "costRuns": totals.runs,
        "pricedRuns": totals.priced,
        "costPerSolved": totals.cost_per_solved,
        "tokensPerSolved": totals.tokens_per_solved,
    }


def cost_lines(result: SuiteResult) -> Iterator[str]:
    """Yield a line for each target of which something is known."""
    for target in result.targets:
        totals = costs_of(result, target)
        parts = [*_total(totals), *_per_solved(totals)]
        if parts:
            yield printable(f"{target}: {'; '.join(parts)}")


def cost_rows(result: SuiteResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield rows for the table of targets side by side: a name, and a text for each target in their order."""
    totals = [costs_of(result, target) for target in result.targets]
    if any(each.priced for each in totals):
        yield "cost", tuple(money_text(each.cost) for each in totals)
        yield "cost per solved", tuple(money_text(each.cost_per_solved) for each in totals)
    if any(each.tokens_per_solved is not None for each in totals):
        yield "tokens per solved", tuple(tokens_text(each.tokens_per_solved) for each in totals)


def costs_of(result: SuiteResult, target: str) -> CostTotals:
    """Return what the runs of one target cost."""
    return cost_totals(case for case in result.of_family("tool_use") if case.target == target)


def money_text(dollars: float | None) -> str:
    """Return US dollars with three digits that count, from a dollar on with cents; `-` for none."""
    if dollars is None:
        return "-"
    if dollars >= 1 or dollars <= 0:
        return f"${dollars:,.2f}"
    return f"${dollars:.{2 - math.floor(math.log10(dollars))}f}"


def tokens_text(tokens: float | None) -> str:
    """Return a number of tokens without a fraction, `-` for none."""
    return "-" if tokens is None else f"{tokens:,.0f}"


def _total(totals: CostTotals) -> Iterator[str]:
    if totals.cost is not None:
        yield f"cost {money_text(totals.cost)}"
    elif totals.priced:
        yield f"cost not known: {totals.priced} of {totals.runs} runs have a price"


def _per_solved(totals: CostTotals) -> Iterator[str]:
    known = []
    if totals.cost_per_solved is not None:
        known.append(money_text(totals.cost_per_solved))
    if totals.tokens_per_solved is not None:
        known.append(f"{tokens_text(totals.tokens_per_solved)} tokens")
    if known:
        yield f"{' and '.join(known)} for each case solved"
