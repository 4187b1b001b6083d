"""Run logs read back. What is torn or damaged is left out: its cases are run again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.run_log import SUFFIX, RunHeader

KEPT_RUNS = 3
_RUN_ID = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+Z-[0-9a-f]+")
_LONGEST_HEADER = 1 << 20
_KEY, _AFTER_KEY = b'{"key": ', b', "shared": "'  # a quote within a key is escaped, so the first match is the end
_SHARED = b'{"shared": '


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A run that left a log.

    Attributes:
        header: what it says of itself.
        files: its files and those that it inherited, the newest run's last.

    """

    header: RunHeader
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """A finished turn.

    Attributes:
        parts: its fingerprint's own parts.
        shared: the id of the parts that it shares with others.
        outcome: what it came to.

    """

    parts: Mapping[str, str]
    shared: str
    outcome: CaseOutcome


def logged_runs(folder: Path) -> Iterator[LoggedRun]:
    """Yield the runs that have ended, however they did, the newest first."""
    for run in _run_folders(folder):
        found = _logged_run(run)
        if found is not None and not _is_live(run):
            yield found


def run_to_resume(folder: Path, now: RunHeader) -> LoggedRun | None:
    """Return the last run of the same suites that was to run all of their items, or as many as the one that begins.

    So a run of a few cases that came between is passed over. Where there is no such run, it is the last one of any
    of the suites, or None.
    """
    suites = set(now.suites)
    runs = [run for run in logged_runs(folder) if run.header.run != now.run and suites & set(run.header.suites)]
    as_large = (
        run
        for run in runs
        if suites <= set(run.header.suites) and (run.header.whole or run.header.items >= now.items)
    )
    return next(as_large, runs[0] if runs else None)


def remove_old_runs(folder: Path, keep: int = KEPT_RUNS) -> None:
    """Remove all but the newest logs, so many of whole runs and so many of others; of a run that goes on, none."""
    seen: Counter[bool | None] = Counter()
    for run in _run_folders(folder):
        found = _logged_run(run)
        kind = None if found is None else found.header.whole
        seen[kind] += 1
        if seen[kind] > keep and not _is_live(run):
            shutil.rmtree(run, ignore_errors=True)


class LoggedTurns:
    """The turns of a run by their keys. Only where they stand is held in memory.

    Args:
        run: the run; of a key that stands in several places the last one counts.

    """

    def __init__(self, run: LoggedRun) -> None:
        self.shared: dict[str, Mapping[str, str]] = {}
        self._places: dict[bytes, tuple[int, int, int]] = {}
        self._files: list[int] = []
        for path in run.files:
            with contextlib.suppress(OSError):
                self._read(path)

    def __len__(self) -> int:
        return len(self._places)

    def pop(self, key: str) -> LoggedTurn | None:
        """Return the turn of a key and forget it; None when there is none.

        Args:
            key: the key's JSON text, as the log has it.

        Raises:
            ValueError: its line is damaged.

        """
        place = self._places.pop(key.encode("utf-8", "surrogatepass"), None)
        return None if place is None else _turn(os.pread(*place))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)
        self._files.clear()
        self._places.clear()

    def _read(self, path: Path) -> None:
        with path.open("rb") as lines:
            file = os.dup(lines.fileno())
            self._files.append(file)
            offset = 0
            for line in lines:
                if line.endswith(b"\n"):
                    self._take(line, (file, len(line), offset))
                offset += len(line)

    def _take(self, line: bytes, place: tuple[int, int, int]) -> None:
        if line.startswith(_KEY):
            end = line.find(_AFTER_KEY)
            if end > 0:
                self._places[line[len(_KEY) : end]] = place
        elif line.startswith(_SHARED):
            with contextlib.suppress(ValueError, RecursionError):
                told = json.loads(line)
                self.shared[_text(told.get("shared"))] = _texts(told.get("parts"))


def _run_folders(folder: Path) -> list[Path]:
    """Return the runs' folders, the newest first; what else lies there is left alone."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names, reverse=True) if _RUN_ID.fullmatch(name)]


def _logged_run(run: Path) -> LoggedRun | None:
    """Return what a run's folder holds; None where no header of its own can be read."""
    headers = {path: header for path in _log_files(run) if (header := _header(path)) is not None}
    own = [header for header in headers.values() if header.run == run.name]
    files = sorted(headers, key=lambda path: (headers[path].run, path.name))
    return LoggedRun(own[0], tuple(files)) if own else None


def _log_files(run: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(run) if entry.name.endswith(SUFFIX) and entry.is_file()]
    except OSError:
        return []


def _header(path: Path) -> RunHeader | None:
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER)
        return RunHeader.from_json(json.loads(line)) if line.endswith(b"\n") else None
    except (OSError, ValueError, RecursionError):
        return None


def _is_live(run: Path) -> bool:
    """Whether a process still writes one of the files that are the run's own."""
    return any(path.name.startswith(run.name) and _is_locked(path) for path in _log_files(run))


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _turn(line: bytes) -> LoggedTurn:
    try:
        entry = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    outcome = entry.get("outcome")
    if not isinstance(outcome, dict) or not isinstance(outcome.get("record"), dict):
        raise ValueError("it holds no outcome")
    passed = outcome.get("passed")
    if not isinstance(passed, bool):
        raise ValueError("its outcome is damaged")
    return LoggedTurn(
        _texts(entry.get("parts")),
        _text(entry.get("shared")),
        CaseOutcome(passed, outcome["record"], _text(outcome.get("error")), _text(outcome.get("worktree"))),
    )


def _texts(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(member, str) for member in value.values()):
        raise ValueError("its fingerprint is damaged")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value
