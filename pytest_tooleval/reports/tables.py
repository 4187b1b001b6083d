"""Tables of the terminal summary."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

LEAST_WIDTH = 80


def summary_console(width: int, *, color: bool) -> Console:
    """Return a console that prints nowhere: what is printed is captured.

    Args:
        width: columns of the terminal.
        color: whether to use ANSI colours.

    """
    return Console(
        file=io.StringIO(),
        width=max(width, LEAST_WIDTH),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def rendered(blocks: Iterable[Table | Text], width: int, *, color: bool) -> str:
    """Return the text of tables and lines; lines are not wrapped, so that they can be searched."""
    console = summary_console(width, color=color)
    with console.capture() as capture:
        for block in blocks:
            console.print(block, soft_wrap=isinstance(block, Text))
    return without_trailing_blanks(capture.get())


def without_trailing_blanks(text: str) -> str:
    """Return lines without the blanks that fill them up."""
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")[:-1])


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
