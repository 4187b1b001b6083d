from __future__ import annotations

import pytest

from pytest_tooleval.agent.desk import DirectDesk
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.agent.tool_runner import ToolRunner
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import ToolCall


def desk(tmp_path, count: int) -> DirectDesk:
    names = [f"t{number}" for number in range(count)]
    tools = {name: Tool(name, "d", {"type": "object"}, "read", lambda _a, _c: "") for name in names}
    return DirectDesk(Offer(tools, {"rm": "no"}), ToolRunner(ToolContext(tmp_path), TimeLimit(), []))


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "the tools are: none"), (2, "the tools are: t0, t1"), (41, "the tools are: the 41 that were offered")],
)
def test_a_model_that_calls_what_is_not_there_is_told_what_is_unless_that_is_much(tmp_path, count, told):
    entry = desk(tmp_path, count).answer(3, ToolCall("i", "x", {}))
    assert (entry.turn, entry.outcome, entry.result) == (3, "unknown_tool", f"there is no tool 'x'; {told}")


def test_names_that_a_call_can_mean_are_those_of_denied_tools_too(tmp_path):
    assert list(desk(tmp_path, 1).names) == ["t0", "rm"]
    assert [spec.name for spec in desk(tmp_path, 1).specs] == ["t0"]
