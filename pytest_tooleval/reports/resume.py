"""A run that takes what an earlier one has finished, and says what it took and what it runs again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_tooleval.measures.fingerprint import Fingerprint, what_changed
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.run_log import JsonText, RunHeader, TurnKey, started_at
from pytest_tooleval.reports.run_log_reader import LoggedRun, LoggedTurn, LoggedTurns, run_to_resume

MOST_REASONS = 5
_MOST_CHANGES = 3
ERRED = "error"
DAMAGED = "damaged line in the log"


@dataclass(frozen=True, slots=True)
class Rerun:
    """A case that stands in the log and is to be run again.

    Attributes:
        reason: why, in words.

    """

    reason: str


@dataclass(frozen=True, slots=True)
class ResumeCounts:
    """What one process, or all of a run together, took from the log.

    Attributes:
        run: the id of the run that is resumed, empty when there is none.
        taken: cases whose outcome was taken.
        unfinished: cases that the log lacks.
        again: cases that are run again, by the reason.

    """

    run: str = ""
    taken: int = 0
    unfinished: int = 0
    again: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: ResumeCounts) -> ResumeCounts:
        return ResumeCounts(
            self.run or other.run,
            self.taken + other.taken,
            self.unfinished + other.unfinished,
            Counter(self.again) + Counter(other.again),
        )

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {
            "run": self.run,
            "taken": self.taken,
            "unfinished": self.unfinished,
            "again": dict(self.again),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ResumeCounts:
        """Rebuild what `to_plain` gave."""
        return cls(**plain)

    @property
    def summary(self) -> str:
        """What was taken from which run, and why the rest was run."""
        if not self.run:
            return "resumed: nothing, for no earlier run of these suites left a log; every case is run"
        taken = f"{_cases(self.taken)} taken from the run of {started_at(self.run)}"
        rest = [f"{self.unfinished} had not finished"] if self.unfinished else []
        if self.again:
            rest.append(f"{sum(self.again.values())} run again: {', '.join(self._reasons())}")
        return "; ".join([f"resumed: {taken}", *rest])

    def _reasons(self) -> Iterator[str]:
        ordered = sorted(self.again.items(), key=lambda entry: (-entry[1], entry[0]))
        yield from (f"{reason} ({number})" for reason, number in ordered[:MOST_REASONS])
        if len(ordered) > MOST_REASONS:
            yield f"other reasons ({sum(number for _, number in ordered[MOST_REASONS:])})"


class Resumed:
    """The outcomes of an earlier run; any thread may take them.

    Args:
        run: the earlier run, or None when there is none to resume.
        json_text: how keys are written in logs.

    """

    def __init__(self, run: LoggedRun | None, json_text: JsonText) -> None:
        self._run = run
        self._json_text = json_text
        self._turns = None if run is None else LoggedTurns(run)
        self._lock = threading.Lock()
        self._counts = ResumeCounts("" if run is None else run.header.run)

    @classmethod
    def last_run(cls, folder: Path, now: RunHeader, json_text: JsonText) -> Resumed:
        """Find the run to resume; see `run_to_resume`.

        Args:
            folder: where every run has its folder.
            now: the run that begins.
            json_text: how keys are written in logs.

        """
        return cls(run_to_resume(folder, now), json_text)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the log of the new run inherits."""
        return () if self._run is None else self._run.files

    def header(self, now: RunHeader) -> RunHeader:
        """Return the new run's header with the run that it resumes."""
        if self._run is None:
            return now
        earlier = self._run.header
        return replace(now, resumes=earlier.run, began=earlier.began or earlier.run)

    @property
    def counts(self) -> ResumeCounts:
        """What was taken and what was not, until now."""
        with self._lock:
            return self._counts

    def take(self, key: TurnKey, fingerprint: Fingerprint) -> CaseOutcome | Rerun | None:
        """Return the outcome of a finished case, why it is to be run again, or None when the log lacks it.

        Each case is given once: what asks again, as a plugin that repeats failures does, wants a new measurement.
        """
        if self._turns is None:
            return None
        found = self._found(self._turns, key, fingerprint)
        with self._lock:
            self._counts += _counted(found)
        return found

    def close(self) -> None:
        """Close the log's files."""
        if self._turns is not None:
            self._turns.close()

    def _found(self, turns: LoggedTurns, key: TurnKey, now: Fingerprint) -> CaseOutcome | Rerun | None:
        try:
            turn = turns.pop(self._json_text(list(key)))
        except (ValueError, OSError):
            return Rerun(DAMAGED)
        if turn is None:
            return None
        changes = _changes(turn, turns.shared, now)
        if changes:
            return Rerun(_told(changes))
        return Rerun(ERRED) if turn.outcome.error else _with_its_worktree(turn.outcome)


def _changes(turn: LoggedTurn, shared: Mapping[str, Mapping[str, str]], now: Fingerprint) -> list[str]:
    if turn.shared == now.shared.id:
        return what_changed(turn.parts, now.own)
    known = shared.get(turn.shared)
    if known is None:
        return [*what_changed(turn.parts, now.own), "tools or options changed"]
    return what_changed({**turn.parts, **known}, now.parts)


def _told(changes: Iterable[str]) -> str:
    listed = list(changes)
    more = [f"{len(listed) - _MOST_CHANGES} more"] if len(listed) > _MOST_CHANGES else []
    return " and ".join([*listed[:_MOST_CHANGES], *more])


def _with_its_worktree(outcome: CaseOutcome) -> CaseOutcome:
    """Return an outcome that names its folder only while that is there."""
    return outcome if not outcome.worktree or Path(outcome.worktree).is_dir() else replace(outcome, worktree="")


def _counted(found: CaseOutcome | Rerun | None) -> ResumeCounts:
    match found:
        case CaseOutcome():
            return ResumeCounts(taken=1)
        case Rerun(reason):
            return ResumeCounts(again={reason: 1})
        case None:
            return ResumeCounts(unfinished=1)


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"
