"""Markdown that reads well as text too: padded tables, names in code spans, numbers in one way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from pytest_tooleval.measures.text import printable

NO_VALUE = "n/a"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> Iterator[str]:
    """Yield the lines of a table, its columns as wide as their widest cell.

    Args:
        header: the columns' titles.
        rows: the cells, already escaped.
        text_columns: how many columns from the left are aligned left; the others are numbers.

    """
    cells = [header, *rows]
    widths = [max(3, *(cell_len(row[column]) for row in cells)) for column in range(len(header))]
    rules = ["-" * width if n < text_columns else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    for row in (cells[0], rules, *cells[1:]):
        padded = (_padded(cell, widths[n], left=n < text_columns) for n, cell in enumerate(row))
        yield f"| {' | '.join(padded)} |"


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell


def code(name: str) -> str:
    """Return a name as a code span that may stand in a table."""
    shown = _one_line(name).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    if not longest:
        return f"`{shown}`" if shown else '""'
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}"


def prose(text: str) -> str:
    """Return a text, in which nothing is markup, for a table or a paragraph."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def rate(number: float | None) -> str:
    """Return a share with three decimals; one that is not quite 0 or 1 never reads as 0 or 1."""
    if number is None:
        return NO_VALUE
    text = f"{number:.3f}"
    return f"{number:.6g}" if float(text) in {0.0, 1.0} and float(text) != number else text


def count(number: float | None) -> str:
    """Return a number with separators; a fraction that is over 1 with one decimal."""
    if number is None:
        return NO_VALUE
    if number == int(number):
        return f"{number:,.0f}"
    return f"{number:,.1f}" if abs(number) >= 1 else f"{number:.3g}"


def seconds(number: float | None) -> str:
    """Return a time in seconds."""
    return NO_VALUE if number is None else f"{number:,.2f}"
