from __future__ import annotations

from typing import Any

import pytest

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.tool_sets import BrokerTotals, ToolSetTotals, is_scripted, tool_set_totals


def run(size: int | None, *asked: dict[str, Any], way: str = "broker", verdict: Any = "passed") -> Measurement:
    record: dict[str, Any] = {"toolSet": {"model": "a:m", "tools": way, "distractors": 9, "size": size}}
    if way == "broker":
        record["brokerCalls"] = list(asked)
    return Measurement("tool_use", "n", "e", "f", 0, "c", "a:m+9+broker", verdict=verdict, record=record)


FIND = {"name": "findTool", "arguments": {"query": "x"}, "shown": ["grep"]}
FAILED_FIND = {"name": "findTool", "arguments": {}, "error": "ARGUMENT_VALIDATION_FAILED", "result": "{}"}
DESCRIBE = {"name": "describeTool", "arguments": {"toolRef": "suite.grep"}, "shown": ["grep"]}
PAST = {"name": "grep", "arguments": {}, "error": "TOOL_NOT_FOUND", "result": "{}"}


def test_sizes_span_and_calls_add_up_over_measured_runs():
    runs = [run(14, FIND, DESCRIBE), run(17, FIND, FAILED_FIND, PAST), run(99, FIND, verdict="error")]
    assert tool_set_totals(runs) == ToolSetTotals("a:m", "broker", 9, 14, 99, BrokerTotals(3, 1, 2))


def test_a_target_without_a_broker_asked_none():
    assert tool_set_totals([run(5, way="direct")]) == ToolSetTotals("a:m", "direct", 9, 5, 5, None)


def test_what_nobody_began_has_no_tools():
    assert tool_set_totals([]) is None
    assert tool_set_totals([Measurement("tool_use", "n", "e", "f", 0, "c", "t", verdict="skipped")]) is None
    assert tool_set_totals([run(None, verdict="error")]) == ToolSetTotals("a:m", "broker", 9, None, None, None)


@pytest.mark.parametrize("target", ["mock", "mock+broker", "mock+100", "mock+100+broker"])
def test_scripts_are_told_from_models(target):
    assert is_scripted(target)
    assert not is_scripted(f"openai:{target}")
    assert not is_scripted("mocker")
