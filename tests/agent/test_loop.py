from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.cases.case import ScriptedCall, ScriptedTurn, Source, ToolUseCase, Verifier
from pytest_tooleval.errors import ProviderError, ToolError, ToolUnavailableError
from pytest_tooleval.measures.verify import Behaviour, CalledTool, verify
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ChatRequest, Provider, Sampling
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import Tool, ToolContext, ToolLimits
from pytest_tooleval.transcript import AssistantMessage, Run, ToolCall, ToolMessage, Usage, UserMessage

TASK = "Do it."
ALL = {"edit": "allow", "bash": "allow"}


class ScriptedModel:
    """Replies one after the other; an exception among them is raised."""

    def __init__(self, *replies: AssistantMessage | Exception) -> None:
        self._replies = list(replies)
        self.requests: list[ChatRequest] = []

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        self.requests.append(request)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self) -> None:
        pass


def call(
    name: str, arguments: dict[str, Any] | None, raw: str = "", *, call_id: str = "", raw_name: str = ""
) -> ToolCall:
    return ToolCall(call_id or f"id-{name}", name, arguments, raw, raw_name)


def says(text: str = "", *calls: ToolCall, finish: Any = "stop", usage: Usage | None = None) -> AssistantMessage:
    return AssistantMessage(text, calls, finish, usage)


def tool(name: str, run: Any, category: Any = "read", parameters: dict[str, Any] | None = None) -> Tool:
    return Tool(name, "d", parameters or {"type": "object"}, category, run)


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    return root


@pytest.fixture
def work(worktree):
    """Let a model work on a case with the built-in tools and those given."""

    def run(
        model: Provider,
        *,
        tools: Sequence[Tool] = (),
        settings: AgentSettings | None = None,
        limits: ToolLimits | None = None,
        **keys: Any,
    ) -> Run:
        registry = ToolRegistry()
        registry.add_built_in()
        for each in tools:
            registry.add(each)
        case = ToolUseCase("c", TASK, Source(Path("c.json")), **{"expected": ((),), **keys})
        context = ToolContext(worktree, {"PATH": "/usr/bin:/bin"}, limits or ToolLimits())
        return Agent(case, model, registry.offer_for(case), context, settings or AgentSettings()).run()

    return run


def outcomes(run: Run) -> list[tuple[str, str]]:
    return [(entry.call.name, entry.outcome) for entry in run.trace]


def test_the_model_calls_a_tool_sees_its_result_and_answers(work):
    model = ScriptedModel(says("Reading.", call("file_read", {"path": "a.txt"})), says("Two lines."))
    run = work(model)

    assert (run.status, run.detail, run.answer, run.turns, run.notes) == ("ok", "", "Two lines.", 2, ())
    (entry,) = run.trace
    assert (entry.turn, entry.outcome, entry.call.arguments) == (1, "ok", {"path": "a.txt"})
    assert entry.result.endswith("1\tone\n2\ttwo")
    assert [type(message) for message in run.messages] == [
        UserMessage,
        AssistantMessage,
        ToolMessage,
        AssistantMessage,
    ]
    assert run.messages[0] == UserMessage(TASK)
    assert run.messages[2] == ToolMessage("id-file_read", "file_read", entry.result, is_error=False)
    assert run.seconds > 0


def test_each_request_holds_the_whole_conversation_the_offered_tools_and_the_settings(work):
    model = ScriptedModel(says("", call("file_read", {"path": "a.txt"})), says("ok"))
    settings = AgentSettings("Be brief.", Sampling(temperature=0.0, seed=7))
    work(model, settings=settings, tools_deny=("web_fetch",))

    first, second = model.requests
    assert [type(message) for message in first.messages] == [UserMessage]
    assert [type(message) for message in second.messages] == [UserMessage, AssistantMessage, ToolMessage]
    assert (second.system, second.sampling) == ("Be brief.", Sampling(temperature=0.0, seed=7))
    assert [spec.name for spec in first.tools] == ["file_read", "list_dir", "glob", "grep"]
    assert first.tools == second.tools


def test_the_mock_provider_plays_its_script_and_then_falls_silent(work):
    script = (ScriptedTurn("", (ScriptedCall("file_read", {"path": "a.txt"}), ScriptedCall("grep", "{oops"))),)
    run = work(MockProvider(), mock=script)

    assert outcomes(run) == [("file_read", "ok"), ("grep", "invalid_arguments")]
    assert (run.status, run.answer, run.turns, run.usage) == ("ok", "", 2, None)


