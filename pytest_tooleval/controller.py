"""The plugin object of the process that reports: it gathers what was measured, evaluates gates, and tells."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tooleval.environment import relative_to_root
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.gate_reports import Announcement, announce, gate_announcement, remember, remember_misses
from pytest_tooleval.gates.evaluate import GateResult, evaluate_gates
from pytest_tooleval.gates.thresholds import REGRESSIONS
from pytest_tooleval.interruption import interrupt_processes
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.recorder import runs_folder
from pytest_tooleval.reports.resume import ResumeCounts
from pytest_tooleval.reports.run_log_reader import remove_old_runs
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.text_file import why_not_written, why_unwritable
from pytest_tooleval.run_plan import RunPlan
from pytest_tooleval.session import (
    LEDGER_KEY,
    LOG_WARNING_KEY,
    MEASUREMENT_ATTRIBUTE,
    PLAN_ATTRIBUTE,
    PLAN_KEY,
    RESUME_KEY,
    RUN_KEY,
    EvalSession,
)
from pytest_tooleval.settings import Settings

if TYPE_CHECKING:
    from pytest_tooleval.reports.comparison import Comparison


class Controller:
    """Works alike for one process and for many: everything reaches it on test reports.

    Raises:
        UsageError: the baseline that the options name cannot be used.

    """

    def __init__(self, config: pytest.Config, settings: Settings, session: EvalSession) -> None:
        self._config = config
        self._settings = settings
        self._session = session
        self._texts: dict[str, str] = {}
        self._sorted: tuple[Measurement, ...] | None = None
        self._plan_of_workers: RunPlan | None = None
        self._workers: dict[Any, int] = {}
        self._gates: tuple[GateResult, ...] = ()
        self._collection_failed = False
        self._baseline = _read_baseline(settings)
        self._comparison: Comparison | None = None
        self._file_lines: tuple[str, ...] = ()
        self._write_failed = False
        self._resumed = ResumeCounts()
        self._log_warning = ""
        if settings.json and (problem := why_unwritable(settings.json)):
            raise pytest.UsageError(f"tooleval: the result file {settings.json} cannot be written: {problem}")
        if (folder := runs_folder(config)) is not None:
            remove_old_runs(folder)
        self._ledger_folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def _plan(self) -> RunPlan:
        return self._plan_of_workers or self._session.plan or RunPlan()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember that something could not be collected: gates would not see it."""
        self._collection_failed |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the measurement off a report; of an item that is rerun the last one counts."""
        plan: dict[str, Any] | None = getattr(report, PLAN_ATTRIBUTE, None)
        if plan is not None and self._plan_of_workers is None:
            self._plan_of_workers = RunPlan.from_plain(plan)
        text: str | None = getattr(report, MEASUREMENT_ATTRIBUTE, None)
        if text is not None:
            self._texts[report.nodeid] = text
            self._sorted = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Remember the worker processes of this machine; execnet tells their ids nowhere else."""
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if process is not None:
            self._workers[node] = process.pid

    def pytest_keyboard_interrupt(self) -> None:
        """Pass the interruption on, in case that only this process was told."""
        interrupt_processes(self._workers.values())

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker the run's id, and the file in which all note what they spend where something limits it."""
        node.workerinput[RUN_KEY] = self._session.run_id
        if self._settings.max_tokens is None and self._settings.max_cost is None:
            return
        if self._ledger_folder is None:
            self._ledger_folder = tempfile.TemporaryDirectory(prefix="tooleval-spent-")
        node.workerinput[LEDGER_KEY] = str(Path(self._ledger_folder.name) / "spent.jsonl")

    def pytest_unconfigure(self) -> None:
        """Remove what the workers shared."""
        if self._ledger_folder is not None:
            self._ledger_folder.cleanup()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the plan that a worker sent home; all workers have the same."""
        self._workers.pop(node, None)
        output = getattr(node, "workeroutput", {})
        if output.get(RESUME_KEY) is not None:
            self._resumed += ResumeCounts.from_plain(output[RESUME_KEY])
        self._log_warning = self._log_warning or output.get(LOG_WARNING_KEY, "")
        plain = output.get(PLAN_KEY)
        if plain is not None:
            self._plan_of_workers = RunPlan.from_plain(plain)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Evaluate the gates when every item has ended, and report them like items."""
        outcome = yield
        if self._plan.items and not session.config.option.collectonly and not self._collection_failed:
            self._report_gates(session)
        return outcome

    def _report_gates(self, session: pytest.Session) -> None:
        measurements = self._sorted_measurements()
        self._gates = tuple(self._evaluate(measurements))
        announce(session, (gate_announcement(gate, measurements) for gate in self._gates))
        self._remember([gate for gate in self._gates if gate.failed], measurements)
        reason = self._result().nothing_measured
        if reason and not session.testsfailed:
            suite = self._plan.suites[0]
            announce(session, [Announcement(f"{suite}::nothing measured", suite, 1, "failed", reason)])

    def _evaluate(self, measurements: Sequence[Measurement]) -> list[GateResult]:
        comparison = self._compared()
        against = None
        if comparison is not None:
            from pytest_tooleval.reports.comparison import regressed_by_corpus

            against = regressed_by_corpus(comparison)
        return evaluate_gates(self._plan.gates, measurements, self._settings.min_measured, against)

    def _remember(self, failed: Sequence[GateResult], measurements: Sequence[Measurement]) -> None:
        """Have `--lf` run what failed gates count."""
        remember_misses(self._config, failed, measurements)
        corpora = {gate.planned.gate.corpus for gate in failed if gate.planned.gate.family == REGRESSIONS}
        if corpora and self._comparison is not None:
            from pytest_tooleval.reports.comparison import CaseKey

            regressed = {change.case for change in self._comparison.regressions if change.corpus in corpora}
            remember(self._config, (m for m in measurements if CaseKey.of(m) in regressed))

    def _compared(self) -> Comparison | None:
        """Compare with the baseline; asked for only when every item that will end has ended."""
        if self._baseline is not None and self._comparison is None:
            from pytest_tooleval.reports.comparison import compare
            from pytest_tooleval.reports.result_file import result_document

            self._comparison = compare(self._baseline, result_document(self._result(), self._config.rootpath))
        return self._comparison

    def _sorted_measurements(self) -> tuple[Measurement, ...]:
        if self._sorted is None:
            targets = (*self._plan.targets, *self._plan.gold_targets)
            positions = {target: position for position, target in enumerate(targets)}
            measurements = (Measurement.from_plain(json.loads(text)) for text in self._texts.values())
            self._sorted = tuple(sorted(measurements, key=lambda measurement: measurement.order(positions)))
        return self._sorted

    def _result(self, *, interrupted: bool = False) -> SuiteResult:
        return SuiteResult(
            self._sorted_measurements(),
            self._gates,
            self._plan.targets,
            self._plan.items,
            self._plan.notes,
            interrupted,
            self._plan.gold_targets,
            (*self._plan.left_out, *(["files could not be collected"] if self._collection_failed else [])),
            self._plan.provenance,
            self._plan.gates,
            self._plan.whole,
        )

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the result file and the snapshot; a run whose result file cannot be written fails."""
        wanted = self._settings.json or self._settings.snapshot
        if wanted and self._plan.items and not self._config.option.collectonly:
            interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
            self._file_lines = tuple(self._write_files(self._result(interrupted=interrupted)))
            if self._write_failed and exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _write_files(self, result: SuiteResult) -> Iterator[str]:
        """Write what the options ask for, and yield a line for the summary for each file."""
        from pytest_tooleval.reports.result_file import result_document, write_result

        document = result_document(result, self._config.rootpath, self._comparison_section())
        if self._settings.json:
            try:
                write_result(self._settings.json, document)
            except OSError as error:
                self._write_failed = True
                yield f"the result file {self._settings.json} could not be written: {why_not_written(error)}"
            else:
                yield f"result file: {self._settings.json}"
        if self._settings.snapshot:
            from pytest_tooleval.reports.snapshot import why_not_baseline, write_snapshot

            yield from write_snapshot(
                self._settings.snapshot, document, datetime.now(UTC), why_not_baseline(result)
            )

    def _comparison_section(self) -> dict[str, Any] | None:
        comparison = self._compared()
        if comparison is None or self._baseline is None:
            return None
        from pytest_tooleval.reports.comparison import comparison_section

        return comparison_section(comparison, self._baseline, self._baseline_name())

    def _baseline_name(self) -> str:
        path = self._settings.baseline
        return "" if path is None else relative_to_root(path, self._config).as_posix()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was measured."""
        result = self._result()
        if result.measurements:
            self._print_measurements(terminalreporter, result)
        elif self._plan.suites and not self._plan.found and not self._collection_failed:
            suites = ", ".join(self._plan.suites)
            terminalreporter.write_line(f"tooleval: no cases in {suites}; 'tooleval init' writes an example")
        if self._settings.resume and result.of_family("tool_use"):
            terminalreporter.write_line((self._resumed + (self._session.recorder.counts or ResumeCounts())).summary)
        if self._settings.cassette_mode == "replay" and result.of_family("tool_use"):
            terminalreporter.write_line("replayed: what models said was taken from cassettes; no model was asked")
        warning = self._log_warning or self._session.recorder.warning
        if warning:
            terminalreporter.write_line(warning, yellow=True)
        for line in self._file_lines:
            terminalreporter.write_line(line)

    def _print_measurements(self, terminalreporter: pytest.TerminalReporter, result: SuiteResult) -> None:
        from pytest_tooleval.reports.terminal import summary_title, terminal_summary

        writer = terminalreporter._tw  # noqa: SLF001 - the only way to the width and colour that pytest uses
        terminalreporter.write_sep("=", summary_title(result))
        terminalreporter.write(terminal_summary(result, writer.fullwidth, color=writer.hasmarkup))
        if self._plan.gates and not self._gates:
            reason = "files could not be collected" if self._collection_failed else "the run was ended early"
            terminalreporter.write_line(f"gates not evaluated: {reason}")
        comparison = self._compared()
        if comparison is not None:
            from pytest_tooleval.reports.comparison_summary import comparison_blocks
            from pytest_tooleval.reports.tables import rendered

            terminalreporter.write_sep("=", f"compared with {self._baseline_name()}")
            terminalreporter.write(
                rendered(comparison_blocks(comparison), writer.fullwidth, color=writer.hasmarkup)
            )


def _read_baseline(settings: Settings) -> dict[str, Any] | None:
    if settings.baseline is None:
        return None
    from pytest_tooleval.reports.result_reader import read_result

    try:
        return read_result(settings.baseline)
    except ConfigError as error:
        raise pytest.UsageError(f"tooleval: the baseline {error}") from None
