"""Invocation: a tool is called through the broker, and what comes of it is compared with the scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.broker.answers import is_clear_error
from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of
from pytest_tooleval.broker.broker import Broker, Search
from pytest_tooleval.broker.downstream import InProcessDownstream
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.gold import InvocationScenario
from pytest_tooleval.measures.outcome import CaseOutcome

OFFLINE, CHANGED, FAILED = "DOWNSTREAM_SERVER_OFFLINE", "TOOL_SCHEMA_CHANGED", "DOWNSTREAM_CALL_FAILED"


@dataclass(frozen=True, slots=True)
class InvocationTarget:
    """A broker over one corpus's catalog; the servers behind it are what each scenario says."""

    name: str
    catalog: Catalog
    search: Search

    def cannot_run(self, _: InvocationScenario) -> None:
        """Every scenario can be run."""

    def measure(self, scenario: InvocationScenario, _trial: int = 1) -> CaseOutcome:
        """Make the scenario's call, and for a repair the corrected one."""
        broker = Broker(self.catalog, self.search, self._downstream(scenario))
        first = broker.call_tool(scenario.tool_ref, dict(scenario.arguments))
        second = (
            None if scenario.corrected is None else broker.call_tool(scenario.tool_ref, dict(scenario.corrected))
        )
        record = self._record(scenario, first, second)
        return CaseOutcome(record["pass"], record)

    def close(self) -> None:
        """Do nothing: the servers are in this process."""

    def _downstream(self, scenario: InvocationScenario) -> InProcessDownstream:
        ref = scenario.tool_ref
        server = self.catalog.by_ref[ref].server_id if ref in self.catalog.by_ref else ""
        return InProcessDownstream(
            self.catalog,
            offline={server} if scenario.expected_error == OFFLINE else frozenset(),
            live_schemas={} if scenario.live_schema is None else {ref: scenario.live_schema},
            failing={ref: "the server could not do it"} if scenario.expected_error == FAILED else {},
        )

    def _record(
        self, scenario: InvocationScenario, first: Mapping[str, Any], second: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        outcome = scenario.expected_outcome
        error = _error_type(first)
        as_expected = error == scenario.expected_error
        first_ok = bool(first["ok"])
        repaired = (
            outcome == "repair" and not first_ok and as_expected and second is not None and bool(second["ok"])
        )
        passed = {"success": first_ok, "repair": repaired, "error": not first_ok and as_expected}[outcome]
        return {
            "toolRef": scenario.tool_ref,
            "expectedOutcome": outcome,
            "expectedError": scenario.expected_error or None,
            "pass": passed,
            "errorType": error or None,
            "secondErrorType": (_error_type(second) or None) if second is not None else None,
            "validArguments": self._valid_arguments(scenario),
            "firstCallOk": first_ok if outcome == "success" else None,
            "repaired": repaired if outcome == "repair" else None,
            "schemaErrorSurfaced": error == CHANGED if scenario.expected_error == CHANGED else None,
            "offlineHandled": error == OFFLINE if scenario.expected_error == OFFLINE else None,
            "clearErrors": [is_clear_error(answer) for answer in _errors(first, second)],
            "message": first.get("error", {}).get("message", ""),
        }

    def _valid_arguments(self, scenario: InvocationScenario) -> bool | None:
        """Whether the call that is meant to be valid keeps the catalogued schema; None when none is."""
        arguments = scenario.arguments if scenario.expected_outcome == "success" else scenario.corrected
        if arguments is None:
            return None
        try:
            return not checker_of(self.catalog.by_ref[scenario.tool_ref].input_schema).faults(dict(arguments))
        except BrokenSchemaError:
            return False


def _errors(*answers: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    yield from (answer for answer in answers if answer is not None and not answer["ok"])


def _error_type(answer: Mapping[str, Any] | None) -> str:
    return "" if answer is None or answer["ok"] else str(answer["error"]["type"])
