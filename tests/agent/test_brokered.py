from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.agent.brokered import BrokerCatalogs, ScriptThroughBroker, catalog_of
from pytest_tooleval.agent.desk import DirectDesk
from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.agent.time_limit import TimeLimit
from pytest_tooleval.agent.tool_runner import ToolRunner
from pytest_tooleval.broker.envelope import CALL_BUDGET
from pytest_tooleval.broker.surface import OPERATIONS
from pytest_tooleval.cases.case import ScriptedCall, ScriptedTurn, Source, ToolUseCase
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ChatRequest
from pytest_tooleval.tools.distractors import DistractorPool
from pytest_tooleval.tools.registry import Offer, ToolRegistry
from pytest_tooleval.tools.tool import Tool, ToolContext, ToolLimits
from pytest_tooleval.transcript import AssistantMessage, BrokerCall, Run, ToolCall, ToolMessage, TraceEntry

FAR = Catalog(
    (CatalogServer("far", "offline"),), (CatalogTool("far.send_fax", "far", "send_fax", "", "Send a fax."),)
)


class Replies:
    """Gives replies one after the other."""

    def __init__(self, *replies: AssistantMessage) -> None:
        self._replies = list(replies)
        self.requests: list[ChatRequest] = []

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        self.requests.append(request)
        return self._replies.pop(0)

    def close(self) -> None:
        pass


def call(name: str, arguments: dict[str, Any] | None, raw: str = "") -> ToolCall:
    return ToolCall("id", name, arguments, raw)


def calls(ref: str, **arguments: Any) -> ToolCall:
    return call("callTool", {"toolRef": ref, "arguments": arguments})


def case(**keys: Any) -> ToolUseCase:
    return ToolUseCase("c", "Do it.", Source(Path("c.json")), **{"expected": ((),), **keys})


def offer(*tools: Tool, distractors: int = 0, **keys: Any) -> Offer:
    registry = ToolRegistry()
    registry.add_built_in()
    for tool in tools:
        registry.add(tool)
    return DistractorPool(FAR).added_to(registry.offer_for(case(**keys)), distractors)


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    return root


@pytest.fixture
def work(worktree):
    def run(
        *replies: Sequence[ToolCall], given: Offer | None = None, limits: ToolLimits | None = None, **keys: Any
    ) -> Run:
        messages = [*(AssistantMessage(calls=tuple(turn)) for turn in replies), AssistantMessage("Done.")]
        context = ToolContext(worktree, {"PATH": "/usr/bin:/bin"}, limits or ToolLimits())
        open_desk = BrokerCatalogs().open_desk
        tools = given or offer(**keys)
        return Agent(case(**keys), Replies(*messages), tools, context, AgentSettings(), open_desk=open_desk).run()

    return run


def traced(run: Run) -> list[tuple[str, Any, str]]:
    return [(entry.call.name, entry.call.arguments, entry.outcome) for entry in run.trace]


def answers(run: Run) -> list[dict[str, Any]]:
    return [json.loads(message.text) for message in run.messages if isinstance(message, ToolMessage)]


def test_a_model_sees_three_tools_and_its_trace_the_real_ones(work):
    run = work(
        [call("findTool", {"query": "read a text file"})],
        [call("describeTool", {"toolRef": "suite.file_read"})],
        [calls("suite.file_read", path="a.txt")],
    )

    assert (run.status, run.answer, run.turns) == ("ok", "Done.", 4)
    assert traced(run) == [("file_read", {"path": "a.txt"}, "ok")]
    assert (run.trace[0].turn, run.trace[0].call.raw_name) == (3, "file_read")
    find, describe = run.broker_calls
    assert (find.turn, find.call.name, find.call.arguments, find.error) == (
        1,
        "findTool",
        {"query": "read a text file"},
        "",
    )
    assert find.shown[0] == "file_read"
    assert (describe.turn, describe.shown, describe.failed) == (2, ("file_read",), False)
    found, described, called = answers(run)
    assert found["selectedToolRef"] == described["toolRef"] == called["toolRef"] == "suite.file_read"
    assert called["result"].endswith("1\tone\n2\ttwo")
    assert run.trace[0].result == json.dumps(called, ensure_ascii=False, separators=(",", ":"))


