"""Which tool was called where which was expected: runs aligned with the sequences that their cases accept.

The alignment is that of the edit distance (Levenshtein 1966): the fewest pairs of unlike tools, expected calls that
were not made, and calls that were not expected. Precision, recall and F1 of a tool are those of classification;
each pair is one observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pytest_tooleval.cases.case import NameSequence, ToolUseCase
from pytest_tooleval.measures.measurement import Measurement

MOST_ALIGNED = 1_000
_UNCHECKED = frozenset({"unknown_tool", "denied"})
_Cost: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """What was expected at a place, and what was called there.

    Attributes:
        expected: the expected tool, or None for a call beyond what was expected.
        called: the called name, or None where no call was made.
        unknown: whether there is no tool of the called name.

    """

    expected: str | None
    called: str | None
    unknown: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the expected tool was called."""
        return self.expected == self.called

    @property
    def order(self) -> tuple[bool, str, bool, str]:
        """A sort key: by name, what is not there last."""
        return self.expected is None, self.expected or "", self.called is None, self.called or ""


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """How a tool was chosen.

    Attributes:
        support: times that it was expected.
        called: times that it was called in a run that was aligned.
        right: times that it was called where it was expected.
        checked: calls whose arguments were checked, of all measured runs.
        valid: those whose arguments keep the tool's schema.

    """

    support: int
    called: int
    right: int
    checked: int
    valid: int

    @property
    def precision(self) -> float | None:
        """The share of its calls that were expected; None without a call."""
        return _share(self.right, self.called)

    @property
    def recall(self) -> float | None:
        """The share of its expected calls that were made; None where none is expected."""
        return _share(self.right, self.support)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both, 2 right / (called + expected); None without either."""
        return _share(2 * self.right, self.called + self.support)

    @property
    def valid_arguments(self) -> float | None:
        """The share of valid calls among those that were checked; None when none was."""
        return _share(self.valid, self.checked)


@dataclass(frozen=True, slots=True)
class Confusion:
    """What the measured runs of a target show; each trial is a run of its own.

    Attributes:
        runs: runs that were aligned: those of cases with sequences of names to expect.
        pairs: how often each pair was seen, most often first, right ones included.
        tools: each tool that was expected or called, by name.
        valid_arguments: the share of calls whose arguments keep their tool's schema, over all measured runs; None
            without any. Calls of unknown and of denied tools are not checked and do not count.

    """

    runs: int = 0
    pairs: Mapping[Pair, int] = field(default_factory=dict)
    tools: Mapping[str, ToolSelection] = field(default_factory=dict)
    valid_arguments: float | None = None

    @property
    def wrong(self) -> dict[Pair, int]:
        """The pairs in which something else was called than was expected, most often first."""
        return {pair: count for pair, count in self.pairs.items() if not pair.is_right}


def expected_sequences(case: ToolUseCase) -> list[list[str]] | None:
    """Return the sequences of names that a case accepts: its `expected`, else its `exact`; None without either."""
    sequences = case.expected
    if sequences is None and case.verifier is not None:
        sequences = case.verifier.exact
    return None if sequences is None else [list(sequence) for sequence in sequences]


def confusion(measurements: Iterable[Measurement]) -> Confusion:
    """Count what was called where what was expected.

    Args:
        measurements: those of one target. Of their records `names`, `trace`, `expectedNames` (what
            `expected_sequences` gives) and `tier` are read. A first turn is held against as many expected calls as
            it makes, at least one: the others were still to come.

    """
    records = [measurement.record for measurement in measurements if measurement.measured]
    aligned = [record for record in records if record.get("expectedNames") is not None]
    pairs = Counter(pair for record in aligned for pair in _pairs(record))
    checked = Counter(entry["name"] for record in records for entry in _checked(record))
    valid = Counter(entry["name"] for record in records for entry in _checked(record) if _is_valid(entry))
    ranked = sorted(pairs.items(), key=lambda found: (-found[1], found[0].order))
    return Confusion(
        runs=len(aligned),
        pairs=dict(ranked),
        tools=_tools(pairs, checked, valid),
        valid_arguments=_share(valid.total(), checked.total()),
    )


def align(acceptable: Sequence[NameSequence], called: NameSequence) -> list[tuple[str | None, str | None]]:
    """Pair called names with the nearest of some sequences.

    Args:
        acceptable: the sequences, at least one; of those equally near the first is taken.
        called: the called names; those after MOST_ALIGNED are taken to be beyond what was expected.

    Returns:
        Pairs of an expected and a called name in order, None for nothing. Of alignments with equally few
        differences, those with most names in common are best; of these the one that pairs, or leaves out, earliest.

    """
    compared, beyond = called[:MOST_ALIGNED], called[MOST_ALIGNED:]
    tables = [(sequence, _costs(sequence, compared)) for sequence in acceptable]
    sequence, costs = min(tables, key=lambda table: table[1][0][0])
    return [*_walk(sequence, compared, costs), *((None, name) for name in beyond)]


def _costs(expected: NameSequence, called: NameSequence) -> list[list[_Cost]]:
    """Return the cost of the best alignment of each two remainders: differences, and less one for a common name."""
    rows: list[list[_Cost]] = [[(len(called) - column, 0) for column in range(len(called) + 1)]]
    for remaining, wanted in enumerate(reversed(expected), 1):
        below = rows[0]
        row: list[_Cost] = [(remaining, 0)]
        for column in range(len(called) - 1, -1, -1):
            row.append(
                min(
                    _paired(below[column + 1], wanted == called[column]),
                    _one_more(below[column]),
                    _one_more(row[-1]),
                )
            )
        rows.insert(0, row[::-1])
    return rows


def _paired(rest: _Cost, alike: bool) -> _Cost:
    return (rest[0], rest[1] - 1) if alike else _one_more(rest)


def _one_more(rest: _Cost) -> _Cost:
    return rest[0] + 1, rest[1]


def _walk(
    expected: NameSequence, called: NameSequence, costs: Sequence[Sequence[_Cost]]
) -> Iterator[tuple[str | None, str | None]]:
    row = column = 0
    while row < len(expected) or column < len(called):
        best = costs[row][column]
        both = row < len(expected) and column < len(called)
        if both and best == _paired(costs[row + 1][column + 1], expected[row] == called[column]):
            yield expected[row], called[column]
            row, column = row + 1, column + 1
        elif row < len(expected) and best == _one_more(costs[row + 1][column]):
            yield expected[row], None
            row += 1
        else:
            yield None, called[column]
            column += 1


def _pairs(record: Mapping[str, Any]) -> Iterator[Pair]:
    called = tuple(record.get("names", ()))
    most = max(1, len(called)) if record.get("tier") == "first_call" else None
    unknown = {entry["name"] for entry in record.get("trace", ()) if entry["outcome"] == "unknown_tool"}
    for expected, name in align([tuple(sequence[:most]) for sequence in record["expectedNames"]], called):
        yield Pair(expected, name, unknown=name in unknown and name != expected)


def _checked(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (entry for entry in record.get("trace", ()) if entry["outcome"] not in _UNCHECKED)


def _is_valid(entry: Mapping[str, Any]) -> bool:
    return bool(entry["outcome"] != "invalid_arguments")


def _tools(
    pairs: Mapping[Pair, int], checked: Mapping[str, int], valid: Mapping[str, int]
) -> dict[str, ToolSelection]:
    support, called, right = Counter[str](), Counter[str](), Counter[str]()
    for pair, count in pairs.items():
        if pair.expected is not None:
            support[pair.expected] += count
        if pair.called is not None and not pair.unknown:
            called[pair.called] += count
            right[pair.called] += count * pair.is_right
    return {
        name: ToolSelection(support[name], called[name], right[name], checked.get(name, 0), valid.get(name, 0))
        for name in sorted({*support, *called, *checked})
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
