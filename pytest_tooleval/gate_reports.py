"""Gates as test reports: they count, fail the run and stand in JUnit with no further work."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from pytest_tooleval.gates.evaluate import GateResult
from pytest_tooleval.measures.measurement import Measurement

MOST_MISSES = 20


@dataclass(frozen=True, slots=True)
class Announcement:
    """A result that no item stands for."""

    nodeid: str
    file: str
    line: int
    outcome: Literal["passed", "failed", "skipped"]
    text: str = ""


def gate_announcement(result: GateResult, measurements: Sequence[Measurement]) -> Announcement:
    """Return what is to be reported of a gate: of one that failed also each miss that was left to it."""
    gate = result.planned.gate
    outcome: Literal["passed", "failed", "skipped"] = "skipped" if result.skipped else "failed"
    if result.passed:
        outcome = "passed"
    nodeid = f"{gate.file}::{result.planned.name}"
    text = result.skipped or "\n".join([result.detail, *_misses(result, measurements)])
    return Announcement(nodeid, gate.file, gate.line, outcome, text)


def _misses(result: GateResult, measurements: Sequence[Measurement]) -> Iterator[str]:
    if not result.failed:
        return
    missed = [m for m in measurements if m.deferred and result.planned.judges(m)]
    for measurement in missed[:MOST_MISSES]:
        yield f"  {measurement.nodeid}: {measurement.reason}"
    if len(missed) > MOST_MISSES:
        yield f"  and {len(missed) - MOST_MISSES} more"


def announce(session: pytest.Session, announcements: Iterable[Announcement]) -> None:
    """Report results as if items had given them, and keep their ids out of the last-failed set.

    No file backs such an id, and `--lf` would run everything because of it.
    """
    listed = list(announcements)
    hook = session.config.hook
    for position, announcement in enumerate(listed):
        report = _report(announcement)
        hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        if position == 0:
            session.testscollected += len(listed)  # only now: the start of a line ends the line before, at 100 %
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
        _tell_last_failed(session.config, replace(announcement, outcome="passed"))


def remember_misses(
    config: pytest.Config, failed: Iterable[GateResult], measurements: Iterable[Measurement]
) -> None:
    """Put the misses that were left to failed gates into the last-failed set, so that `--lf` runs them."""
    gates = list(failed)
    remember(config, (m for m in measurements if any(gate.planned.judges(m) for gate in gates)))


def remember(config: pytest.Config, measurements: Iterable[Measurement]) -> None:
    """Put those of the measurements that were left to a gate into the last-failed set."""
    for measurement in measurements:
        if measurement.deferred:
            _tell_last_failed(config, Announcement(measurement.nodeid, measurement.file, 1, "failed"))


def _tell_last_failed(config: pytest.Config, announcement: Announcement) -> None:
    """Let pytest's own plugin take a result for its last-failed set, and nobody else hear of it."""
    plugin = config.pluginmanager.get_plugin("lfplugin")
    if plugin is not None:
        plugin.pytest_runtest_logreport(_report(announcement))


def _report(announcement: Announcement) -> pytest.TestReport:
    now = time.time()
    longrepr: Any = announcement.text or None
    if announcement.outcome == "skipped":
        longrepr = (announcement.file, announcement.line, f"Skipped: {announcement.text}")
    name = announcement.nodeid.split("::", 1)[1]
    return pytest.TestReport(
        nodeid=announcement.nodeid,
        # Not the name itself: in a domain that ends the node id pytest would take dots for separators.
        location=(announcement.file, announcement.line - 1, f"gate {name}"),
        keywords={name: 1},
        outcome=announcement.outcome,
        longrepr=longrepr,
        when="call",
        duration=0.0,
        start=now,
        stop=now,
    )