def test_the_request_offers_the_broker_and_nothing_else(worktree):
    model = Replies(AssistantMessage("Done."))
    open_desk = BrokerCatalogs().open_desk
    Agent(case(), model, offer(), ToolContext(worktree), AgentSettings(), open_desk=open_desk).run()
    assert [(tool.name, tool.description, tool.parameters) for tool in model.requests[0].tools] == [
        (each["name"], each["description"], each["inputSchema"]) for each in OPERATIONS.values()
    ]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("suite.file_read", ("file_read", "invalid_arguments")),
        ("suite.read_file", ("read_file", "unknown_tool")),
        ("other.read_file", ("other.read_file", "unknown_tool")),
        ("nonsense", ("nonsense", "unknown_tool")),
        ("suite.run_command", ("run_command", "denied")),
    ],
)
def test_what_the_broker_refuses_is_a_call_of_the_named_tool(work, ref, expected):
    run = work([calls(ref, line=1)])
    assert [(entry.call.name, entry.outcome) for entry in run.trace] == [expected]
    assert run.broker_calls == ()
    (message,) = (message for message in run.messages if isinstance(message, ToolMessage))
    assert message.is_error
    assert json.loads(message.text)["ok"] is False


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (call("callTool", {"arguments": {"path": "a.txt"}}), "ARGUMENT_VALIDATION_FAILED"),
        (call("callTool", {"toolRef": 7, "arguments": {}}), "ARGUMENT_VALIDATION_FAILED"),
        (call("callTool", None, "{oops"), "ARGUMENT_VALIDATION_FAILED"),
        (call("findTool", {}), "ARGUMENT_VALIDATION_FAILED"),
        (call("findTool", {"query": "x", "limit": 900}), "ARGUMENT_VALIDATION_FAILED"),
        (call("describeTool", {"toolRef": "suite.read_file"}), "TOOL_NOT_FOUND"),
        (call("file_read", {"path": "a.txt"}), "TOOL_NOT_FOUND"),
        (call("run_command", {"command": "ls"}), "TOOL_NOT_FOUND"),
        (calls("file_read", path="a.txt"), "TOOL_NOT_FOUND"),
    ],
)
def test_a_call_that_reaches_no_tool_is_no_call_of_one(work, made, error):
    run = work([made])
    assert run.trace == ()
    assert [(each.error, each.shown) for each in run.broker_calls] == [(error, ())]
    assert answers(run)[0]["error"]["type"] == error


def test_a_tool_that_does_not_exist_is_unknown_on_either_way(work):
    run = work([call("read_file", {"path": "a.txt"})])
    assert traced(run) == [("read_file", {"path": "a.txt"}, "unknown_tool")]
    assert answers(run)[0]["error"]["type"] == "TOOL_NOT_FOUND"


def test_a_namespace_before_an_operation_is_no_part_of_it(work):
    run = work([call("functions.callTool", {"toolRef": "suite.file_read", "arguments": {"path": "a.txt"}})])
    assert traced(run) == [("file_read", {"path": "a.txt"}, "ok")]
    assert run.notes == ("the model called 'functions.callTool', which was read as 'callTool'",)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path": "a.txt"}', ({"path": "a.txt"}, "ok")),
        ('"{\\"path\\": \\"a.txt\\"}"', ({"path": "a.txt"}, "ok")),
        ("", ({}, "invalid_arguments")),
        ("{oops", (None, "invalid_arguments")),
        ("[1]", (None, "invalid_arguments")),
        ([1], (None, "invalid_arguments")),
        (None, (None, "invalid_arguments")),
    ],
)
def test_nested_arguments_may_be_the_text_of_an_object(work, arguments, expected):
    run = work([call("callTool", {"toolRef": "suite.file_read", "arguments": arguments})])
    assert [(entry.call.arguments, entry.outcome) for entry in run.trace] == [expected]


def test_arguments_that_are_left_out_are_none(work):
    run = work([call("callTool", {"toolRef": "suite.list_dir"})])
    assert traced(run) == [("list_dir", {}, "ok")]


def test_a_null_for_an_optional_argument_is_left_out_as_where_tools_are_offered_at_once(work):
    run = work([calls("suite.file_read", path="a.txt", offset=None)])
    assert traced(run) == [("file_read", {"path": "a.txt"}, "ok")]