def test_parallel_calls_run_one_after_the_other_in_the_models_order(work, worktree):
    reply = says(
        "",
        call("run_command", {"command": "sleep 0.2; echo slow > b.txt"}, call_id="1"),
        call("file_read", {"path": "b.txt"}, call_id="2"),
        call("file_write", {"path": "b.txt", "content": "new\n"}, call_id="3"),
        call("grep", {"pattern": "new"}, call_id="4"),
    )
    run = work(ScriptedModel(reply, says("done")), tool_permission=ALL)

    assert outcomes(run) == [("run_command", "ok"), ("file_read", "ok"), ("file_write", "ok"), ("grep", "ok")]
    assert run.names == ("run_command", "file_read", "file_write", "grep")
    assert [message.call_id for message in run.messages if isinstance(message, ToolMessage)] == ["1", "2", "3", "4"]
    assert "slow" in run.trace[1].result
    assert "b.txt" in run.trace[3].result


@pytest.mark.parametrize(
    ("called", "outcome", "text"),
    [
        (
            call("do_magic", {}),
            "unknown_tool",
            "there is no tool 'do_magic'; the tools are: file_read, list_dir, glob, grep, web_fetch",
        ),
        (
            call("do_magic", None, "{oops"),
            "unknown_tool",
            "there is no tool 'do_magic'; the tools are: file_read, list_dir, glob, grep, web_fetch",
        ),
        (
            call("", {}),
            "unknown_tool",
            "there is no tool ''; the tools are: file_read, list_dir, glob, grep, web_fetch",
        ),
        (
            call("file_read", None, '{"path": "a.t'),
            "invalid_arguments",
            'the arguments are not a JSON object: {"path": "a.t',
        ),
        (
            call("file_read", None, '["a.txt"]'),
            "invalid_arguments",
            'the arguments are not a JSON object: ["a.txt"]',
        ),
        (call("file_read", {}), "invalid_arguments", 'invalid arguments: "path" is a required property'),
        (call("file_read", {"path": 5}), "invalid_arguments", 'invalid arguments: path: 5 is not of type "string"'),
        (
            call("file_read", {"path": "a.txt", "limit": 1.5}),
            "invalid_arguments",
            'invalid arguments: limit: 1.5 is not of type "integer"',
        ),
        (
            call("file_write", {"path": "a.txt", "content": "x"}),
            "denied",
            (
                "the tool file_write is not allowed here: the permission of category 'edit' is 'deny'; "
                "allowed tools: file_read, list_dir, glob, grep, web_fetch"
            ),
        ),
        (call("file_read", {"path": "../x"}), "error", None),
        (call("file_read", {"path": "missing.txt"}), "error", None),
    ],
)
def test_a_call_that_fails_is_told_to_the_model_and_the_run_goes_on(work, worktree, called, outcome, text):
    run = work(ScriptedModel(says("", called), says("sorry")))

    assert (run.status, run.answer, outcomes(run)) == ("ok", "sorry", [(called.name, outcome)])
    message = run.messages[2]
    assert isinstance(message, ToolMessage)
    assert message.is_error
    assert message.text == run.trace[0].result
    if text is not None:
        assert message.text == text
    assert (worktree / "a.txt").read_text() == "one\ntwo\n"


def test_no_call_is_not_an_unknown_tool(work):
    run = work(ScriptedModel(says("I would call do_magic.")))
    assert (run.status, run.trace, run.names) == ("ok", (), ())


def test_a_tool_that_the_task_denies(work):
    run = work(ScriptedModel(says("", call("grep", {"pattern": "x"})), says("ok")), tools_deny=("grep",))

    assert outcomes(run) == [("grep", "denied")]
    assert run.trace[0].result.startswith(
        "the tool grep is not allowed here: this task denies it; allowed tools: file_read"
    )


@pytest.mark.parametrize("value", ["allow", "ask"])
def test_a_permission_that_allows(work, worktree, value):
    write = call("file_write", {"path": "new.txt", "content": "x"})
    run = work(ScriptedModel(says("", write), says("ok")), tool_permission={"edit": value})

    assert outcomes(run) == [("file_write", "ok")]
    assert (worktree / "new.txt").read_text() == "x"


