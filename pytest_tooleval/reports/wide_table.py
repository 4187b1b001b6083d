"""A table with a column for each target, of which there may be more than a line can hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from pytest_tooleval.reports.tables import summary_table


class WideTable(Table):
    """Stands in several tables one below the other, each with the labels again, where one would be too wide.

    A number that is cut off is another number: no column but the labels is ever made narrower than it is.

    Args:
        labels: headers of the columns that every part begins with.
        columns: headers of the others.

    """

    def __init__(self, labels: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__()
        self._labels = tuple(labels)
        self._columns = tuple(columns)
        self._rows: list[tuple[str, ...]] = []

    def add_cells(self, *cells: str) -> None:
        """Add a row, labels first."""
        self._rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts that fit, parted by empty lines."""
        for number, part in enumerate(self._parts(options.max_width)):
            if number:
                yield Text()
            yield self._part(part)

    def _parts(self, width: int) -> Iterator[list[int]]:
        """Yield the positions of the columns that stand together; one that is too wide stands alone."""
        first = len(self._labels)
        room = width - sum(self._width(position) + 1 for position in range(first)) + 1
        part: list[int] = []
        used = 0
        for position in range(first, first + len(self._columns)):
            needed = self._width(position) + 1
            if part and used + needed > room:
                yield part
                part, used = [], 0
            part.append(position)
            used += needed
        yield part

    def _width(self, position: int) -> int:
        header = (*self._labels, *self._columns)[position]
        return max(map(cell_len, [header, *(row[position] for row in self._rows)]))

    def _part(self, columns: Sequence[int]) -> Table:
        headers = (*self._labels, *self._columns)
        shown = [*range(len(self._labels)), *columns]
        table = summary_table(*(headers[position] for position in shown), text=frozenset(self._labels[:1]))
        for row in self._rows:
            table.add_row(*(row[position] for position in shown))
        return table
