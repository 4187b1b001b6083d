"""The record of a case in the result file, and the measurement that it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_tooleval.measures.measurement import Measurement

WORKLOAD_SECTIONS = {"tokens": "tokenEconomy", "performance": "performance", "cache": "cache"}
"""Families whose sections hold what one case of each corpus measured, in place of a list of cases."""

_FIELDS = ("id", "target", "trial", "corpus", "file", "index", "nodeid", "tags", "verdict", "reason", "deferred")


def case_record(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as the result file has it: its own fields, then those of its family, which it lacks."""
    own = {name: getattr(measurement, name) for name in _FIELDS} | {"tags": list(measurement.tags)}
    kept = {"worktree": measurement.worktree} if measurement.worktree else {}
    return {**own, **kept, **measurement.record}


def measurement_of(family: str, record: Mapping[str, Any]) -> Measurement:
    """Return the measurement that a record was made of.

    Args:
        family: the family, which the record's section says.
        record: what `case_record` gave, checked.

    """
    own = {name: record[name] for name in _FIELDS} | {"tags": tuple(record["tags"])}
    rest = {name: value for name, value in record.items() if name not in _FIELDS and name != "worktree"}
    return Measurement(family=family, worktree=record.get("worktree", ""), record=rest, **own)


def workload_record(measurement: Measurement) -> dict[str, Any]:
    """Return what the section of a workload's family does not say of it."""
    told = {"pass": measurement.record["pass"]} if "pass" in measurement.record else {}
    return {"family": measurement.family, **case_record(replace(measurement, record=told))}


def whole_workload_record(record: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload's record with what its family's section says.

    Args:
        record: what `workload_record` gave, checked.
        document: the result file that it stands in.

    """
    if record["verdict"] not in {"passed", "missed"}:
        return dict(record)
    section = document.get(WORKLOAD_SECTIONS[record["family"]], {})
    found = section.get("byCorpus", {record["corpus"]: section}).get(record["corpus"], {})
    return {**record, **found}
