"""The result files of the parts of a run, put together: what the whole run would have said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.schema import Schema
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.gates.evaluate import GateResult, evaluate_gates
from pytest_tooleval.gates.plan import NO_BASELINE, PlannedGate
from pytest_tooleval.gates.scopes import Scopes
from pytest_tooleval.gates.thresholds import REGRESSIONS, Gate
from pytest_tooleval.measures.gold import GOLD_METRICS
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_use import tool_use_metrics
from pytest_tooleval.reports.case_record import measurement_of, whole_workload_record
from pytest_tooleval.reports.comparison import (
    CASE_SECTIONS,
    Comparison,
    compare,
    comparison_section,
    regressed_by_corpus,
)
from pytest_tooleval.reports.result_file import document_of
from pytest_tooleval.reports.result_reader import check_keeps, read_result
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.whole_run import WholeRun, differences, gate_from_json

MOST_DIFFERENCES = 10
_PART_SCHEMA = Schema("result", "part")
_WORKLOAD_SCHEMA = Schema("result", "workloadCase")


@dataclass(frozen=True, slots=True)
class Part:
    """A result file of a part of a run.

    Attributes:
        name: the file, as the user named it.
        document: its content.
        whole: the run that it is a part of.
        gates: the gates, and how much of their scopes the part covers.
        measurements: what it measured; whether a miss is left to a gate is not decided yet.

    """

    name: str
    document: Mapping[str, Any]
    whole: WholeRun
    gates: tuple[PlannedGate, ...]
    measurements: tuple[Measurement, ...]

    @property
    def selected(self) -> int:
        """The items that were to be run."""
        return int(self.document["plan"]["selected"])

    @property
    def origin(self) -> Mapping[str, Any]:
        """The section `provenance`."""
        provenance: Mapping[str, Any] = self.document["provenance"]
        return provenance


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a run is compared with.

    Attributes:
        file: its name.
        document: its content.

    """

    file: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """A run that was put together.

    Attributes:
        result: the run.
        document: its result file.
        comparison: how it fares against the baseline, where there is one.

    """

    result: SuiteResult
    document: Mapping[str, Any]
    comparison: Comparison | None = None


def read_part(path: Path) -> Part:
    """Read the result file of a part.

    Raises:
        ConfigError: it is no result file, does not say of which run it is a part, or is damaged.

    """
    document = read_result(path)
    if "plan" not in document:
        hint = "it was written by an earlier version; run that part again"
        raise ConfigError(f"{path} does not say of which run it is a part: {hint}")
    check_keeps(_PART_SCHEMA, path, document)
    plan = document["plan"]
    workloads = [whole_workload_record(record, document) for record in plan["workloads"]]
    for workload in workloads:
        check_keeps(_WORKLOAD_SCHEMA, path, workload)
    gates = tuple(map(gate_from_json, plan["gates"]))
    unknown = next((planned.gate for planned in gates if not _is_known(planned.gate)), None)
    if unknown is not None:
        raise ConfigError(f"{path} has a gate over {unknown.name}, which this version does not know")
    part = Part(str(path), document, WholeRun.from_json(plan), gates, tuple(_measurements(document, workloads)))
    _check_evaluates(part)
    return part


def _check_evaluates(part: Part) -> None:
    """Refuse records that the schema lets pass and from which no metrics can be made.

    Raises:
        ConfigError: a record is damaged.

    """
    result = _result([part], part.measurements)
    try:
        document_of(result, part.document["generatedAt"], {})
        _gate_results(replace(result, planned=part.gates), None)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{part.name} is a damaged result file: its cases cannot be evaluated: {what}") from None


def merge(parts: Sequence[Part], baseline: Baseline | None = None, *, partial: bool = False) -> Merged:
    """Put the parts of a run together; their order does not matter.

    Args:
        parts: one or more.
        baseline: what the run is compared with.
        partial: whether together they are meant to be less than the whole run.

    Raises:
        ConfigError: they are not parts of one run, or two have the same case with different results.

    """
    for part in parts[1:]:
        _check_same_run(parts[0], part)
    ordered = sorted(parts, key=_position)
    measurements = _without_repeats(ordered)
    repeats = sum(len(part.measurements) for part in ordered) - len(measurements)
    selected = sum(part.selected for part in ordered) - repeats
    gates = list(_merged_gates(ordered, measurements, has_baseline=baseline is not None))
    result = _result(ordered, [_decided(m, gates, ordered[0].whole) for m in measurements.values()])
    result = replace(result, selected=selected, planned=tuple(gates))
    if not partial and selected < ordered[0].whole.items:
        result = replace(result, not_whole=f"not whole: {selected} of {ordered[0].whole.items} items")
    return _evaluated(result, ordered, baseline)


