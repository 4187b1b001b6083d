"""Threshold files to gates."""

from __future__ import annotations

import re
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
FLAT_FAMILIES = ("invocation", "ergonomics", "tokens", "cache")
REGRESSIONS = "regressions"
COMPARED_FAMILIES = frozenset({"tool_use", "discovery", "invocation", "ergonomics"})
_REGRESSIONS_KEY = "regressionsMax"
_IDS_KEY = "must_pass"
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*", re.ASCII)
_TOOL_USE_KEYS = ("accuracyMin", "passRateMin", "redundantMax", "errorsMax", "tokensMax", _IDS_KEY)


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold over one metric of one scope.

    Attributes:
        family: the family that is gated; `regressions` for the gate over all families whose cases are compared.
        scope: `overall`, or a tag or category.
        metric: the metric's name in the result file; empty for a scope that is tracked and not gated.
        comparator: whether the metric must be at least or at most the threshold.
        threshold: the bound, itself included.
        corpus: the corpus that it governs, as a path relative to the root folder.
        file: the threshold file, likewise.
        line: 1-based line in the file.
        ids: the cases that must pass, for `must_pass` only.
        requires_semantic_leg: whether the gate is to be skipped where only lexical search ran.

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
    requires_semantic_leg: bool = False

    @property
    def tracked_only(self) -> bool:
        """Whether nothing is demanded of the scope."""
        return not self.metric

    @property
    def name(self) -> str:
        """The gate's name, the target left out."""
        if self.family == REGRESSIONS:
            return REGRESSIONS
        if self.family in FLAT_FAMILIES:
            return f"{self.family}.{self.metric}"
        return f"{self.family}.{self.scope}.{self.metric}"

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
    return [
        *_tool_use_gates(document, value.get("tool_use", {}), corpus),
        *_gold_gates(document, value, corpus),
        *_regressions_gate(document, value, corpus),
    ]


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
        yield from _scopes_without_tags(value.get("tool_use", {}))


def _repeated_gates(section: Mapping[str, Any]) -> Iterator[Fault]:
    for key in section.get(OVERALL, ()):
        if key in _TOOL_USE_KEYS and key in section:
            yield Fault(("tool_use", OVERALL, key), f"{key!r} stands beside {OVERALL!r} as well; keep one of them")


def _scopes_without_tags(section: Mapping[str, Any]) -> Iterator[Fault]:
    for key in section:
        if not key.startswith("_") and _TAG.fullmatch(key) is None:
            yield Fault(
                ("tool_use", key),
                f"{key!r} can be no tag: expected a letter, followed by letters, digits and _ . + -",
            )


def _as_unknown_gate(fault: Fault, value: Mapping[str, Any]) -> Fault:
    """Word the fault of a misspelt gate, which the schema takes for a tag, as what it is."""
    match fault.path:
        case ("tool_use", str(key)) if key not in _TOOL_USE_KEYS and not isinstance(value["tool_use"][key], dict):
            hint = nearest(key, _TOOL_USE_KEYS) or f"; known are: {', '.join(_TOOL_USE_KEYS)}"
            return Fault(fault.path, f"unknown gate {key!r}{hint}; the gates of a tag are an object")
        case _:
            return fault


def _problem(document: Document, fault: Fault) -> Problem:
    return Problem(document.path, fault.message, document.line_of(fault.path), pointer_text(fault.path) or None)


def _tool_use_gates(document: Document, section: Mapping[str, Any], corpus: str) -> Iterator[Gate]:
    own = {key: threshold for key, threshold in section.items() if key in _TOOL_USE_KEYS}
    yield from _scope_gates(document, corpus, OVERALL, own, ("tool_use",))
    for scope, thresholds in section.items():
        if scope not in own and not scope.startswith("_"):
            yield from _scope_gates(document, corpus, scope, thresholds, ("tool_use", scope))


def _gold_gates(document: Document, value: Mapping[str, Any], corpus: str) -> Iterator[Gate]:
    for scope, thresholds in value.get("discovery", {}).items():
        if not scope.startswith("_"):
            yield from _gates_or_tracked(document, corpus, scope, thresholds, ("discovery", scope))
    for family in FLAT_FAMILIES:
        if family in value:
            yield from _gates_or_tracked(document, corpus, OVERALL, value[family], (family,))


def _regressions_gate(document: Document, value: Mapping[str, Any], corpus: str) -> Iterator[Gate]:
    if _REGRESSIONS_KEY in value:
        most = value[_REGRESSIONS_KEY]
        line = document.line_of((_REGRESSIONS_KEY,))
        yield Gate(REGRESSIONS, OVERALL, REGRESSIONS, "max", most, corpus, document.path.as_posix(), line)


def _gates_or_tracked(
    document: Document, corpus: str, scope: str, thresholds: Mapping[str, Any], pointer: tuple[str, ...]
) -> Iterator[Gate]:
    """Yield a scope's gates, or one that demands nothing: it says that the scope is looked at on purpose."""
    gates = list(_scope_gates(document, corpus, scope, thresholds, pointer))
    tracked = Gate(pointer[0], scope, "", "min", 0, corpus, document.path.as_posix(), document.line_of(pointer))
    yield from gates or [tracked]


def _scope_gates(
    document: Document, corpus: str, scope: str, thresholds: Mapping[str, Any], pointer: tuple[str, ...]
) -> Iterator[Gate]:
    semantic = bool(thresholds.get("requiresSemanticLeg", False))
    for key, threshold in thresholds.items():
        ids = tuple(threshold) if key == _IDS_KEY else ()
        demand = _demand(key, threshold)
        if demand is not None:
            line = document.line_of((*pointer, key))
            yield Gate(pointer[0], scope, *demand, corpus, document.path.as_posix(), line, ids, semantic)


def _demand(key: str, threshold: Any) -> tuple[str, Comparator, float] | None:
    """Return metric, comparator and bound of a key such as `passRateMin`; None for notes and other keys."""
    if key == _IDS_KEY:
        return "mustPass", "min", len(threshold)
    if key.startswith("_") or key[-3:] not in {"Min", "Max"}:
        return None
    return key[:-3], "min" if key.endswith("Min") else "max", threshold
