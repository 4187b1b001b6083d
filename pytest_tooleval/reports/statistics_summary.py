"""What the terminal summary says of intervals, trials and pairs of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from rich.table import Table
from rich.text import Text

from pytest_tooleval.measures.target_comparison import (
    NO_DIFFERENCE,
    Difference,
    TargetComparison,
)
from pytest_tooleval.measures.text import printable
from pytest_tooleval.measures.tool_sets import is_scripted
from pytest_tooleval.measures.trials import AtK, TrialStatistics
from pytest_tooleval.reports.suite_statistics import SuiteStatistics
from pytest_tooleval.reports.tables import share_text, summary_table

MOST_FLAKY = 8
MOST_PAIRS = 10
MOST_TABLES = 3
_FINE_FROM_PAIRS = 400
_TITLES = {
    "passRate": "pass rate",
    "latencySeconds": "seconds",
    "top1": "top-1",
    "mrr": "MRR",
}
_STYLES = {"better": "green", "worse": "red"}


def tool_use_statistics(statistics: SuiteStatistics) -> Iterator[Table | Text]:
    """Yield what is printed below tool use: each model's interval and trials, then the pairs.

    The scripted provider has no interval: nothing in it is left to chance.
    """
    if len(statistics.by_target) > 1:
        yield Text()
    for target, found in statistics.by_target.items():
        if not is_scripted(target):
            yield from (Text(printable(line)) for line in _trial_lines(target, found))
    yield from _pair_blocks([pair for pair in statistics.comparisons if pair.family == "tool_use"])


def discovery_statistics(statistics: SuiteStatistics) -> Iterator[Table | Text]:
    """Yield what is printed below gold sets: the pairs of searches."""
    yield from _pair_blocks([pair for pair in statistics.comparisons if pair.family == "discovery"])


def _trial_lines(target: str, found: TrialStatistics) -> Iterator[str]:
    if found.interval is None:
        return
    interval = f"(95 % CI {share_text(found.interval.low)} to {share_text(found.interval.high)})"
    yield f"{target}: pass rate {share_text(found.pass_rate)} {interval}, {_cases(found.cases)}{_trials(found)}"
    if found.trials > 1:
        most = max(at.k for at in found.pass_at_k if at.value is not None)
        at_k = _at_k(f"pass@{most}", found.pass_at_k[most - 1], found.cases)
        hat_k = _at_k(f"pass^{most}", found.pass_hat_k[most - 1], found.cases)
        yield f"{target}: {at_k}, {hat_k}; {_flaky(found)}"


def _trials(found: TrialStatistics) -> str:
    if found.trials == 1:
        return ""
    every_one = found.pass_at_k[-1].cases == found.cases
    return f", {'' if every_one else 'up to '}{found.trials} trials each"


def _at_k(name: str, at: AtK, cases: int) -> str:
    over = "" if at.cases == cases else f" ({at.cases} of {_cases(cases)})"
    return f"{name} {share_text(at.value)}{over}"


def _flaky(found: TrialStatistics) -> str:
    if not found.flaky:
        return "no case is flaky"
    named = [f"{case.id} {case.passed} of {case.valid}" for case in found.flaky[:MOST_FLAKY]]
    more = len(found.flaky) - len(named)
    named += [f"and {more} more"] if more else []
    return f"{len(found.flaky)} of {_cases(found.cases)} flaky: {', '.join(named)}"


def _pair_blocks(comparisons: Sequence[TargetComparison]) -> Iterator[Table | Text]:
    shown = comparisons[:MOST_PAIRS]
    for comparison in shown:
        yield Text()
        yield difference_line(comparison, comparison.reference)
        if len(comparisons) <= MOST_TABLES and comparison.primary.pairs:
            yield _difference_table([found for found in comparison.differences[1:] if found.pairs])
    hidden = len(comparisons) - len(shown)
    if hidden:
        yield Text(f"({hidden} more pairs; --tooleval-json FILE holds every pair and metric)")
    yield from (Text(f"note: {note}") for note in dict.fromkeys(note for c in comparisons for note in c.notes))


def difference_line(comparison: TargetComparison, reference: str) -> Text:
    """Return the line on the primary metric of a pair.

    Args:
        comparison: the pair.
        reference: how the first side is called.

    """
    found = comparison.primary
    pair = f"{comparison.target} against {reference}"
    if found.difference is None:
        return Text(printable(f"{pair}: {found.reason}"))
    numbers = ", ".join(filter(None, [_interval_text(found, "95 % CI "), _p_values(comparison)]))
    cases = (
        f"{found.pairs} of {_cases(comparison.cases)}" if found.pairs < comparison.cases else _cases(found.pairs)
    )
    line = f"{pair}: {_title(found)} {_signed(found, found.difference)} ({numbers}), {cases}, {found.verdict}"
    limit = f"; {_could_have_shown(found)}" if found.verdict == NO_DIFFERENCE else ""
    return Text(printable(line + limit), style=_STYLES.get(found.verdict or "", ""))


def _could_have_shown(found: Difference) -> str:
    if found.detectable is None:
        return "so few cases can show none"
    decimals = _decimals(found)
    least = ceil(found.detectable * 10**decimals) / 10**decimals
    return f"this suite could have shown {least:.{decimals}f} or more"


def _p_values(comparison: TargetComparison) -> str:
    found = comparison.primary
    if found.corrected_p_value is None:
        return _p_text(found.p_value)
    corrected = _p_text(found.corrected_p_value).removeprefix("p ")
    return f"{_p_text(found.p_value)}, corrected for {comparison.corrected_over} pairs {corrected}"


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return ""
    return "p < 0.001" if p_value < 0.001 else f"p {p_value:.3f}" if p_value < 0.1 else f"p {p_value:.2f}"


def _difference_table(differences: Sequence[Difference]) -> Table:
    names = ("metric", "difference", "95 % CI", "p", "cases", "finding")
    table = summary_table(*names, text=frozenset({"metric", "finding"}))
    for found in differences:
        finding = Text(found.verdict or "", style=_STYLES.get(found.verdict or "", ""))
        p_value = _p_text(found.p_value).removeprefix("p ")
        interval = _interval_text(found) or "-"
        table.add_row(_title(found), _signed(found, found.difference), interval, p_value, str(found.pairs), finding)
    return table


def _interval_text(found: Difference, name: str = "") -> str:
    interval = found.interval
    return "" if interval is None else f"{name}{_signed(found, interval.low)} to {_signed(found, interval.high)}"


def _signed(found: Difference, number: float | None) -> str:
    decimals = _decimals(found)
    return "-" if number is None else f"{round(number, decimals) + 0.0:+,.{decimals}f}"


def _decimals(found: Difference) -> int:
    """Return the decimals of a difference and its interval: none for great numbers, three over very many cases."""
    ends = (found.interval.low, found.interval.high) if found.interval else ()
    if max(abs(number) for number in (found.difference or 0.0, *ends)) >= 100:
        return 0
    return 3 if found.pairs >= _FINE_FROM_PAIRS else 2


def _title(found: Difference) -> str:
    return _TITLES.get(found.metric, found.metric)


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"