def baseline_of(parts: Iterable[Part]) -> tuple[str, str] | None:
    """Return name and time of the baseline that the parts were compared with, or None when they were not.

    Raises:
        ConfigError: they were compared with different ones.

    """
    found = {part.name: _compared_with(part) for part in parts}
    names = iter(found)
    first = next(names)
    for other in names:
        if found[other] != found[first]:
            raise ConfigError(
                f"{first} and {other} were not compared with the same baseline; name one with --baseline FILE"
            )
    return found[first]


def _compared_with(part: Part) -> tuple[str, str] | None:
    told = part.document.get("comparison", {}).get("baseline")
    return (str(told.get("file")), str(told.get("generatedAt"))) if isinstance(told, dict) else None


def _measurements(document: Mapping[str, Any], workloads: Iterable[Mapping[str, Any]]) -> Iterator[Measurement]:
    for family, section in CASE_SECTIONS.items():
        for record in document.get(section, {}).get("cases", ()):
            yield replace(measurement_of(family, record), deferred=False)
    for record in workloads:
        yield measurement_of(record["family"], {name: record[name] for name in record if name != "family"})


def _is_known(gate: Gate) -> bool:
    """Whether there is a metric of the gate's name."""
    if gate.family == REGRESSIONS or gate.tracked_only:
        return True
    if gate.family == "tool_use":
        return gate.metric in {"mustPass", *tool_use_metrics(())}
    return gate.family in GOLD_METRICS and gate.metric in GOLD_METRICS[gate.family](())


def _position(part: Part) -> tuple[Any, ...]:
    """Return what parts are sorted by: their first case, then whatever tells them apart."""
    first = min((measurement.order({}) for measurement in part.measurements), default=())
    return first == (), first, part.document["generatedAt"], len(part.measurements), part.origin["host"], part.name


def _check_same_run(one: Part, other: Part) -> None:
    found = [*differences(one.whole, other.whole), *_other_differences(one, other)]
    if found:
        more = [f"and {len(found) - MOST_DIFFERENCES} more"] if len(found) > MOST_DIFFERENCES else []
        lines = "".join(f"\n  {line}" for line in [*found[:MOST_DIFFERENCES], *more])
        raise ConfigError(f"{one.name} and {other.name} are not parts of one run:{lines}")


def _other_differences(one: Part, other: Part) -> Iterator[str]:
    for key in ("gitCommit", "versions"):
        if one.origin[key] != other.origin[key]:
            yield f"{key}: {_told(one.origin[key])} and {_told(other.origin[key])}"
    if list(map(_scope, one.gates)) != list(map(_scope, other.gates)):
        yield "the gates are not the same"


def _scope(planned: PlannedGate) -> PlannedGate:
    """Return a gate without what is different in each part."""
    missing_leg = "" if planned.gate.family == REGRESSIONS else planned.missing_leg
    return replace(planned, selected=0, skipped=0, missing_leg=missing_leg)


def _told(value: Any) -> str:
    return (
        ", ".join(f"{name} {number}" for name, number in value.items()) if isinstance(value, dict) else str(value)
    )


def _without_repeats(parts: Iterable[Part]) -> dict[str, Measurement]:
    """Return the measurements by their node ids.

    Raises:
        ConfigError: two parts have the same case with different results.

    """
    found: dict[str, Measurement] = {}
    origin: dict[str, str] = {}
    for part in parts:
        for measurement in part.measurements:
            earlier = found.setdefault(measurement.nodeid, measurement)
            name = origin.setdefault(measurement.nodeid, part.name)
            if earlier != measurement:
                raise ConfigError(
                    f"{name} and {part.name} have different results of {measurement.nodeid}: "
                    "each case belongs into one part"
                )
    return found


