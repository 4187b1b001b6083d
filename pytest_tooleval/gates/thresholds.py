"""Threshold files to gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_tooleval.cases.jsontext import Document, pointer_text, read_document
from pytest_tooleval.cases.schema import Fault, Schema, describe
from pytest_tooleval.errors import CaseError, Problem, nearest

Comparator: TypeAlias = Literal["min", "max"]

THRESHOLDS_FILE = "thresholds.json"
THRESHOLDS_SCHEMA = Schema("thresholds")
OVERALL = "overall"
_TOOL_USE_METRICS: Mapping[str, tuple[str, Comparator]] = {
    "accuracyMin": ("accuracy", "min"),
    "passRateMin": ("passRate", "min"),
    "redundantMax": ("redundant", "max"),
    "errorsMax": ("errors", "max"),
    "tokensMax": ("tokens", "max"),
}
_IDS_KEY = "must_pass"
_KNOWN_KEYS = (*_TOOL_USE_METRICS, _IDS_KEY)


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold over one metric of one scope.

    Attributes:
        family: the family that is gated.
        scope: `overall` or a tag.
        metric: the metric's name in the result file.
        comparator: whether the metric must be at least or at most the threshold.
        threshold: the bound, itself included.
        corpus: the corpus that it governs, as a path relative to the root folder.
        file: the threshold file, likewise.
        line: 1-based line in the file.
        ids: the cases that must pass, for `must_pass` only.

    """

    family: str
    scope: str
    metric: str
    comparator: Comparator
    threshold: float
    corpus: str
    file: str
    line: int
    ids: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The gate's name, the target left out."""
        return f"{self.family}.{self.scope}.{self.metric}"

    def covers(self, corpus: str, case_id: str, tags: tuple[str, ...]) -> bool:
        """Whether a case is in the gate's scope; ids name their cases, whatever tags these have."""
        if corpus != self.corpus:
            return False
        if self.ids:
            return case_id in self.ids
        return self.scope == OVERALL or self.scope in tags

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {**asdict(self), "ids": list(self.ids)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Gate:
        """Rebuild what `to_plain` gave."""
        return cls(**{**plain, "ids": tuple(plain["ids"])})


def load_thresholds(path: Path, shown: Path, corpus: str) -> list[Gate]:
    """Load the gates of a threshold file, in the file's order.

    Raises:
        CaseError: with every fault of the file.

    """
    document = read_document(path, shown)
    value: Any = [e.value for e in document.elements] if document.is_list else document.elements[0].value
    faults = list(_faults(value))
    if faults:
        raise CaseError([_problem(document, fault) for fault in faults])
    return list(_tool_use_gates(document, value.get("tool_use", {}), corpus))


def unknown_ids(gates: Sequence[Gate], known: Iterable[str]) -> list[Problem]:
    """Return a problem for each id in `must_pass` that no case of the corpus has."""
    names = frozenset(known)
    return [
        Problem(
            Path(gate.file), f"must_pass names {name!r}, and there is no such case{nearest(name, names)}", gate.line
        )
        for gate in gates
        for name in gate.ids
        if name not in names
    ]


def _faults(value: Any) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault((), f"found {describe(value)}; expected an object with thresholds")
        return
    faults = THRESHOLDS_SCHEMA.faults(value)
    yield from (_as_unknown_gate(fault, value) for fault in faults)
    if not faults:
        yield from _repeated_gates(value.get("tool_use", {}))


def _repeated_gates(section: Mapping[str, Any]) -> Iterator[Fault]:
    for key in section.get(OVERALL, ()):
        if key in _KNOWN_KEYS and key in section:
            yield Fault(("tool_use", OVERALL, key), f"{key!r} stands beside {OVERALL!r} as well; keep one of them")


def _as_unknown_gate(fault: Fault, value: Mapping[str, Any]) -> Fault:
    """Word the fault of a misspelt gate, which the schema takes for a tag, as what it is."""
    match fault.path:
        case ("tool_use", str(key)) if key not in _KNOWN_KEYS and not isinstance(value["tool_use"][key], dict):
            hint = nearest(key, _KNOWN_KEYS) or f"; known are: {', '.join(_KNOWN_KEYS)}"
            return Fault(fault.path, f"unknown gate {key!r}{hint}; the gates of a tag are an object")
        case _:
            return fault


def _problem(document: Document, fault: Fault) -> Problem:
    return Problem(document.path, fault.message, document.line_of(fault.path), pointer_text(fault.path) or None)


def _tool_use_gates(document: Document, section: Mapping[str, Any], corpus: str) -> Iterator[Gate]:
    yield from _scope_gates(document, OVERALL, section, ("tool_use",), corpus)
    for scope, thresholds in section.items():
        if scope not in _KNOWN_KEYS and not scope.startswith("_"):
            yield from _scope_gates(document, scope, thresholds, ("tool_use", scope), corpus)


def _scope_gates(
    document: Document, scope: str, thresholds: Mapping[str, Any], pointer: tuple[str, ...], corpus: str
) -> Iterator[Gate]:
    file = document.path.as_posix()
    for key, threshold in thresholds.items():
        if key not in _KNOWN_KEYS:
            continue
        line = document.line_of((*pointer, key))
        if key == _IDS_KEY:
            yield Gate("tool_use", scope, "mustPass", "min", len(threshold), corpus, file, line, tuple(threshold))
        else:
            metric, comparator = _TOOL_USE_METRICS[key]
            yield Gate("tool_use", scope, metric, comparator, threshold, corpus, file, line)