@pytest.mark.parametrize(
    "cut",
    [
        call("file_write", None, '{"path": "a.txt", "conte', call_id="2"),
        call("file_write", {"path": "a.txt", "content": "cut"}, call_id="2"),
        call("file_write", {"path": "a.txt"}, call_id="2"),
    ],
)
def test_a_call_that_the_output_limit_cut_off_never_runs_and_those_before_it_do(work, worktree, cut):
    before = call("file_write", {"path": "b.txt", "content": "whole"}, call_id="1")
    run = work(ScriptedModel(says("", before, cut, finish="length"), says("ok")), tool_permission=ALL)

    assert [(entry.call.id, entry.outcome) for entry in run.trace] == [("1", "ok")]
    assert (worktree / "a.txt").read_text() == "one\ntwo\n"
    assert (worktree / "b.txt").read_text() == "whole"
    words = "not run: the reply was cut off by the output limit before this call was complete"
    assert run.messages[3] == ToolMessage("2", "file_write", words, is_error=True)
    assert run.notes == (f"a call of file_write was {words}",)
    assert run.status == "ok"


def test_an_answer_that_the_output_limit_cut_off(work):
    run = work(ScriptedModel(says("It has fo", finish="length")))

    assert (run.status, run.detail) == ("truncated", "the reply was cut off by the output limit")
    assert run.answer == ""
    assert run.messages[-1] == says("It has fo", finish="length")


@pytest.mark.parametrize(("case_turns", "suite_turns", "turns"), [(None, 2, 2), (3, 2, 3), (1, 10, 1)])
def test_reaching_the_turn_limit_is_truncated(work, case_turns, suite_turns, turns):
    replies = [says("Still looking.", call("file_read", {"path": "a.txt"})) for _ in range(turns)]
    model = ScriptedModel(*replies)
    run = work(model, settings=AgentSettings(max_turns=suite_turns), max_turns=case_turns)

    assert (run.status, run.detail) == ("truncated", f"the turn limit of {turns} was reached")
    assert (run.turns, len(run.trace), len(model.requests)) == (turns, turns, turns)
    assert run.answer == ""
    assert isinstance(run.messages[-1], ToolMessage)


def test_an_infrastructure_error_of_the_provider_ends_the_run_and_keeps_what_was_done(work):
    model = ScriptedModel(says("Hm.", call("file_read", {"path": "a.txt"})), ProviderError("503 after 4 retries"))
    run = work(model)

    assert (run.status, run.detail, run.answer, run.turns) == ("error", "503 after 4 retries", "", 1)
    assert outcomes(run) == [("file_read", "ok")]


def test_a_tool_that_could_not_be_tried_ends_the_run(work):
    def gone(arguments: Any, context: ToolContext) -> str:
        raise ToolUnavailableError("the server is gone")

    run = work(ScriptedModel(says("", call("gone", {}))), tools=[tool("gone", gone)])

    assert (run.status, run.detail, run.trace) == ("error", "the server is gone", ())


@pytest.mark.parametrize(
    ("error", "text", "notes"),
    [
        (ToolError("no such row"), "no such row", ()),
        (ValueError("bad"), "the tool failed: ValueError: bad", ("tool own raised ValueError: bad",)),
        (KeyError("x"), "the tool failed: KeyError: 'x'", ("tool own raised KeyError: 'x'",)),
        (SystemExit(2), "the tool failed: SystemExit: 2", ("tool own raised SystemExit: 2",)),
    ],
)
def test_a_users_tool_may_raise_anything(work, error, text, notes):
    def fail(arguments: Any, context: ToolContext) -> str:
        raise error

    run = work(ScriptedModel(says("", call("own", {})), says("ok")), tools=[tool("own", fail)])

    assert (run.status, outcomes(run), run.trace[0].result, run.notes) == ("ok", [("own", "error")], text, notes)


def test_a_tool_that_changes_its_arguments_does_not_change_the_trace(work):
    def greedy(arguments: Any, context: ToolContext) -> str:
        arguments["items"].append("more")
        arguments.pop("name")
        return "done"

    reply = says("", call("greedy", {"name": "x", "items": ["a"]}))
    run = work(ScriptedModel(reply, says("ok")), tools=[tool("greedy", greedy)])

    assert run.trace[0].call.arguments == {"name": "x", "items": ["a"]}
    assert run.messages[1] == says("", call("greedy", {"name": "x", "items": ["a"]}, raw_name="greedy"))


