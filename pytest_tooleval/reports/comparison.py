"""A run against a baseline: what changed in each metric, which cases got worse and better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import PureWindowsPath
from typing import Any, Literal, TypeAlias

from pytest_tooleval.gates.evaluate import Regressed
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.target_comparison import TargetComparison
from pytest_tooleval.reports.baseline_statistics import baseline_statistics
from pytest_tooleval.reports.scoreboard import by_target
from pytest_tooleval.reports.statistics_sections import comparison_records

Document: TypeAlias = Mapping[str, Any]
Record: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["regression", "worse", "better", "unmeasured", "newly measured", "same"]

CASE_SECTIONS = {
    "tool_use": "toolUse",
    "discovery": "discovery",
    "invocation": "invocation",
    "ergonomics": "ergonomics",
}
SECTIONS = (*CASE_SECTIONS.values(), "tokenEconomy", "performance", "cache")
_PROVENANCE = ("corpusVersion", "model", "semanticRan", "tokenEstimator")
_MEASURED = frozenset({"passed", "missed"})
_HIGHER_IS_BETTER = (
    "accuracy",
    "validArguments",
    "firstCallOk",
    "repaired",
    "schemaErrorSurfaced",
    "offlineHandled",
    "decisionKnown",
    "instructive",
    "errorDisposed",
    "withinBudget",
    "parity",
)
_LOWER_IS_BETTER = ("wrongServer", "redundant", "errors")
_LARGEST = 1e300
_TOLD = ("decision", "errorType", "secondErrorType")


@dataclass(frozen=True, slots=True)
class CaseKey:
    """What makes a case of one run and a case of another the same case.

    Attributes:
        family: its family.
        file: where it stands, relative to the root folder; outside of it the file's name alone, for the rest
            differs from machine to machine.
        id: its id.
        target: what it is run on.
        trial: 1-based repetition.

    """

    family: str
    file: str
    id: str
    target: str
    trial: int

    @classmethod
    def of(cls, measurement: Measurement) -> CaseKey:
        """Return the key of what an item measured."""
        m = measurement
        return cls(m.family, _portable(m.file), m.id, m.target, m.trial)

    def __str__(self) -> str:
        trial = "" if self.trial == 1 else f", trial {self.trial}"
        return f"{self.file}::{self.id} [{self.target}{trial}]"


@dataclass(frozen=True, slots=True)
class CaseChange:
    """How a case that stands in both runs fares.

    Attributes:
        case: which one.
        corpus: the corpus that it belongs to now.
        kind: `regression` when it passed in the baseline and misses now.
        changes: what differs, as `rank 1 -> 4`.
        reason: why it does not pass now, else empty.

    """

    case: CaseKey
    corpus: str
    kind: Kind
    changes: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A metric of a section that both runs have; None is no value."""

    section: str
    metric: str
    before: float | None
    now: float | None

    @property
    def change(self) -> float | None:
        """The difference, None where a value is missing; the noise of floating-point sums is none."""
        if self.before is None or self.now is None:
            return None
        return 0.0 if math.isclose(self.before, self.now, rel_tol=1e-12, abs_tol=1e-12) else self.now - self.before

    @property
    def differs(self) -> bool:
        """Whether there is anything to tell."""
        return self.change != 0.0 if self.change is not None else self.before != self.now


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against a baseline.

    Attributes:
        cases: each case that stands in both, in the order of this run.
        added: cases of this run that the baseline lacks.
        vanished: cases of the baseline that this run lacks.
        metrics: each metric that both have.
        notes: what keeps the two from being compared like with like.
        statistics: each target that stands in both against its baseline.

    """

    cases: tuple[CaseChange, ...]
    added: tuple[CaseKey, ...] = ()
    vanished: tuple[CaseKey, ...] = ()
    metrics: tuple[MetricChange, ...] = ()
    notes: tuple[str, ...] = ()
    statistics: tuple[TargetComparison, ...] = ()

    def of_kind(self, kind: Kind) -> list[CaseChange]:
        """Return the cases that fare so."""
        return [change for change in self.cases if change.kind == kind]

    @property
    def regressions(self) -> list[CaseChange]:
        """The cases that passed in the baseline and miss now."""
        return self.of_kind("regression")


def compare(baseline: Document, document: Document) -> Comparison:
    """Compare a run with a baseline.

    Args:
        baseline: the earlier result document, as `read_result` returns it.
        document: the later one; it needs no gates and no verdict.

    """
    before, now = dict(_cases(baseline)), dict(_cases(document))
    added = tuple(key for key in now if key not in before)
    vanished = tuple(key for key in before if key not in now)
    return Comparison(
        tuple(_case_change(key, before[key], record) for key, record in now.items() if key in before),
        added,
        vanished,
        tuple(_metric_changes(baseline, document)),
        (*_section_notes(baseline, document), *_case_notes(before, now), *_provenance_notes(baseline, document)),
        baseline_statistics(before, now),
    )


def comparison_section(comparison: Comparison, baseline: Document, file: str) -> dict[str, Any]:
    """Return the section `comparison` of the result file.

    Args:
        comparison: what was found.
        baseline: the earlier document.
        file: its name.

    """
    kinds: Mapping[str, Kind] = {
        "regressions": "regression",
        "worse": "worse",
        "better": "better",
        "unmeasured": "unmeasured",
        "newlyMeasured": "newly measured",
    }
    commit = baseline["provenance"].get("gitCommit")
    return {
        "baseline": {"file": file, "generatedAt": baseline["generatedAt"], "gitCommit": commit},
        "compared": len(comparison.cases),
        "same": len(comparison.of_kind("same")),
        **{key: [_change_record(change) for change in comparison.of_kind(kind)] for key, kind in kinds.items()},
        "added": [asdict(key) for key in comparison.added],
        "vanished": [asdict(key) for key in comparison.vanished],
        "metrics": [_metric_record(metric) for metric in comparison.metrics],
        "statistics": comparison_records(comparison.statistics),
        "notes": list(comparison.notes),
    }


def _change_record(change: CaseChange) -> dict[str, Any]:
    return {**asdict(change.case), "changes": list(change.changes), "reason": change.reason}


def _metric_record(metric: MetricChange) -> dict[str, Any]:
    return {
        "section": metric.section,
        "metric": metric.metric,
        "baseline": metric.before,
        "actual": metric.now,
        "change": metric.change,
    }


def _cases(document: Document) -> Iterator[tuple[CaseKey, Record]]:
    for family, section in CASE_SECTIONS.items():
        for record in document.get(section, {}).get("cases", ()):
            file = _portable(record["file"])
            yield CaseKey(family, file, record["id"], record["target"], record["trial"]), record


def _portable(file: str) -> str:
    """Return a file's name in any run: that of the whole path where it does not lie below the root folder."""
    path = PureWindowsPath(file)  # it takes both separators
    return path.name if path.anchor else file