def test_a_tool_that_fails_is_an_error_of_that_tool(work):
    def fail(_arguments: Any, _context: ToolContext) -> str:
        raise ToolError("the disk is full")

    tool = Tool("save", "Save it.", {"type": "object"}, "read", fail)
    run = work([calls("suite.save")], given=offer(tool))
    assert traced(run) == [("save", {}, "error")]
    assert answers(run)[0]["error"]["message"] == "the tool reports: the disk is full"


def test_the_limit_of_a_result_holds_before_the_broker_sees_it(work):
    tool = Tool("dump", "Dump it.", {"type": "object"}, "read", lambda _arguments, _context: "x" * 5000)
    run = work([calls("suite.dump")], given=offer(tool), limits=ToolLimits(result_chars=300))
    cut_off = "[cut: the first 300 of 5000 characters; ask for a smaller part]"
    assert answers(run)[0]["result"] == "x" * 300 + "\n" + cut_off


def test_an_answer_keeps_the_brokers_budget(work):
    tool = Tool("dump", "Dump it.", {"type": "object"}, "read", lambda _arguments, _context: "x" * 20_000)
    (entry,) = work([calls("suite.dump")], given=offer(tool)).trace
    assert entry.outcome == "ok"
    assert len(entry.result) <= CALL_BUDGET
    assert "cut" in json.loads(entry.result)["notices"][0]


def test_what_cannot_be_tried_ends_the_run_as_an_error(work):
    def gone(_arguments: Any, _context: ToolContext) -> str:
        raise ToolUnavailableError("the server is gone")

    run = work([calls("suite.ask")], given=offer(Tool("ask", "Ask it.", {"type": "object"}, "read", gone)))
    assert (run.status, run.detail, run.trace) == ("error", "the server is gone", ())


def test_a_broken_schema_of_a_real_tool_is_no_failure_of_the_model(work):
    broken = Tool("ask", "Ask it.", {"type": "object", "properties": 3}, "read", lambda _a, _c: "")
    run = work([calls("suite.ask", x=1)], given=offer(broken))
    assert run.status == "error"
    assert "not a JSON Schema" in run.detail


def test_a_run_that_is_over_ends_within_a_call(worktree):
    stop = threading.Event()
    limit = TimeLimit(60.0, stop)

    def ends(_arguments: Any, _context: ToolContext) -> str:
        stop.set()
        with limit.spent_on("inner"):
            return ""

    tools = offer(Tool("wait", "Wait.", {"type": "object"}, "read", ends))
    model = Replies(AssistantMessage(calls=(calls("suite.wait"),)))
    open_desk = BrokerCatalogs().open_desk
    run = Agent(case(), model, tools, ToolContext(worktree), AgentSettings(), limit, open_desk=open_desk).run()
    assert (run.status, run.detail) == ("cancelled", "the run was ended from outside")


def test_a_distractor_is_found_and_called_and_not_available(work):
    run = work([call("findTool", {"query": "send a fax"})], [calls("far.send_fax")], given=offer(distractors=1))
    assert run.broker_calls[0].shown[0] == "send_fax"
    assert traced(run) == [("send_fax", {}, "error")]
    message = answers(run)[1]["error"]["message"]
    assert message == "the tool reports: the tool send_fax is not available in this run: do without it"


def test_a_find_and_a_describe_go_before_each_call_within_the_turn_limit(work):
    look = [call("findTool", {"query": "list"})]
    assert work(*[look] * 5, max_turns=2).status == "ok"
    run = work(*[look] * 6, max_turns=2)
    assert (run.status, run.detail) == ("truncated", "the turn limit of 6 was reached")


def test_catalogs_are_made_once_for_each_set_of_tools():
    catalogs = BrokerCatalogs()
    first = catalogs.of(offer())
    assert catalogs.of(offer()) is first
    assert catalogs.of(offer(tools_deny=("grep",))) is not first
    assert catalogs.of(offer(distractors=1)) is not first
    other = Tool("grep", "Another one.", {"type": "object"}, "read", lambda _a, _c: "")
    one, two = Offer({"grep": other}, {}), Offer({"grep": Tool("grep", "x", {}, "read", lambda _a, _c: "")}, {})
    assert catalogs.of(one) is not catalogs.of(two)


