"""Run logs that several tests write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pytest_tooleval.measures.fingerprint import Fingerprint, SharedHashes
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.redaction import Redaction
from pytest_tooleval.reports.run_log import RunHeader, RunLog, TurnKey, new_run_id

SECRET = "sk-0123456789abcdef"
JSON_TEXT = Redaction.from_environment({"A_KEY": SECRET}).json_text
SHARED = SharedHashes.of({"model": "m", "tool grep": "1"})
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def header(
    minutes: float = 0, suites: tuple[str, ...] = ("evals",), items: int = 10, *, whole: bool = True
) -> RunHeader:
    return RunHeader(new_run_id(NOON + timedelta(minutes=minutes)), suites, items, whole)


def key(case_id: str, trial: int = 1) -> TurnKey:
    return TurnKey("evals", "tool_use", case_id, "openai:m", trial)


def fingerprint(task: str = "t", shared: SharedHashes = SHARED, **parts: str) -> Fingerprint:
    return Fingerprint({"task": task, **parts}, shared)


def outcome(answer: Any = "ok", *, passed: bool = True, error: str = "", worktree: str = "") -> CaseOutcome:
    return CaseOutcome(passed, {"answer": answer, "tokens": 7}, error, worktree)


def written(folder: Path, run: RunHeader, *ids: str, process: str = "main") -> RunLog:
    """Return a log that holds a turn of each id; it is still open."""
    log = RunLog(folder, run, process, JSON_TEXT)
    for case_id in ids:
        log.append(key(case_id), fingerprint(), outcome(case_id))
    return log


def write(folder: Path, run: RunHeader, *ids: str, process: str = "main") -> Path:
    """Write a log that holds a turn of each id, and return its file."""
    log = written(folder, run, *ids, process=process)
    log.close()
    assert not log.warning
    return folder / run.run / f"{run.run}.{process}.jsonl"
