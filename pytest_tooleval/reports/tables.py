"""Tables of the terminal summary."""

from __future__ import annotations

from typing import Literal

from rich.table import Table


def summary_table(*columns: str, text: frozenset[str] = frozenset()) -> Table:
    """Return a table in which only text columns are folded where the terminal is too narrow: numbers stay whole."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold underline")
    for column in columns:
        is_text = column in text
        justify: Literal["left", "right"] = "left" if is_text else "right"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=not is_text, min_width=len(column))
    return table


def share_text(number: float | None) -> str:
    """Return a share with two decimals, `-` for none."""
    return "-" if number is None else f"{number:.2f}"
