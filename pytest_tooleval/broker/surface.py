"""A broker's three operations as its surfaces offer them: names, schemas, requests in and answers out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pytest_tooleval.broker.argument_check import checker_of
from pytest_tooleval.broker.broker import DEFAULT_LIMIT, MOST_LIMIT
from pytest_tooleval.broker.envelope import encodable, failure, json_text
from pytest_tooleval.errors import nearest
from pytest_tooleval.measures.text import cut

FIND, DESCRIBE, CALL = "findTool", "describeTool", "callTool"

OPERATIONS: Mapping[str, Mapping[str, Any]] = {
    FIND: {
        "name": FIND,
        "description": "Find the tool for a task. Start here. Answers with the best tool and what to do next.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Action and object, e.g. 'send a chat message'"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT},
            },
            "required": ["query"],
        },
    },
    DESCRIBE: {
        "name": DESCRIBE,
        "description": "Show a tool's exact argument schema and an example call.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "toolRef": {"type": "string", "description": "As findTool names it"},
                "part": {"type": "string", "description": "JSON pointer into a schema too large to show"},
            },
            "required": ["toolRef"],
        },
    },
    CALL: {
        "name": CALL,
        "description": "Call a tool. On an error, follow its agentInstruction.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "toolRef": {"type": "string"},
                "arguments": {"type": "object", "description": "Must fit the tool's schema"},
            },
            "required": ["toolRef", "arguments"],
        },
    },
}
"""Name, description and input schema of each operation: what a model is told at the start."""


class ToolBroker(Protocol):
    """What a surface stands before."""

    def find_tool(self, query: str, limit: int = ...) -> dict[str, Any]:
        """Find a tool."""
        ...

    def describe_tool(self, ref: str, part: str | None = ...) -> dict[str, Any]:
        """Describe a tool."""
        ...

    def call_tool(self, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Call a tool."""
        ...


def perform(broker: ToolBroker, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request.

    Args:
        broker: who answers.
        operation: a name in `OPERATIONS`.
        request: the operation's arguments, as they came.

    """
    known = OPERATIONS.get(operation)
    if known is None:
        return _unknown_operation(operation)
    if operation == CALL:
        request = {"arguments": {}, **request}
    faults = checker_of(known["inputSchema"]).faults(_readable(request))
    if faults:
        ref = request.get("toolRef")
        return failure(
            "ARGUMENT_VALIDATION_FAILED",
            f"{operation}: {'; '.join(faults)}",
            ref=ref if isinstance(ref, str) else "",
            instruction=f"Correct what the message names, then call {operation} with the corrected arguments.",
        )
    return _ANSWERS[operation](broker, request)


def answer_text(broker: ToolBroker, operation: str, request: Mapping[str, Any]) -> str:
    """Return the answer's JSON text, as every surface sends it."""
    return json_text(encodable(perform(broker, operation, request)))


def command_json(broker: ToolBroker, operation: str, request: Mapping[str, Any]) -> str:
    """Return what the command line prints for a request as JSON, by the way that the command itself takes.

    Raises:
        ValueError: the request is not JSON, so that no command line could carry it.

    """
    carried = dict(request)
    if "arguments" in carried:
        carried["arguments"] = json.loads(json.dumps(carried["arguments"], allow_nan=False))
    return answer_text(broker, operation, carried)


def _readable(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request without the arguments' inner values, which are the tool's to judge."""
    arguments = request.get("arguments")
    return {**request, "arguments": {}} if isinstance(arguments, Mapping) else dict(request)


def _unknown_operation(operation: str) -> dict[str, Any]:
    names = ", ".join(OPERATIONS)
    return failure(
        "TOOL_NOT_FOUND",
        f"there is no operation {cut(operation, 80)!r}{nearest(operation, OPERATIONS)}; there are: {names}",
        instruction=f"Call {FIND} with what you want to do; tools of the catalog are called through {CALL}.",
    )


_ANSWERS: Mapping[str, Callable[[ToolBroker, Mapping[str, Any]], dict[str, Any]]] = {
    FIND: lambda broker, request: broker.find_tool(request["query"], int(request.get("limit", DEFAULT_LIMIT))),
    DESCRIBE: lambda broker, request: broker.describe_tool(request["toolRef"], request.get("part")),
    CALL: lambda broker, request: broker.call_tool(request["toolRef"], request["arguments"]),
}
