"""The result file: strict JSON, the same bytes for the same run but for times."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_tooleval.gates.evaluate import GateResult
from pytest_tooleval.measures.tool_use import ToolUseTotals
from pytest_tooleval.reports.case_record import WORKLOAD_SECTIONS, case_record, workload_record
from pytest_tooleval.reports.confusion_summary import confusion_section
from pytest_tooleval.reports.cost_summary import cost_fields
from pytest_tooleval.reports.gold_sections import gold_sections
from pytest_tooleval.reports.result_reader import SCHEMA
from pytest_tooleval.reports.statistics_sections import comparison_records, trial_fields
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.suite_statistics import suite_statistics
from pytest_tooleval.reports.text_file import write_text
from pytest_tooleval.reports.tool_set_summary import tool_set_fields
from pytest_tooleval.reports.whole_run import gate_to_json

_GIT_SECONDS = 5.0


def result_document(result: SuiteResult, root: Path, comparison: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result file's content.

    Args:
        result: the run.
        root: the root folder, whose git commit is noted.
        comparison: the section on the change against a baseline, where there is one.

    """
    return document_of(result, datetime.now(UTC).isoformat(timespec="seconds"), _origin(root), comparison)


def document_of(
    result: SuiteResult, generated_at: str, origin: Mapping[str, Any], comparison: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the result file's content of a run that may have been measured elsewhere and before.

    Args:
        result: the run.
        generated_at: when, in UTC.
        origin: `gitCommit`, `host` and `versions`.
        comparison: the section on the change against a baseline, where there is one.

    """
    sections: dict[str, Any] = {}
    statistics = suite_statistics(result)
    if tool_use := result.of_family("tool_use"):
        by_target = {
            target: {
                **_totals(totals),
                **cost_fields(result, target),
                **tool_set_fields(result, target),
                **trial_fields(statistics.by_target[target]),
            }
            for target, totals in result.totals().items()
        }
        sections["toolUse"] = {
            "byTarget": by_target,
            "confusion": confusion_section(result),
            "cases": [case_record(measurement) for measurement in tool_use],
        }
    return {
        "schema": SCHEMA,
        "generatedAt": generated_at,
        "provenance": _provenance(result, origin),
        **sections,
        **gold_sections(result, case_record),
        **({"comparisons": comparison_records(statistics.comparisons)} if statistics.comparisons else {}),
        **({} if comparison is None else {"comparison": comparison}),
        "gates": [_gate(gate) for gate in result.gates],
        "notes": list(result.notes),
        "interrupted": result.interrupted,
        **_plan(result),
        "verdict": "pass" if result.passed else "fail",
    }


def write_result(path: Path, document: Mapping[str, Any]) -> None:
    """Write a result file in one step: a reader finds the old file or the new one, never a part.

    Raises:
        OSError: the folder cannot be written to.

    """
    write_text(path, json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """Return the text of a result file: strict JSON, with null for what JSON has no number for."""
    try:
        return _dumped(document)
    except (ValueError, TypeError):
        return _dumped(_finite(document))  # a copy of everything, which most documents need not pay for


def _dumped(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _provenance(result: SuiteResult, origin: Mapping[str, Any]) -> dict[str, Any]:
    known = ("corpusVersion", "model", "semanticRan", "tokenEstimator")
    return {
        "targets": [*result.targets, *result.gold_targets],
        **{key: result.provenance.get(key) for key in known},
        **origin,
    }


def _plan(result: SuiteResult) -> dict[str, Any]:
    """Return the section that says of which run this is a part, so that parts can be put together."""
    if result.whole is None:
        return {}
    plan = {
        **result.whole.to_json(),
        "selected": result.selected,
        "gates": [gate_to_json(planned) for planned in result.planned],
        "workloads": [workload_record(m) for m in result.measurements if m.family in WORKLOAD_SECTIONS],
    }
    return {"plan": plan}


def _origin(root: Path) -> dict[str, Any]:
    return {
        "gitCommit": _git_commit(root),
        "host": platform.node(),
        "versions": {
            "pytest-tooleval": metadata.version("pytest-tooleval"),
            "pytest": metadata.version("pytest"),
            "python": platform.python_version(),
        },
    }


def _git_commit(root: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def _totals(totals: ToolUseTotals) -> dict[str, Any]:
    return {
        "n": totals.n,
        "measured": totals.measured,
        "accuracy": totals.accuracy,
        "passRate": totals.pass_rate,
        "calls": _whole(totals.calls),
        "redundant": _whole(totals.redundant),
        "errors": _whole(totals.errors),
        "tokens": _whole(totals.tokens),
        "latencySeconds": totals.seconds,
    }


def _whole(number: float | None) -> float | int | None:
    return int(number) if number is not None and number == int(number) else number


def _gate(result: GateResult) -> dict[str, Any]:
    gate = result.planned.gate
    shown: dict[str, Any] = {
        "name": result.planned.name,
        "file": gate.file,
        "comparator": gate.comparator,
        "threshold": gate.threshold,
        "actual": result.actual,
        "pass": result.passed,
    }
    if result.skipped:
        shown |= {"skipped": True, "skipReason": result.skipped}
    if result.detail:
        shown["detail"] = result.detail
    return shown


def _finite(value: Any) -> Any:
    """Return a JSON value in which null stands for what JSON has no number for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value