def _case_change(key: CaseKey, before: Record, now: Record) -> CaseChange:
    worse, better = _directions(key, before, now)
    kind = _kind(before["verdict"], now["verdict"], worse=bool(worse), better=bool(better))
    if kind == "same":
        return CaseChange(key, now.get("corpus", ""), kind)
    verdict = () if before["verdict"] == now["verdict"] else (f"{before['verdict']} -> {now['verdict']}",)
    told = [_told(name, before.get(name), now.get(name)) for name in _TOLD if before.get(name) != now.get(name)]
    return CaseChange(key, now.get("corpus", ""), kind, (*verdict, *worse, *better, *told), now.get("reason", ""))


def _kind(before: str, now: str, *, worse: bool, better: bool) -> Kind:
    if not {before, now} <= _MEASURED:
        if (before in _MEASURED) == (now in _MEASURED):
            return "same"
        return "unmeasured" if before in _MEASURED else "newly measured"
    if before != now:
        return "regression" if now == "missed" else "better"
    return "worse" if worse else "better" if better else "same"


def _directions(key: CaseKey, before: Record, now: Record) -> tuple[list[str], list[str]]:
    """Return what got worse and what got better, of a case that was measured both times."""
    worse: list[str] = []
    better: list[str] = []
    if {before["verdict"], now["verdict"]} <= _MEASURED:
        for name, gain in _gains(key, before, now):
            if gain:
                (better if gain > 0 else worse).append(_told(name, before.get(name), now.get(name)))
    return worse, better


