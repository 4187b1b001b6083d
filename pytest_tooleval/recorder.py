"""Measures items and writes down what comes of it, so that a run that is ended can be resumed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.environment import SuiteEnvironment, relative_to_root, targets_with_tools
from pytest_tooleval.errors import InfrastructureError
from pytest_tooleval.families.fingerprints import ToolUseFingerprints
from pytest_tooleval.items import CaseItem, Measure
from pytest_tooleval.measures.fingerprint import Fingerprint
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.resume import ResumeCounts, Resumed
from pytest_tooleval.reports.run_log import JsonText, RunHeader, RunLog, TurnKey
from pytest_tooleval.run_plan import RunPlan
from pytest_tooleval.settings import Settings


class Recorder:
    """Takes what the run that is resumed has finished, measures the rest, and logs what was measured.

    Args:
        config: the run's configuration.
        settings: the options.
        json_text: how the log is written.
        measure: measures an item, in whatever thread.

    """

    def __init__(self, config: pytest.Config, settings: Settings, json_text: JsonText, measure: Measure) -> None:
        self._config = config
        self._settings = settings
        self._json_text = json_text
        self._measure = measure
        self._log: RunLog | None = None
        self._resumed: Resumed | None = None
        self._fingerprints: dict[int, ToolUseFingerprints] = {}

    def begin(self, run: str, process: str, plan: RunPlan, environments: Collection[SuiteEnvironment]) -> None:
        """Open the log of a run with tool-use items, and the one that is resumed."""
        folder = runs_folder(self._config)
        if folder is None or self._settings.no_run_log:
            return
        whole = sum(environment.item_count() for environment in environments)
        now = RunHeader(run, plan.suites, plan.items, whole=plan.items >= whole)
        if self._settings.resume:
            self._resumed = Resumed.last_run(folder, now, self._json_text)
            now = self._resumed.header(now)
        inherited = self._resumed.files if self._resumed else ()
        self._log = RunLog(folder, now, process, self._json_text, inherited)
        tiers = {"first call": self._settings.first_call, "replay": self._settings.replay is not None}
        tier = " ".join(name for name, is_on in tiers.items() if is_on)
        for environment in environments:
            for (_, target, _), model in zip(targets_with_tools(self._settings), environment.models, strict=True):
                self._fingerprints[id(model)] = ToolUseFingerprints(target, model.runner, tier)

    def measure(self, item: CaseItem) -> CaseOutcome:
        """Return what an item comes to, taken from the log where that has it; raises what measuring raises."""
        case = item.found.case
        if not isinstance(case, ToolUseCase) or self._log is None:
            return self._measure(item)
        taken = self._taken(item, case)
        if taken is not None:
            return taken
        outcome = self._measure(item)
        fingerprint = self._fingerprint(item, case)
        if fingerprint is not None:
            self._log.append(self._key(item), fingerprint, outcome)
        return outcome

    def _taken(self, item: CaseItem, case: ToolUseCase) -> CaseOutcome | None:
        fingerprint = self._fingerprint(item, case) if self._resumed else None
        if self._resumed is None or fingerprint is None:
            return None
        found = self._resumed.take(self._key(item), fingerprint)
        return found if isinstance(found, CaseOutcome) else None

    def _fingerprint(self, item: CaseItem, case: ToolUseCase) -> Fingerprint | None:
        """Return what the outcome depends on; None where a server cannot be asked, which the run will say itself.

        Unless a run is resumed it is asked for after the measurement: a server's first words belong into that.
        """
        try:
            return self._fingerprints[id(item.target)].of(case)
        except InfrastructureError:
            return None

    def _key(self, item: CaseItem) -> TurnKey:
        corpus = relative_to_root(item.found.corpus.root, self._config).as_posix()
        return TurnKey(corpus, item.found.case.family, item.found.case.id, item.target.name, item.trial)

    @property
    def counts(self) -> ResumeCounts | None:
        """What was taken from the log, where a run is resumed."""
        return self._resumed.counts if self._resumed else None

    @property
    def warning(self) -> str:
        """What is wrong with the log, else empty."""
        return self._log.warning if self._log else ""

    def close(self) -> None:
        """Write no more."""
        for opened in (self._log, self._resumed):
            if opened is not None:
                opened.close()


def runs_folder(config: pytest.Config) -> Path | None:
    """Return where runs are logged: in pytest's cache, or nowhere when there is none or it cannot be written."""
    cache = getattr(config, "cache", None)
    try:
        return None if cache is None else Path(cache.mkdir("tooleval")) / "runs"
    except OSError:
        return None
