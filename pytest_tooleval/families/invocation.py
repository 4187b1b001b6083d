"""Invocation: a tool is called through the broker, and what comes of it is compared with the scenario."""

from __future__ import annotations

from collections.abc import Mapping
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
class CallOutcome:
    """What came of one call.

    Attributes:
        error: the error's type, None for a success; empty for an error without a type.
        is_clear: whether the error has a type and an instruction that does not invite a blind retry; None where
            that cannot be said, and for a success.
        message: what the error says.

    """

    error: str | None = None
    is_clear: bool | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None


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
        first = outcome_of(broker.call_tool(scenario.tool_ref, dict(scenario.arguments)))
        corrected = scenario.corrected
        second = None if corrected is None else outcome_of(broker.call_tool(scenario.tool_ref, dict(corrected)))
        record = invocation_record(self.catalog, scenario, first, second)
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


def outcome_of(answer: Mapping[str, Any]) -> CallOutcome:
    """Return what an answer of the reference broker's `callTool` says."""
    if answer["ok"]:
        return CallOutcome()
    error = answer["error"]
    return CallOutcome(str(error["type"]), is_clear_error(answer), error["message"])


def invocation_record(
    catalog: Catalog, scenario: InvocationScenario, first: CallOutcome, second: CallOutcome | None
) -> dict[str, Any]:
    """Return a scenario's fields in the result file.

    Args:
        catalog: the tools.
        scenario: what was to come of the calls.
        first: what came of the first call.
        second: what came of the corrected one, None where there was none.

    """
    outcome, expected = scenario.expected_outcome, scenario.expected_error
    as_expected = (first.error or "") == expected
    repaired = outcome == "repair" and not first.ok and as_expected and second is not None and second.ok
    passed = {"success": first.ok, "repair": repaired, "error": not first.ok and as_expected}[outcome]
    errors = [answer for answer in (first, second) if answer is not None and not answer.ok]
    return {
        "toolRef": scenario.tool_ref,
        "expectedOutcome": outcome,
        "expectedError": expected or None,
        "pass": passed,
        "errorType": first.error,
        "secondErrorType": None if second is None else second.error,
        "validArguments": _valid_arguments(catalog, scenario),
        "firstCallOk": first.ok if outcome == "success" else None,
        "repaired": repaired if outcome == "repair" else None,
        "schemaErrorSurfaced": first.error == CHANGED if expected == CHANGED else None,
        "offlineHandled": first.error == OFFLINE if expected == OFFLINE else None,
        "clearErrors": [answer.is_clear for answer in errors if answer.is_clear is not None],
        "message": first.message,
    }


def _valid_arguments(catalog: Catalog, scenario: InvocationScenario) -> bool | None:
    """Whether the call that is meant to be valid keeps the catalogued schema; None when none is."""
    arguments = scenario.arguments if scenario.expected_outcome == "success" else scenario.corrected
    if arguments is None:
        return None
    try:
        return not checker_of(catalog.by_ref[scenario.tool_ref].input_schema).faults(dict(arguments))
    except BrokenSchemaError:
        return False
