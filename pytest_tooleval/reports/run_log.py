"""The run log: each finished turn is a line of JSON, written when it ends, so that a killed run can be resumed.

A run has a folder of its own, and each process of it a file there, whose first line is a header. A line is one
`write`: it outlives the process, but not a power failure, for nothing is synced to the disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_tooleval.measures.fingerprint import Fingerprint, SharedHashes
from pytest_tooleval.measures.outcome import CaseOutcome

FORMAT = 1
SUFFIX = ".jsonl"
_TIME = "%Y-%m-%dT%H-%M-%S.%fZ"

JsonText: TypeAlias = Callable[[Any], str]
"""Gives a JSON value as text on one line, secrets redacted; the same text for the same value."""


class TurnKey(NamedTuple):
    """Which turn it is; the same in every run.

    Attributes:
        corpus: the corpus that the case belongs to, as a path relative to the root folder.
        family: the case's family.
        id: the case.
        target: what it is run on.
        trial: 1-based repetition.

    """

    corpus: str
    family: str
    id: str
    target: str
    trial: int


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a log says of its run.

    Attributes:
        run: the run's id, which sorts by time.
        suites: the suites that were collected, relative to the root folder.
        items: how many items were to be run.
        whole: whether these are all items of the suites.
        resumes: the id of the run that it resumes, else empty.
        began: the id of the first run of a chain of resumed ones; its own where it resumes none.

    """

    run: str
    suites: tuple[str, ...]
    items: int
    whole: bool
    resumes: str = ""
    began: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the first line of a log as a JSON object."""
        times = {"startedAt": started_at(self.run), "firstStartedAt": started_at(self.began or self.run)}
        return {"format": FORMAT, **asdict(self), **times}

    @classmethod
    def from_json(cls, value: Any) -> RunHeader:
        """Rebuild what `to_json` gave.

        Raises:
            ValueError: it is none, or of another format.

        """
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise ValueError(f"no header of format {FORMAT}")
        run, suites, items, whole = (value.get(name) for name in ("run", "suites", "items", "whole"))
        earlier = [value.get("resumes"), value.get("began")]
        if not isinstance(suites, list) or not isinstance(items, int) or not isinstance(whole, bool):
            raise ValueError("the header is damaged")
        if not all(isinstance(text, str) for text in (run, *suites, *earlier)):
            raise ValueError("the header is damaged")
        return cls(str(run), tuple(suites), items, whole, *map(str, earlier))


def new_run_id(now: datetime) -> str:
    """Return the id of a run that begins now, different from that of a run which begins at the same time."""
    return f"{now.astimezone(UTC).strftime(_TIME)}-{secrets.token_hex(3)}"


def started_at(run: str) -> str:
    """Return the time in a run's id, as `2026-01-02 03:04:05 UTC`; of what is no such id the text itself."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(run.rpartition("-")[0], _TIME).strftime("%Y-%m-%d %H:%M:%S UTC")
    return run


class RunLog:
    """The log of one process of a run. Any thread may append.

    What goes wrong is never raised: a case does not fail because its log does. It is told once, by `warning`.

    Args:
        folder: where every run has its folder.
        header: what the log says of the run.
        process: the process's name, unique in the run.
        json_text: how values are written.
        inherited: the files of the run that is resumed. They are linked into this run's folder, so that it can be
            resumed again whatever becomes of the other.

    Attributes:
        warning: the first thing that went wrong, else empty.

    """

    def __init__(
        self, folder: Path, header: RunHeader, process: str, json_text: JsonText, inherited: Iterable[Path] = ()
    ) -> None:
        self.warning = ""
        self._path = folder / header.run / f"{header.run}.{process}{SUFFIX}"
        self._json_text = json_text
        self._lock = threading.Lock()
        self._shared: set[str] = set()
        self._torn = False
        self._file: int | None = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._inherit(inherited)
            self._file = _opened(self._path)
        except OSError as error:
            self._warn(_reason(error))
        if not self._write(json.dumps(header.to_json())):
            self.close()  # without a header nobody would read the rest

    def append(self, key: TurnKey, fingerprint: Fingerprint, outcome: CaseOutcome) -> None:
        """Write a finished turn; of one that was skipped nothing is written, for there is nothing to take."""
        if outcome.skipped:
            return
        try:
            line = self._entry(key, fingerprint, outcome)
        except (TypeError, ValueError, RecursionError) as error:
            self._warn(f"the turn of {key.id} is not JSON: {error}")
            return
        with self._lock:
            self._tell_shared(fingerprint.shared)
            self._write(line)

    def close(self) -> None:
        """Write no more; what a turn that is still under way appends later is dropped."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _entry(self, key: TurnKey, fingerprint: Fingerprint, outcome: CaseOutcome) -> str:
        """Return a turn as JSON; the key comes first, so that a reader finds it without decoding the record."""
        result = {
            "passed": outcome.passed,
            "error": outcome.error,
            "worktree": outcome.worktree,
            "record": dict(outcome.record),
        }
        head = f'{{"key": {self._json_text(list(key))}, "shared": "{fingerprint.shared.id}"'
        return f'{head}, "parts": {json.dumps(fingerprint.own)}, "outcome": {self._json_text(result)}}}'

    def _tell_shared(self, shared: SharedHashes) -> None:
        """Write the shared parts once, before the first turn that has them."""
        if shared.id not in self._shared:
            line = json.dumps({"shared": shared.id, "parts": dict(shared.parts)})
            if self._write(line):
                self._shared.add(shared.id)

    def _write(self, line: str) -> bool:
        """Write a line, after the end of one that was not written whole, and return whether it is whole."""
        if self._file is None:
            return False
        repair = b"\n" if self._torn else b""
        data = b"%b%b\n" % (repair, line.encode("utf-8", "surrogatepass"))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:] if written else data)
        except OSError as error:
            self._torn = written != len(repair)
            self._warn(_reason(error))
            return False
        self._torn = False
        return True

    def _inherit(self, files: Iterable[Path]) -> None:
        for file in files:
            try:
                _link_or_copy(file, self._path.parent / file.name)
            except OSError as error:
                self._warn(f"{file} could not be taken over: {_reason(error)}")

    def _warn(self, what: str) -> None:
        self.warning = self.warning or f"the run log {self._path}: {what}; cases that it lacks cannot be resumed"


def _opened(path: Path) -> int:
    """Open a new file, locked as long as its process lives: so others know that the run goes on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
    with contextlib.suppress(OSError):  # a file system without locks: the run looks finished to others
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _link_or_copy(file: Path, place: Path) -> None:
    """Give a file a second name, or copy it where that is not possible; another process may do the same."""
    try:
        os.link(file, place)
    except FileExistsError:
        return
    except OSError:
        copy = place.with_name(f"{place.name}.{os.getpid()}.part")
        shutil.copyfile(file, copy)
        copy.replace(place)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
