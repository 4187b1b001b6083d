"""Requests as surfaces hand them on, and the size of what a model is told at the start."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from small_broker import MESSAGE, broker_over

from pytest_tooleval.broker.envelope import error_type, json_text
from pytest_tooleval.broker.surface import OPERATIONS, answer_text, command_json, perform


def test_three_operations_with_schemas_that_are_schemas() -> None:
    assert list(OPERATIONS) == ["findTool", "describeTool", "callTool"]
    for name, operation in OPERATIONS.items():
        assert operation["name"] == name
        jsonschema.Draft202012Validator.check_schema(operation["inputSchema"])


def test_what_a_model_is_told_at_the_start_is_small() -> None:
    assert sum(len(json_text(operation)) for operation in OPERATIONS.values()) < 1000


def test_requests_reach_the_broker() -> None:
    broker = broker_over()

    assert perform(broker, "findTool", {"query": "post a message", "limit": 2.0}) == broker.find_tool(
        "post a message", 2
    )
    assert perform(
        broker, "describeTool", {"toolRef": "cloud.deploy_app", "part": "/type"}
    ) == broker.describe_tool("cloud.deploy_app", "/type")
    assert perform(broker, "callTool", {"toolRef": "chat.post_message", "arguments": MESSAGE}) == broker.call_tool(
        "chat.post_message", MESSAGE
    )


@pytest.mark.parametrize(
    ("operation", "request_", "kind", "expected"),
    [
        ("findTool", {}, "ARGUMENT_VALIDATION_FAILED", "the required argument 'query' is missing"),
        ("findTool", {"query": 3}, "ARGUMENT_VALIDATION_FAILED", "at /query: found 3; expected a string"),
        ("findTool", {"query": "x", "limit": 26}, "ARGUMENT_VALIDATION_FAILED", "maximum 25"),
        ("findTool", {"query": "x", "limit": True}, "ARGUMENT_VALIDATION_FAILED", "expected a whole number"),
        ("describeTool", {"toolRef": None}, "ARGUMENT_VALIDATION_FAILED", "at /toolRef"),
        (
            "callTool",
            {"toolRef": "chat.post_message", "arguments": "{}"},
            "ARGUMENT_VALIDATION_FAILED",
            "at /arguments",
        ),
        ("callTool", {"toolRef": "chat.post_message"}, "ARGUMENT_VALIDATION_FAILED", "'channel' is missing"),
        ("calTool", {}, "TOOL_NOT_FOUND", "did you mean 'callTool'?"),
    ],
)
def test_a_request_that_cannot_be_read(operation: str, request_: Any, kind: str, expected: str) -> None:
    answer = perform(broker_over(), operation, request_)

    assert error_type(answer) == kind
    assert expected in answer["error"]["message"]
    assert answer["error"]["agentInstruction"]


def test_the_command_lines_json_is_the_answers() -> None:
    broker = broker_over()
    request = {"toolRef": "chat.post_message", "arguments": {"channel": "中", "text": "\u2028"}}

    text = command_json(broker, "callTool", request)

    assert text == answer_text(broker, "callTool", request)
    assert json.loads(text) == broker.call_tool("chat.post_message", request["arguments"])


def test_what_no_command_line_could_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        command_json(broker_over(), "callTool", {"toolRef": "x.y", "arguments": {"a": float("nan")}})
