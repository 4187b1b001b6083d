"""The plugin object of every process that collects: it makes items and sends home what they measured."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.agent.directory import threads_can_have_own
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.suite import SUFFIX_OF_FOLDER
from pytest_tooleval.collect import CasesFolder, SuiteFolder
from pytest_tooleval.environment import (
    SharedParts,
    SuiteEnvironment,
    check_targets_early,
    load_environment,
    open_budget,
    relative_to_root,
)
from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.families.budget import Budget
from pytest_tooleval.gates.plan import PlannedCase, PlannedGate, plan_gates
from pytest_tooleval.heap import Heap
from pytest_tooleval.interruption import interrupted_by_signals, interrupted_once
from pytest_tooleval.items import CaseItem, MissedError, NotMeasuredError, measure_within
from pytest_tooleval.measures.measurement import Measurement, Verdict
from pytest_tooleval.measures.text import printable
from pytest_tooleval.measures.verify import passes_idle
from pytest_tooleval.options import given_on_command_line
from pytest_tooleval.recorder import Recorder
from pytest_tooleval.redaction import Redaction
from pytest_tooleval.reports.run_log import new_run_id
from pytest_tooleval.reports.whole_run import WholeRun
from pytest_tooleval.run_plan import RunPlan, whole_run
from pytest_tooleval.settings import Settings, read_settings
from pytest_tooleval.turns import Turns

PLAN_KEY = "tooleval"
RUN_KEY = "tooleval_run"
RESUME_KEY = "tooleval_resume"
LOG_WARNING_KEY = "tooleval_log_warning"
NOT_MEASURED = "not measured: "
_LAST_SECONDS = 1.0
MEASUREMENT_ATTRIBUTE = "tooleval"
LEDGER_KEY = "tooleval_ledger"
PLAN_ATTRIBUTE = "tooleval_plan"


def start(config: pytest.Config) -> None:
    """Register the plugin objects of a run that may hold cases.

    Raises:
        UsageError: an option is wrong.

    """
    settings = read_settings(config)
    is_worker = hasattr(config, "workerinput")
    if not is_worker and given_on_command_line(config, "provider", "compare"):
        check_targets_early(config, settings)
    session = EvalSession(config, settings, _budget(config, settings))
    config.add_cleanup(session.heap.release)  # pytest looks for garbage before that, in less to walk through
    config.pluginmanager.register(session, "tooleval-session")
    if not is_worker:
        from pytest_tooleval.controller import Controller

        config.pluginmanager.register(Controller(config, settings, session), "tooleval-controller")


def _budget(config: pytest.Config, settings: Settings) -> Budget:
    workerinput: dict[str, Any] = getattr(config, "workerinput", {})
    ledger = workerinput.get(LEDGER_KEY)
    try:
        return open_budget(settings, Path(ledger) if ledger else None)
    except ConfigError as error:
        raise pytest.UsageError(f"tooleval: {error}") from None


class EvalSession:
    """Collects suites, runs their cases, and puts a measurement on each report.

    Attributes:
        plan: what is to be run; None before collection has finished.
        heap: holds the cases.

    """

    def __init__(self, config: pytest.Config, settings: Settings, budget: Budget) -> None:
        self.plan: RunPlan | None = None
        self.heap = Heap()
        self._plan_sent = False
        self._is_worker = hasattr(config, "workerinput")
        self._config = config
        self._settings = settings
        self._worktrees = WorktreeRoot()
        stop = threading.Event()
        self._redaction = Redaction.from_environment()
        self.run_id = getattr(config, "workerinput", {}).get(RUN_KEY) or new_run_id(datetime.now(UTC))
        self.recorder = Recorder(config, settings, self._redaction.json_text, partial(measure_within, budget))
        self._turns = Turns(settings.concurrency, self.recorder.measure, stop)
        self._shared = SharedParts(self._worktrees, self._turns.outcome_of, self._redaction, stop)
        self._environments: dict[Path, SuiteEnvironment] = {}
        self._case_folders: dict[Path, SuiteEnvironment] = {}

    def open_suite(self, folder: Path, hook: Any) -> SuiteEnvironment:
        """Load a suite; the folder's hook caller hears the folder's conftest.

        Raises:
            ConfigError: a target cannot be opened, or a registration is wrong.

        """
        self.heap.rest()
        environment = load_environment(folder, self._config, hook, self._settings, self._shared)
        self._environments[folder] = environment
        self._case_folders.update(dict.fromkeys(environment.suite.case_folders, environment))
        return environment

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take the suites' folders, and the folders of case files in them."""
        if path in self._settings.suites:
            suite: pytest.Collector = SuiteFolder.from_parent(parent, path=path, tooleval=self)
            return suite
        environment = self._case_folders.get(path)
        if environment is not None:
            suffix = SUFFIX_OF_FOLDER[path.name]
            cases: pytest.Collector = CasesFolder.from_parent(
                parent, path=path, environment=environment, suffix=suffix
            )
            return cases
        return None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Work out what the run covers."""
        items = [item for item in session.items if isinstance(item, CaseItem)]
        self.plan = RunPlan(
            gates=tuple(self._plan_gates(items)),
            found=sum(1 for environment in self._environments.values() for _ in environment.suite.cases()),
            items=len(items),
            targets=self._targets([item for item in items if not item.is_gold]),
            suites=tuple(self._shown(folder) for folder in self._environments),
            notes=tuple(self._notes(items)),
            gold_targets=self._targets([item for item in items if item.is_gold]),
            left_out=tuple(self._left_out(items)),
            provenance=self._redaction.value(self._gold_provenance([item for item in items if item.is_gold])),
            whole=self._whole_run(),
        )
        if any(not item.is_gold for item in items) and not session.config.option.collectonly:
            process = getattr(self._config, "workerinput", {}).get("workerid", "main")
            self.recorder.begin(self.run_id, process, self.plan, self._environments.values())
        self.heap.go_on()

    def _whole_run(self) -> WholeRun | None:
        if not (self._settings.json or self._settings.snapshot):
            return None
        strict = self._settings.strict or bool(self._config.getoption("runxfail", default=False))
        run = whole_run(self._environments.values(), self._shown, self._settings, strict=strict)
        return replace(run, options=self._redaction.value(run.options))

    def _targets(self, items: Iterable[CaseItem]) -> tuple[str, ...]:
        """Return the names of what items are run on, in the order of the options, whatever the items' order."""
        used = {(item.found.case.family, item.target.name) for item in items}
        names = (
            name
            for environment in self._environments.values()
            for family, known in environment.target_names().items()
            for name in known
            if (family, name) in used
        )
        return tuple(dict.fromkeys(names))

    def _left_out(self, items: Sequence[CaseItem]) -> Iterator[str]:
        """Yield what keeps the run from covering its suites."""
        whole = sum(environment.item_count() for environment in self._environments.values())
        if len(items) < whole:
            yield f"{len(items)} of {whole} items selected"
        if given_on_command_line(self._config, "family"):
            yield f"only {', '.join(self._settings.family)} was asked for"
        if self._settings.first_call:
            yield "only first calls were asked for"
        if any(environment.suite.faults for environment in self._environments.values()):
            yield "files could not be loaded"
        named = given_on_command_line(self._config, "suites") or self._config.getini("tooleval_suites")
        for folder in self._settings.suites if named else ():
            if folder not in self._environments:
                yield f"the suite {self._shown(folder)} was not collected"

    def _gold_provenance(self, items: Sequence[CaseItem]) -> dict[str, Any]:
        if not items:
            return {}
        versions = {
            self._shown(item.found.corpus.root): item.found.corpus.catalog.version
            for item in items
            if item.found.corpus.catalog
        }
        known = [version for version in versions.values() if version is not None]
        version = (known[0] if len(versions) == 1 else dict(sorted(versions.items()))) if known else None
        return {"corpusVersion": version, **items[0].environment.gold_provenance(self._targets(items))}

    def _plan_gates(self, items: Sequence[CaseItem]) -> Iterator[PlannedGate]:
        selected = Counter(item.key for item in items)
        skipped = {item.key: reason for item in items if (reason := item.known_skip())}
        for environment in self._environments.values():
            if environment.gates:
                yield from plan_gates(
                    environment.gates,
                    self._planned_cases(environment, selected, skipped),
                    environment.target_names(),
                    frozenset(self._broken_corpora(environment)),
                    environment.without_semantic_leg(),
                    has_baseline=self._settings.baseline is not None,
                )

    def _planned_cases(
        self, environment: SuiteEnvironment, selected: Mapping[Any, int], skipped: Mapping[Any, str]
    ) -> Iterator[PlannedCase]:
        targets = environment.target_names()
        for found in environment.suite.cases():
            case = found.case
            for target in targets[case.family]:
                key = (case.family, case.source.path, case.id, target)
                yield PlannedCase(
                    family=case.family,
                    corpus=self._shown(found.corpus.root),
                    id=case.id,
                    tags=tuple(case.tags),
                    target=target,
                    selected=selected.get(key, 0) == environment.trials_of(case),
                    skipped=skipped.get(key, ""),
                )

    def _broken_corpora(self, environment: SuiteEnvironment) -> Iterator[str]:
        for path in environment.suite.faults:
            for corpus in environment.suite.corpora:
                if path.is_relative_to(corpus.root):
                    yield self._shown(corpus.root)

    def _notes(self, items: Sequence[CaseItem]) -> Iterator[str]:
        yield from self._directory_notes(items)
        corpora = {item.found.corpus.root: item.found.corpus for item in items if item.is_gold}
        if corpora:
            from pytest_tooleval.broker.lint import lint
            from pytest_tooleval.families.gold import broken_schemas
            from pytest_tooleval.reports.lint_section import lint_lines
        for folder, corpus in sorted(corpora.items()):
            for ref, problem in broken_schemas(corpus.catalog or Catalog()):
                yield f"{ref} ({self._shown(folder)}): its input schema is not a JSON Schema: {problem}"
            if corpus.catalog is not None:
                yield from lint_lines(f"{self._shown(folder)}/catalog", lint(corpus.catalog))
        for item in {(item.path, item.found.case.id): item for item in items}.values():
            case = item.found.case
            if not isinstance(case, ToolUseCase):
                continue
            place = f"{case.id} ({relative_to_root(item.path, self._config)}:{case.source.line})"
            if passes_idle(case):
                yield f"{place} asks for nothing that doing nothing would not meet: add what has to happen"
            for name in case.verifier.avoid if case.verifier else ():
                known = item.environment.tools.tools
                if name not in known:
                    yield f"{place} avoids {name!r}, and there is no such tool{nearest(name, known)}"

    def _directory_notes(self, items: Sequence[CaseItem]) -> Iterator[str]:
        """Yield that some cases have to wait for each other, where that is so."""
        tools = {item.environment.tools: None for item in items if self._turns.is_threaded(item)}
        relying = [name for registry in tools for name, tool in registry.tools.items() if tool.needs_directory]
        if relying and not threads_can_have_own():
            yield (
                f"cases with the tools {', '.join(dict.fromkeys(relying))} run one at a time: here threads have no "
                "working directory of their own; a tool that takes its folder from the context can say so with "
                "needs_directory=False"
            )

    def _shown(self, path: Path) -> str:
        return relative_to_root(path, self._config).as_posix()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Have the run end in good order when the process is told to end, not only by Ctrl-C."""
        with interrupted_once() if self._is_worker else interrupted_by_signals():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin the turns that can run ahead of pytest."""
        self._turns.begin_ahead(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the measurement on the report, and leave a miss to its gate where one decides."""
        report = yield
        if isinstance(item, CaseItem):
            self._attach(item, call, report)
            self._send_plan_early(report)
        return report

    def _send_plan_early(self, report: pytest.TestReport) -> None:
        """Put the plan on a worker's first report: one that is killed has no last word to send it with."""
        if self._is_worker and not self._plan_sent and self.plan is not None:
            setattr(report, PLAN_ATTRIBUTE, self.plan.to_plain())
            self._plan_sent = True

    def _attach(self, item: CaseItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        if call.excinfo is None and report.when != "call" and not report.sections:
            return
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, NotMeasuredError):
            report.longrepr = printable(f"{NOT_MEASURED}{error}")
        if isinstance(report.longrepr, str):
            report.longrepr = self._redaction.text(report.longrepr)
        if report.sections:
            report.sections = [(title, self._redaction.text(text)) for title, text in report.sections]
        verdict = verdict_of(call, report)
        if verdict is None:
            return
        measurement = item.measurement(verdict, _reason(report))
        if verdict == "missed" and report.failed and self._is_left_to_gate(measurement):
            report.outcome = "skipped"
            report.wasxfail = f"reason: {_first_line(report.longrepr)}; left to the gate"
            measurement = item.measurement(verdict, _reason(report), deferred=True)
        elif report.skipped and isinstance(report.longrepr, tuple):
            reason = self._redaction.text(report.longrepr[2])
            report.longrepr = (str(item.path), item.found.case.source.line, reason)
        setattr(report, MEASUREMENT_ATTRIBUTE, self._redaction.json_text(measurement.to_plain()))

    def _is_left_to_gate(self, measurement: Measurement) -> bool:
        if self._settings.strict or self._config.getoption("runxfail", default=False) or self.plan is None:
            return False
        return any(
            gate.judges(measurement) and (gate.whole or self._settings.defer_gates) for gate in self.plan.gates
        )

    def pytest_sessionfinish(self) -> None:
        """Send the plan home from a worker, and release what was opened."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None and self.plan is not None:
            output[PLAN_KEY] = self.plan.to_plain()
        self._turns.close(_LAST_SECONDS)
        self.recorder.close()
        if output is not None:
            counts = self.recorder.counts
            output[RESUME_KEY] = counts.to_plain() if counts else None
            output[LOG_WARNING_KEY] = self.recorder.warning
        for environment in self._environments.values():
            environment.close()

    def pytest_unconfigure(self) -> None:
        """Remove the cases' folders."""
        self._worktrees.close()


def verdict_of(call: pytest.CallInfo[None], report: pytest.TestReport) -> Verdict | None:
    """Return what a phase of an item says about the case, or None when it says nothing yet."""
    if report.when == "teardown" or (report.when == "setup" and report.passed):
        return None
    if call.excinfo is None:
        return "passed"
    if call.excinfo.errisinstance(MissedError):
        return "missed"
    return "skipped" if report.skipped and not hasattr(report, "wasxfail") else "error"


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return "" if report.longrepr is None else _first_line(report.longrepr).removeprefix(NOT_MEASURED)


def _first_line(longrepr: object) -> str:
    """Return the line that says most: of a traceback, which is not ours, the exception's."""
    crash = getattr(longrepr, "reprcrash", None)
    return str(longrepr if crash is None else crash.message).split("\n", 1)[0]