def _merged_gates(
    parts: Sequence[Part], measurements: Mapping[str, Measurement], *, has_baseline: bool
) -> Iterator[PlannedGate]:
    """Yield each gate with how much of its scope the parts cover together.

    A case counts as selected when all its trials are there. What a part was to run and did not end is added: it was
    selected too.
    """
    whole = parts[0].whole
    together = Scopes(measurements.values())
    single = [Scopes(part.measurements) for part in parts]
    for position, planned in enumerate(parts[0].gates):
        scope = together.of(planned.gate, planned.target)
        ended = _whole_cases(scope, whole)
        lost = sum(
            part.gates[position].selected - len(_whole_cases(own.of(planned.gate, planned.target), whole))
            for part, own in zip(parts, single, strict=True)
        )
        skipped = {_case(m) for m in scope if m.verdict == "skipped"} & ended
        missing_leg = planned.missing_leg
        if planned.gate.family == REGRESSIONS:
            missing_leg = "" if has_baseline else NO_BASELINE
        yield replace(
            planned,
            selected=min(planned.cases, len(ended) + max(0, lost)),
            skipped=len(skipped),
            missing_leg=missing_leg,
        )


def _case(measurement: Measurement) -> tuple[str, ...]:
    """Return what the trials of one case on one target have in common."""
    return measurement.family, measurement.file, measurement.id, measurement.target


def _whole_cases(scope: Iterable[Measurement], whole: WholeRun) -> set[tuple[str, ...]]:
    """Return the cases of which every trial is there."""
    trials = Counter(map(_case, scope))
    return {case for case, number in trials.items() if number >= whole.trials_of(case[0])}


def _decided(measurement: Measurement, gates: Iterable[PlannedGate], whole: WholeRun) -> Measurement:
    """Return a miss as it would be in the whole run: left to a gate only where one decides about it."""
    if measurement.verdict != "missed":
        return measurement
    is_left = not whole.strict and any(gate.whole and gate.judges(measurement) for gate in gates)
    return replace(measurement, deferred=is_left)


def _result(parts: Sequence[Part], measurements: Sequence[Measurement]) -> SuiteResult:
    whole = parts[0].whole
    used = {(m.family, m.target) for m in measurements}
    names = {family: [n for n in known if (family, n) in used] for family, known in whole.targets.items()}
    targets = tuple(names.pop("tool_use", ()))
    gold_targets = tuple(dict.fromkeys(name for known in names.values() for name in known))
    positions = {target: position for position, target in enumerate((*targets, *gold_targets))}
    return SuiteResult(
        measurements=tuple(sorted(measurements, key=lambda measurement: measurement.order(positions))),
        targets=targets,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.document["notes"])),
        interrupted=any(part.document["interrupted"] for part in parts),
        gold_targets=gold_targets,
        provenance=_gold_provenance(parts, measurements),
        whole=whole,
    )


def _gold_provenance(parts: Sequence[Part], measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return what the gold sets of all parts were measured with."""
    folders = sorted({m.corpus for m in measurements if m.family != "tool_use"})
    corpora = parts[0].whole.corpora
    versions = {folder: corpora[folder].version for folder in folders if folder in corpora}
    told = {key: [part.origin[key] for part in parts] for key in ("model", "tokenEstimator", "semanticRan")}
    ran = [value for value in told.pop("semanticRan") if value is not None]
    return {
        "corpusVersion": merged_version(versions),
        **{key: next((value for value in values if value is not None), None) for key, values in told.items()},
        "semanticRan": any(ran) if ran else None,
    }


def merged_version(versions: Mapping[str, int | str | None]) -> Any:
    """Return the version of the only corpus, or those of several by their folders; None when there is none."""
    if all(version is None for version in versions.values()):
        return None
    return next(iter(versions.values())) if len(versions) == 1 else dict(sorted(versions.items()))


def _evaluated(result: SuiteResult, parts: Sequence[Part], baseline: Baseline | None) -> Merged:
    origin = {
        **{key: parts[0].origin[key] for key in ("gitCommit", "host", "versions")},
        "host": ", ".join(sorted({str(part.origin["host"]) for part in parts})),
    }
    time = max(str(part.document["generatedAt"]) for part in parts)
    comparison = None if baseline is None else compare(baseline.document, document_of(result, time, origin))
    gates = _gate_results(result, comparison)
    result = replace(result, gates=tuple(gates))
    section = None
    if comparison is not None and baseline is not None:
        section = comparison_section(comparison, baseline.document, baseline.file)
    return Merged(result, document_of(result, time, origin, section), comparison)


def _gate_results(result: SuiteResult, comparison: Comparison | None) -> list[GateResult]:
    min_measured = 1.0 if result.whole is None else result.whole.min_measured
    against = None if comparison is None else regressed_by_corpus(comparison)
    return evaluate_gates(result.planned, result.measurements, min_measured, against)
