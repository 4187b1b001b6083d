"""The plugin object of the process that reports: it gathers what was measured, evaluates gates, and tells."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from pytest_tooleval.gate_reports import Announcement, announce, gate_announcement, remember_misses
from pytest_tooleval.gates.evaluate import GateResult, evaluate_gates
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.run_plan import RunPlan
from pytest_tooleval.session import MEASUREMENT_ATTRIBUTE, PLAN_KEY, EvalSession
from pytest_tooleval.settings import Settings


class Controller:
    """Works alike for one process and for many: everything reaches it on test reports."""

    def __init__(self, config: pytest.Config, settings: Settings, session: EvalSession) -> None:
        self._config = config
        self._settings = settings
        self._session = session
        self._texts: dict[str, str] = {}
        self._sorted: tuple[Measurement, ...] | None = None
        self._plan_of_workers: RunPlan | None = None
        self._gates: tuple[GateResult, ...] = ()
        self._collection_failed = False
        self._result_problem = ""

    @property
    def _plan(self) -> RunPlan:
        return self._plan_of_workers or self._session.plan or RunPlan()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember that something could not be collected: gates would not see it."""
        self._collection_failed |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the measurement off a report; of an item that is rerun the last one counts."""
        text: str | None = getattr(report, MEASUREMENT_ATTRIBUTE, None)
        if text is not None:
            self._texts[report.nodeid] = text
            self._sorted = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the plan that a worker sent home; all workers have the same."""
        plain = getattr(node, "workeroutput", {}).get(PLAN_KEY)
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
        self._gates = tuple(evaluate_gates(self._plan.gates, measurements, self._settings.min_measured))
        announce(session, (gate_announcement(gate, measurements) for gate in self._gates))
        remember_misses(self._config, (gate for gate in self._gates if gate.failed), measurements)
        reason = self._result().nothing_measured
        if reason and not session.testsfailed:
            suite = self._plan.suites[0]
            announce(session, [Announcement(f"{suite}::nothing measured", suite, 1, "failed", reason)])

    def _sorted_measurements(self) -> tuple[Measurement, ...]:
        if self._sorted is None:
            positions = {target: position for position, target in enumerate(self._plan.targets)}
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
        )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the result file."""
        path = self._settings.json
        if path is None or not self._plan.items or self._config.option.collectonly:
            return
        from pytest_tooleval.reports.result_file import result_document, write_result

        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        try:
            write_result(path, result_document(self._result(interrupted=interrupted), self._config.rootpath))
        except OSError as error:
            self._result_problem = f"the result file {path} could not be written: {error.strerror or error}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was measured."""
        result = self._result()
        if result.measurements:
            self._print_measurements(terminalreporter, result)
        elif self._plan.suites and not self._plan.found and not self._collection_failed:
            suites = ", ".join(self._plan.suites)
            terminalreporter.write_line(f"tooleval: no cases in {suites}; 'tooleval init' writes an example")

    def _print_measurements(self, terminalreporter: pytest.TerminalReporter, result: SuiteResult) -> None:
        from pytest_tooleval.reports.terminal import summary_title, terminal_summary

        writer = terminalreporter._tw  # noqa: SLF001 - the only way to the width and colour that pytest uses
        terminalreporter.write_sep("=", summary_title(result))
        terminalreporter.write(terminal_summary(result, writer.fullwidth, color=writer.hasmarkup))
        if self._plan.gates and not self._gates:
            reason = "files could not be collected" if self._collection_failed else "the run was ended early"
            terminalreporter.write_line(f"gates not evaluated: {reason}")
        if self._settings.json:
            terminalreporter.write_line(self._result_problem or f"result file: {self._settings.json}")
