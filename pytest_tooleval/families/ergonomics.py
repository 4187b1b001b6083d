"""Ergonomics: a broker is asked on both its surfaces, and whether an agent can work with the answers is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.broker.answers import BUDGET_BYTES, DECISIONS, has_disposition, is_instructive, selected_ref
from pytest_tooleval.broker.envelope import error_type
from pytest_tooleval.broker.mcp_server import BrokerSession, McpMissingError, mcp_server
from pytest_tooleval.broker.surface import CALL, DESCRIBE, FIND, ToolBroker, command_json
from pytest_tooleval.cases.gold import ErgonomicsCase
from pytest_tooleval.measures.outcome import CaseOutcome

OPERATION_OF_KIND: Mapping[str, str] = {"find": FIND, "describe": DESCRIBE, "call": CALL}


@dataclass(slots=True)
class ErgonomicsTarget:
    """One broker, asked as the command line asks it and through a real MCP session.

    Attributes:
        name: how it is called.
        broker: who answers.

    """

    name: str
    broker: ToolBroker
    _session: BrokerSession | None = None

    def cannot_run(self, _: ErgonomicsCase) -> str | None:
        """Return the reason when the MCP surface cannot be reached."""
        try:
            mcp_server(self.broker)
        except McpMissingError as error:
            return str(error)
        return None

    def measure(self, case: ErgonomicsCase, _trial: int = 1) -> CaseOutcome:
        """Ask on both surfaces.

        Raises:
            InfrastructureError: the MCP session failed.

        """
        operation, request = OPERATION_OF_KIND[case.kind], _request(case)
        if self._session is None:
            self._session = BrokerSession(self.broker)
        texts = (command_json(self.broker, operation, request), self._session.call_text(operation, request))
        record = _record(case, texts)
        return CaseOutcome(record["pass"], record)

    def close(self) -> None:
        """End the MCP session."""
        if self._session is not None:
            self._session.close()


def _request(case: ErgonomicsCase) -> dict[str, Any]:
    if case.kind == "find":
        return {"query": case.query}
    return {"toolRef": case.tool_ref} | ({"arguments": dict(case.arguments)} if case.kind == "call" else {})


def _record(case: ErgonomicsCase, texts: tuple[str, str]) -> dict[str, Any]:
    answers = [json.loads(text) for text in texts]
    first = answers[0]
    size = max(len(text.encode()) for text in texts)
    disposed = [has_disposition(answer) for answer in answers]
    demands: dict[str, bool | None] = {
        "decisionKnown": all(_decision_known(case, answer) for answer in answers),
        "instructive": all(map(is_instructive, answers)),
        "errorDisposed": None if None in disposed else all(disposed),
        "withinBudget": size <= BUDGET_BYTES[case.kind],
        "parity": _agreed(answers[0]) == _agreed(answers[1]),
    }
    told = {
        "decision": first.get("decision"),
        "errorType": error_type(first) or None,
        "toolRef": selected_ref(first),
        "bytes": size,
    }
    return ergonomics_record(case, demands, told)


def ergonomics_record(
    case: ErgonomicsCase, demands: Mapping[str, bool | None], told: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a case's fields in the result file.

    Args:
        case: what was asked.
        demands: for each demand whether the answers keep it, None where it does not apply.
        told: `decision`, `errorType`, `toolRef` and `bytes` of the answer.

    """
    return {
        "kind": case.kind,
        "pass": False not in demands.values(),
        **demands,
        "decision": told["decision"],
        "expectDecision": case.expect_decision or None,
        "errorType": told["errorType"],
        "expectErrorType": case.expect_error_type or None,
        "toolRef": told["toolRef"],
        "bytes": told["bytes"],
    }


def _decision_known(case: ErgonomicsCase, answer: Mapping[str, Any]) -> bool:
    """Whether an answer says plainly what it is: a find a known decision, another request ok or an error's type."""
    if answer.get("error"):
        return bool(error_type(answer))
    return answer.get("decision") in DECISIONS if case.kind == "find" else answer.get("ok") is True


def _agreed(answer: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what both surfaces have to agree on."""
    return answer.get("decision"), selected_ref(answer), error_type(answer)