def test_a_null_for_an_optional_argument_is_left_out_and_the_raw_arguments_stay(work):
    raw = '{"path": "a.txt", "limit": null}'
    run = work(ScriptedModel(says("", call("file_read", {"path": "a.txt", "limit": None}, raw)), says("ok")))

    (entry,) = run.trace
    assert (entry.outcome, entry.call.arguments, entry.call.raw_arguments) == ("ok", {"path": "a.txt"}, raw)
    absent = Verifier(args_exact={"file_read": {"path": "a.txt", "limit": {"$absent": True}}})
    case = ToolUseCase("c", TASK, Source(Path("c.json")), verifier=absent)
    assert verify(case, Behaviour([CalledTool(entry.call.name, entry.call.arguments)], "ok")) == []


@pytest.mark.parametrize(
    ("name", "read_as", "outcome"),
    [
        ("functions.file_read", "file_read", "ok"),
        ("tools.file_read", "file_read", "ok"),
        ("default_api:file_read", "file_read", "ok"),
        ("functions.file_write", "file_write", "denied"),
        ("functions.do_magic", "functions.do_magic", "unknown_tool"),
        ("read", "read", "unknown_tool"),
        ("other.file_read", "other.file_read", "unknown_tool"),
        ("FILE_READ", "FILE_READ", "unknown_tool"),
    ],
)
@pytest.mark.parametrize("named_by_the_provider", [False, True])
def test_a_namespace_before_a_known_name_is_removed_and_noted(work, name, read_as, outcome, named_by_the_provider):
    called = call(name, {"path": "a.txt"}, raw_name=name)
    if named_by_the_provider and outcome == "ok":
        called = call(read_as, {"path": "a.txt"}, raw_name=name)
    run = work(ScriptedModel(says("", called), says("ok")))

    (entry,) = run.trace
    assert (entry.call.name, entry.call.raw_name, entry.outcome) == (read_as, name, outcome)
    assert run.notes == ((f"the model called {name!r}, which was read as {read_as!r}",) if name != read_as else ())


def test_a_call_written_as_text_is_not_run_but_noted(work):
    text = '<tool_call>{"name": "grep", "arguments": {"pattern": "x"}}</tool_call>'
    run = work(ScriptedModel(says(text)))

    assert (run.status, run.trace, run.answer) == ("ok", (), text)
    assert run.notes == (
        "the text looks like an unparsed tool call; check the server's tool-call parser and chat template",
    )


@pytest.mark.parametrize(
    ("usages", "total"),
    [
        ([Usage(input=10, output=2)], 12),
        ([Usage(input=10, output=2, reported_total=15), Usage(input=1, cache_read=4, output=1)], 21),
        ([Usage(input=10, output=2), None], None),
        ([None, Usage(input=10, output=2)], None),
        ([None], None),
    ],
)
def test_tokens_are_those_of_all_replies_or_unknown(work, usages, total):
    *earlier, last = usages
    replies = [says("", call("file_read", {"path": "a.txt"}), usage=usage) for usage in earlier]
    run = work(ScriptedModel(*replies, says("ok", usage=last)))

    assert (run.usage.total if run.usage else None) == total


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("x" * 20, "x" * 20),
        ("x" * 21, "x" * 20 + "\n[cut: the first 20 of 21 characters; ask for a smaller part]"),
        ("a\ud83d", "a\ufffd"),
        (None, "None"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_results_of_users_tools_are_bounded_text(work, result, text):
    own = tool("own", lambda arguments, context: result)
    run = work(
        ScriptedModel(says("", call("own", {})), says("ok")), tools=[own], limits=ToolLimits(result_chars=20)
    )

    assert run.trace[0].result == text


@pytest.mark.parametrize("parameters", [{"type": "objekt"}, {"type": "object", "enum": {1, 2}}])
def test_a_tool_whose_schema_is_none_is_no_fault_of_the_model(work, parameters):
    own = tool("own", lambda arguments, context: "never", parameters=parameters)
    run = work(ScriptedModel(says("", call("own", {}))), tools=[own])

    assert run.status == "error"
    assert run.detail.startswith("the schema of tool 'own' is not ")


def test_the_time_of_the_whole_run(work):
    def slow(arguments: Any, context: ToolContext) -> str:
        time.sleep(0.05)
        return "ok"

    run = work(ScriptedModel(says("", call("slow", {})), says("ok")), tools=[tool("slow", slow)])
    assert 0.05 <= run.seconds < 5
