"""The text of a missed gold row: what was expected, what happened, why it is labelled so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tooleval.cases.gold import DiscoveryRow, ErgonomicsCase, GoldCase, InvocationScenario
from pytest_tooleval.measures.text import printable, shorten

_DEMANDS = {
    "decisionKnown": "an explicit, known decision",
    "instructive": "a concrete next step",
    "errorDisposed": "an error's type and retry disposition",
    "withinBudget": "an answer within its budget",
    "parity": "the same decision, tool and error type on both surfaces",
}


def gold_failure_text(case: GoldCase, record: Mapping[str, Any]) -> str:
    """Return the failure text of a missed row; its first line says in short what was expected and what came.

    Args:
        case: the row.
        record: its fields in the result file.

    """
    match case:
        case DiscoveryRow():
            lines = list(_discovery(case, record))
        case InvocationScenario():
            lines = list(_invocation(case, record))
        case ErgonomicsCase():
            lines = list(_ergonomics(case, record))
        case _:
            lines = [f"expected a measurement, got {shorten(json.dumps(dict(record)), 400)}"]
    return printable("\n".join(lines))


def _discovery(row: DiscoveryRow, record: Mapping[str, Any]) -> Iterator[str]:
    top = ", ".join(record["top"]) or "nothing"
    wanted = " or ".join(row.acceptable) or "a refusal"
    place = f" in the first {row.k}" if row.acceptable and row.k > 1 else " first" if row.acceptable else ""
    yield shorten(f"expected {wanted}{place}; got {record['decision']}: {top}", 400)
    yield ""
    yield f"intent: {row.intent}"
    yield f"category: {row.category}"
    if row.acceptable:
        yield f"first acceptable tool: {'rank ' + str(record['rank']) if record['rank'] else 'not found'}"
    yield f"why it is labelled so: {row.rationale}"
    yield from (f"note: {note}" for note in record.get("notes", ()))


def _invocation(scenario: InvocationScenario, record: Mapping[str, Any]) -> Iterator[str]:
    wanted = {
        "success": "success",
        "repair": f"{scenario.expected_error}, then success with the corrected arguments",
        "error": scenario.expected_error,
    }[scenario.expected_outcome]
    got = record["errorType"] or "success"
    second = "" if scenario.corrected is None else f", then {record['secondErrorType'] or 'success'}"
    yield shorten(f"expected {wanted}; got {got}{second}", 400)
    yield ""
    yield f"call: {scenario.tool_ref}({shorten(json.dumps(dict(scenario.arguments), ensure_ascii=False), 300)})"
    if record["message"]:
        yield f"message: {record['message']}"
    yield f"why: {scenario.rationale}"


def _ergonomics(case: ErgonomicsCase, record: Mapping[str, Any]) -> Iterator[str]:
    broken = [words for demand, words in _DEMANDS.items() if record[demand] is False]
    yield f"expected {'; '.join(broken)}"
    yield ""
    yield f"{case.kind}: {case.query or case.tool_ref}"
    yield f"answer: decision {record['decision']}, error {record['errorType']}, {record['bytes']} bytes"
    yield f"why: {case.rationale}"