def _gains(key: CaseKey, before: Record, now: Record) -> Iterator[tuple[str, int]]:
    """Yield each ordered field with a number that is positive when it got better."""
    if key.family == "discovery":
        yield "rank", _gain(_rank(now), _rank(before))
    for names, sign in ((_HIGHER_IS_BETTER, 1), (_LOWER_IS_BETTER, -1)):
        for name in names:
            old, new = before.get(name), now.get(name)
            if isinstance(old, int | float) and isinstance(new, int | float):
                yield name, sign * _gain(old, new)


def _rank(record: Record) -> float:
    rank = record.get("rank")
    return rank if isinstance(rank, int | float) else math.inf


def _gain(old: float, new: float) -> int:
    """Return 1 for more, -1 for less; numbers of a file may be too large to subtract."""
    return (new > old) - (new < old)


def _told(name: str, before: Any, now: Any) -> str:
    return f"{name} {_value(before)} -> {_value(now)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "none" if value is None else str(value)


def _metric_changes(baseline: Document, document: Document) -> Iterator[MetricChange]:
    for section in SECTIONS:
        if section in baseline and section in document:
            before, now = (dict(_metrics(section, found[section])) for found in (baseline, document))
            for name, value in now.items():
                if name in before:
                    yield MetricChange(section, name, before[name], value)


def _metrics(section: str, content: Document) -> Iterator[tuple[str, float | None]]:
    """Yield each metric with its name, which ends in the target where there may be several."""
    if section == "toolUse":
        for target, totals in content["byTarget"].items():
            yield from ((f"{name}[{target}]", value) for name, value in totals.items() if _is_number(value))
    elif section == "discovery":
        for target, scores in by_target(content).items():
            for scope, numbers in {"overall": scores["overall"], **scores["byCategory"]}.items():
                yield from ((f"{scope}.{name}[{target}]", value) for name, value in numbers.items())
    else:
        yield from _numbers(content, ())


def _numbers(content: Document, path: tuple[str, ...]) -> Iterator[tuple[str, float | None]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, (*path, key))
        elif _is_number(value):
            yield ".".join((*path, key)), value


def _is_number(value: Any) -> bool:
    """Whether a value is a metric's: null for none, or a number of a size that metrics have."""
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    )


def _section_notes(baseline: Document, document: Document) -> Iterator[str]:
    if baseline.get("verdict") == "fail":
        yield "the baseline's own verdict is fail"
    for section in SECTIONS:
        if (section in baseline) != (section in document):
            yield f"only {'the baseline' if section in baseline else 'this run'} has {section}"


def _case_notes(before: Mapping[CaseKey, Record], now: Mapping[CaseKey, Record]) -> Iterator[str]:
    for family in CASE_SECTIONS:
        old, new = ({key.target: None for key in keys if key.family == family} for keys in (before, now))
        if old and new and old.keys() != new.keys():
            yield f"{family} was measured on {', '.join(sorted(old))} and is now on {', '.join(sorted(new))}"
    if before.keys().isdisjoint(now):
        yield "no case stands in both: nothing is compared case by case"
    elif before.keys() != now.keys():
        yield "not every case stands in both: their metrics are over different cases"


def _provenance_notes(baseline: Document, document: Document) -> Iterator[str]:
    before, now = baseline["provenance"], document["provenance"]
    for key in _PROVENANCE:
        was, is_now = before.get(key), now.get(key)
        if was != is_now and was is not None and is_now is not None:
            yield f"{key} was {_value(was)} and is {_value(is_now)}"


def regressed_by_corpus(comparison: Comparison) -> dict[str, Regressed]:
    """Return for each corpus with cases in both what its gate on regressions is to know."""
    found: dict[str, list[CaseChange]] = {}
    for change in comparison.cases:
        found.setdefault(change.corpus, []).append(change)
    return {
        corpus: Regressed(len(changes), tuple(c.case.id for c in changes if c.kind == "regression"))
        for corpus, changes in found.items()
    }
