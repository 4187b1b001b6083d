"""Snapshots: each run's result under its time, and the baseline that a whole run that passes refreshes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_tooleval.reports.result_file import json_text
from pytest_tooleval.reports.scoreboard import scoreboard
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.text_file import why_not_written, write_text

SNAPSHOTS = "snapshots"
BASELINE = "baseline.json"
SCOREBOARD = "BENCHMARKS.md"
_TIMED = "performance"


def write_snapshot(folder: Path, document: Mapping[str, Any], now: datetime, keep_baseline: str) -> Iterator[str]:
    """Write a run's snapshot, then baseline and scoreboard.

    Args:
        folder: where `snapshots/` and `BENCHMARKS.md` are.
        document: the result document.
        now: the time of the snapshot's name, in UTC.
        keep_baseline: why baseline and scoreboard are to be left alone; empty when they are to be refreshed.

    Yields:
        A line for the summary for each file: that it was written, or why it was not. Nothing is raised: a run is
        not lost because its snapshot is. What stands in the folder otherwise is never touched.

    """
    path = folder / SNAPSHOTS / f"{time_name(now)}.json"
    baseline, board = folder / SNAPSHOTS / BASELINE, folder / SCOREBOARD
    text = json_text(document)
    try:
        write_text(path, text)
        yield f"snapshot: {path}"
        if keep_baseline:
            yield f"baseline left alone: {keep_baseline}"
            return
        path = baseline
        write_text(path, text)
        path = board
        write_text(path, scoreboard(json.loads(text)))
    except OSError as error:
        yield f"{path} could not be written: {why_not_written(error)}"
    else:
        yield f"baseline refreshed: {baseline} and {board}"


def time_name(now: datetime) -> str:
    """Return a time as a file's name; names sort as the times do."""
    return now.strftime("%Y-%m-%dT%H-%M-%S.%fZ")


def why_not_baseline(result: SuiteResult) -> str:
    """Return why later runs are not to be compared with this one, else an empty string.

    A performance workload that was skipped does not count: other processes would have been timed too.
    """
    if result.interrupted:
        return "the run was interrupted"
    if result.left_out:
        return "; ".join(result.left_out)
    errored = sum(m.verdict == "error" for m in result.measurements)
    if errored:
        return f"{_items(errored)} errored"
    skipped = [m for m in result.measurements if m.verdict == "skipped" and m.family != _TIMED]
    if skipped:
        return f"{_items(len(skipped))} skipped: {skipped[0].reason}"
    if len(result.measurements) < result.selected:
        return f"{len(result.measurements)} of {_items(result.selected)} ended"
    return "" if result.passed else "the verdict is fail"


def _items(number: int) -> str:
    return "1 item" if number == 1 else f"{number} items"