def test_many_threads_get_one_catalog():
    catalogs, given = BrokerCatalogs(), offer()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(catalogs.of(given))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(each) for each in found}) == 1


def test_the_catalog_holds_what_the_case_offers():
    catalog = catalog_of(offer(distractors=1, tool_permission={"edit": "allow"}))
    assert [server.id for server in catalog.servers] == ["suite", "far"]
    assert {server.status for server in catalog.servers} == {"online"}
    by_ref = catalog.by_ref
    assert {ref: by_ref[ref].read_only for ref in ("suite.file_read", "suite.file_edit", "far.send_fax")} == {
        "suite.file_read": True,
        "suite.file_edit": False,
        "far.send_fax": False,
    }
    assert "suite.run_command" not in by_ref


SCRIPT = (
    ScriptedTurn("", (ScriptedCall("file_read", {"path": "a.txt"}), ScriptedCall("tools.grep", {"pattern": "o"}))),
    ScriptedTurn("", (ScriptedCall("run_command", {"command": "ls"}), ScriptedCall("read", {}))),
    ScriptedTurn("", (ScriptedCall("file_read", "{oops"), ScriptedCall("send_fax", {"to": "x"}))),
    ScriptedTurn("", (ScriptedCall("file_read", {"path": "../a"}),)),
    ScriptedTurn("Two lines."),
)


def test_a_script_is_played_through_the_broker_to_the_same_trace(worktree):
    scripted, tools = case(mock=SCRIPT), offer(distractors=1)
    context = ToolContext(worktree)
    direct = Agent(scripted, MockProvider(), tools, context, AgentSettings(), open_desk=DirectDesk).run()
    script = ScriptThroughBroker(MockProvider(), tools)
    brokered = Agent(scripted, script, tools, context, AgentSettings(), open_desk=BrokerCatalogs().open_desk).run()

    assert traced(brokered) == traced(direct)
    assert [outcome for _, _, outcome in traced(direct)] == [
        "ok",
        "ok",
        "denied",
        "unknown_tool",
        "invalid_arguments",
        "error",
        "error",
    ]
    assert (brokered.answer, brokered.turns, brokered.broker_calls) == (direct.answer, direct.turns, ())
    assert {message.name for message in brokered.messages if isinstance(message, ToolMessage)} == {"callTool"}


def test_a_script_may_ask_the_broker_itself(worktree):
    scripted = case(
        mock=(ScriptedTurn("", (ScriptedCall("findTool", {"query": "read a file"}),)), ScriptedTurn("x"))
    )
    script = ScriptThroughBroker(MockProvider(), offer())
    run = Agent(
        scripted, script, offer(), ToolContext(worktree), AgentSettings(), open_desk=BrokerCatalogs().open_desk
    ).run()
    assert [each.call.name for each in run.broker_calls] == ["findTool"]
    assert script.cannot_run(case()) is not None


REAL = frozenset(offer().offered) | frozenset(offer().denied)
NAMES = st.sampled_from([*OPERATIONS, "file_read", "grep", "no_such_tool"])
REQUESTS = st.dictionaries(st.sampled_from(["query", "toolRef", "arguments", "limit", "part", "x"]), json_values())
REFS = st.sampled_from(["suite.grep", "suite.glob", "suite.no", "grep", "suite.", "", "suite.run_command"])


@given(name=NAMES, request=REQUESTS, ref=st.none() | REFS)
def test_whatever_a_model_sends_is_answered_in_json_and_never_credits_a_tool_that_was_not_reached(
    tmp_path_factory, name, request, ref
):
    limit = TimeLimit()
    runner = ToolRunner(ToolContext(tmp_path_factory.getbasetemp().resolve() / "none"), limit, [])
    if ref is not None:
        request = {**request, "toolRef": ref}
    entry = DESKS.open_desk(offer(), runner).answer(1, call(name, request))
    assert json.loads(entry.result)["ok"] is not entry.failed
    assert isinstance(entry, TraceEntry | BrokerCall)
    if isinstance(entry, TraceEntry) and entry.outcome == "unknown_tool":
        assert entry.call.name not in REAL
    if isinstance(entry, TraceEntry) and entry.call.name in REAL:
        assert request["toolRef"] == f"suite.{entry.call.name}"


DESKS = BrokerCatalogs()
