from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cassette_samples import REPLIES
from chat_samples import chat_answer
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Asked, LoopbackServer, Scripted, as_json
from recorded_runs import TARGET, result_without_times, run_recorded, tool_use_case

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import ProviderError, ToolUnavailableError
from pytest_tooleval.providers.account import Redactor
from pytest_tooleval.providers.places import Places
from pytest_tooleval.providers.presets import PRESETS, preset_factory
from pytest_tooleval.providers.provider import ChatRequest, Provider, ProviderSettings, Sampling, ToolSpec
from pytest_tooleval.providers.replay import CassetteShelf, StaleCassetteError
from pytest_tooleval.tools.tool import Tool
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]
Change = Callable[[ChatRequest], ChatRequest]

SUPPORT = Path(__file__).parents[1] / "support"
KEY = "sk-TopSecret-99"
NAME = "openai__m/c.json"
SHOWN = f"cassettes/{NAME}"
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 20},
}
COUNT = {"files": {"a.txt": "one\ntwo\n"}, "tool_permission": {"bash": "allow"}}


class OwnProvider:
    """A provider as a user may register one; a reply may be made of the request, or be raised."""

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self.asked = 0

    def cannot_run(self, case: ToolUseCase) -> str | None:
        return "too hard" if case.id == "hard" else None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        self.asked += 1
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        made: AssistantMessage = reply(request) if callable(reply) else reply
        return made

    def close(self) -> None:
        raise AssertionError("a conversation closes nothing that it did not open")


def wire_call(name: str, arguments: str, call_id: str, **rest: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **rest}


def calling(*calls: dict[str, Any], **rest: Any) -> Scripted:
    return as_json(chat_answer({"content": None, "tool_calls": list(calls), **rest}, "tool_calls", usage=USAGE))


def saying(text: str) -> Scripted:
    return as_json(chat_answer({"content": text}, usage=USAGE))


def call(name: str = "file_read", call_id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


def says(text: str = "", *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text, calls)


@pytest.fixture
def over_http() -> Iterator[Callable[[LoopbackServer], Provider]]:
    """Open the provider of the Chat Completions dialect for a server."""
    (preset,) = (preset for preset in PRESETS if preset.name == "openai")
    open_preset = preset_factory(preset, {preset.key_variable: KEY})
    opened: list[Provider] = []

    def start(server: LoopbackServer) -> Provider:
        opened.append(open_preset(ProviderSettings("m", server.url, timeout=5.0, retries=1)))
        return opened[-1]

    yield start
    for provider in opened:
        provider.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "evals" / "cassettes"


@pytest.fixture
def shelf(folder: Path) -> Callable[..., CassetteShelf]:
    return lambda mode, redact=str, holds_secret=None: CassetteShelf(
        folder, mode, redact, holds_secret, Path("cassettes")
    )


# --- a run over HTTP, recorded and replayed


EVENTFUL = (
    as_json({"error": {"message": "busy"}}, 503, Retry_After="0"),
    calling(
        wire_call(
            "functions.file_read", '{"path":"a.txt"}', "c1", extra_content={"google": {"thought_signature": "Wg=="}}
        ),
        wire_call("run_command", '{"command": "pwd; echo $HOME $TMPDIR"}', "c2"),
        reasoning_content="I read, then I look where I am.",
    ),
    calling(wire_call("file_raed", "{}", "c3"), wire_call("file_read", '{"path":', "c4")),
    saying("Two lines, in {worktree} of all places."),
)


def test_a_replayed_run_is_the_recorded_one(serve: Serve, folder: Path, shelf: Any, over_http: Any) -> None:
    server = serve(*EVENTFUL)
    case = tool_use_case(**COUNT)
    recorded = run_recorded(shelf("record"), case, over_http(server))
    assert (recorded.status, recorded.attempts, recorded.turns) == ("ok", 4, 3)
    assert recorded.usage == Usage(input=60, cache_read=300, output=90, reasoning=60, reported_total=450)
    assert [entry.outcome for entry in recorded.trace] == ["ok", "ok", "unknown_tool", "invalid_arguments"]
    assert recorded.notes == (
        "asked again: HTTP 503: busy",
        "the model called 'functions.file_read', which was read as 'file_read'",
    )

    connections = server.connections
    replayed = run_recorded(shelf("replay"), case)
    assert server.connections == connections
    assert result_without_times(case, replayed) == result_without_times(case, recorded)
    assert replayed.answer == "Two lines, in {worktree} of all places."
    assert replayed.messages[1] == recorded.messages[1]
    assert replayed.messages[1] == AssistantMessage(
        calls=(
            ToolCall(
                "c1",
                "file_read",
                {"path": "a.txt"},
                '{"path":"a.txt"}',
                "functions.file_read",
                {"extra_content": {"google": {"thought_signature": "Wg=="}}},
            ),
            ToolCall(
                "c2",
                "run_command",
                {"command": "pwd; echo $HOME $TMPDIR"},
                '{"command": "pwd; echo $HOME $TMPDIR"}',
                "run_command",
            ),
        ),
        usage=Usage(input=20, cache_read=100, output=30, reasoning=20, reported_total=150),
        opaque={"reasoning_content": "I read, then I look where I am."},
        attempts=2,
        notes=("asked again: HTTP 503: busy",),
    )
    assert recorded.trace[1].result != replayed.trace[1].result


def test_a_cassette_holds_no_key_no_header_no_url_and_no_path_of_the_run(
    serve: Serve, folder: Path, shelf: Any, over_http: Any
) -> None:
    server = serve(*EVENTFUL)
    run = run_recorded(shelf("record"), tool_use_case(**COUNT), over_http(server))
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.asked)
    text = (folder / NAME).read_text(encoding="utf-8")
    worktree, rest = run.trace[1].result.split("\n", 1)
    assert worktree.endswith("/work")
    for absent in (KEY, "Bearer", "Authorization", "127.0.0.1", worktree, *rest.split()[:2]):
        assert absent not in text
    assert '"{worktree}",' in text
    assert '"{home} {tmp}",' in text


def test_the_same_replies_give_the_same_bytes(serve: Serve, folder: Path, shelf: Any, over_http: Any) -> None:
    texts = []
    for _ in range(2):
        run_recorded(shelf("record"), tool_use_case(**COUNT), over_http(serve(*EVENTFUL)))
        texts.append((folder / NAME).read_bytes())
    assert texts[0] == texts[1]
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["c.json"]


REPLAYING = """
import sys

def refuse(event, arguments):
    if event.startswith("socket."):
        raise PermissionError(f"{event} is refused here")

sys.addaudithook(refuse)

import json
from pathlib import Path
from recorded_runs import result_without_times, run_recorded, tool_use_case
from pytest_tooleval.providers.replay import CassetteShelf

case = tool_use_case(**json.loads(sys.argv[2]))
run = run_recorded(CassetteShelf(Path(sys.argv[1]), "replay"), case)
print(json.dumps(result_without_times(case, run)))
"""


@pytest.mark.parametrize("prefix", [(), ("unshare", "-rn")], ids=["sockets refused", "no network"])
def test_a_replay_needs_no_network_and_no_key(
    prefix: Sequence[str], serve: Serve, folder: Path, shelf: Any, over_http: Any
) -> None:
    if prefix and (
        not shutil.which(prefix[0])
        or subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("namespaces without network cannot be made here")
    case = tool_use_case(**COUNT)
    recorded = run_recorded(shelf("record"), case, over_http(serve(*EVENTFUL)))
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    done = subprocess.run(
        [*prefix, sys.executable, "-c", REPLAYING, str(folder), json.dumps(COUNT)],
        check=False,
        env=environment | {"PYTHONPATH": str(SUPPORT)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(result_without_times(case, recorded)))


class CountingServer(LoopbackServer):
    """Repeats the task, with the number of the request."""

    def __init__(self) -> None:
        super().__init__([])

    def next_answer(self, asked: Asked) -> Scripted:
        with self.lock:
            self.asked.append(asked)
            number = len(self.asked)
        return saying(f"{asked.body['messages'][1]['content']} {number}")


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    server = CountingServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_each_trial_has_answers_of_its_own(
    counting: CountingServer, folder: Path, shelf: Any, over_http: Any
) -> None:
    case = tool_use_case()
    first = [run_recorded(shelf("record"), case, over_http(counting), trial=trial).answer for trial in (1, 2, 3)]
    assert first == ["Count. 1", "Count. 2", "Count. 3"]
    assert [run_recorded(shelf("replay"), case, trial=trial).answer for trial in (3, 1, 2)] == [
        "Count. 3",
        "Count. 1",
        "Count. 2",
    ]
    assert sorted(path.name for path in (folder / "openai__m").iterdir()) == ["c.json", "c.t2.json", "c.t3.json"]


def test_runs_at_one_time_keep_their_replies_apart(counting: CountingServer, shelf: Any, over_http: Any) -> None:
    cases = [tool_use_case(f"case{number}", task=f"Task {number}:") for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        recording, replaying = shelf("record"), shelf("replay")
        provider = over_http(counting)
        recorded = [run.answer for run in pool.map(lambda case: run_recorded(recording, case, provider), cases)]
        replayed = [run.answer for run in pool.map(lambda case: run_recorded(replaying, case), reversed(cases))]
    assert [answer.rpartition(" ")[0] for answer in recorded] == [case.task for case in cases]
    assert replayed[::-1] == recorded


# --- paths


def test_a_path_that_the_model_repeats_is_the_one_of_the_replaying_run(folder: Path, shelf: Any) -> None:
    def read_there(request: ChatRequest) -> AssistantMessage:
        last = request.messages[-1]
        assert isinstance(last, ToolMessage)
        path = f"{last.text.splitlines()[0]}/a.txt"
        raw = json.dumps({"path": path}).replace(" ", "")
        return AssistantMessage(calls=(ToolCall("c2", "file_read", {"path": path}, raw),))

    provider = OwnProvider(says("", call("run_command", command="pwd")), read_there, says("Two."))
    case = tool_use_case(**COUNT)
    recorded = run_recorded(shelf("record"), case, provider)
    replayed = run_recorded(shelf("replay"), case)
    assert [entry.outcome for entry in replayed.trace] == ["ok", "ok"]
    assert replayed.trace[1].result == recorded.trace[1].result
    path = replayed.trace[0].result.splitlines()[0] + "/a.txt"
    assert replayed.trace[1].call.arguments == {"path": path}
    assert json.loads(replayed.trace[1].call.raw_arguments) == {"path": path}
    assert recorded.trace[1].call.arguments != {"path": path}
    call_shown = json.loads((folder / NAME).read_text())["exchanges"][1]["reply"]["calls"][0]
    assert call_shown["arguments"] == {"path": "{worktree}/a.txt"}
    assert call_shown["raw"] == '{"path":"{worktree}/a.txt"}'


HERE, THERE = (
    Places("/here/work", "/here/home", "/here/tmp"),
    Places("/there/7/work", "/there/7/home", "/there/tmp"),
)
PATHS = st.sampled_from(["", "/here/work/a", "{worktree}", "/here/home/here/tmp", "{~tmp} /here/work"])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(REPLIES, PATHS, PATHS), min_size=1, max_size=3))
def test_any_conversation_is_replayed_as_it_was_recorded(turns: list[tuple[AssistantMessage, str, str]]) -> None:
    replies = [replace(reply, text=reply.text + path) for reply, path, _ in turns]
    results = [result for *_, result in turns]
    elsewhere = [THERE.restored(HERE.spelled(reply)) for reply in replies]
    results_elsewhere = [THERE.restore(HERE.spell(result)) for result in results]
    with tempfile.TemporaryDirectory() as folder:
        recorded = converse(folder, "record", replies, results, HERE)
        text = (Path(folder) / NAME).read_bytes()
        replayed = converse(folder, "replay", None, results_elsewhere, THERE)
        again = converse(folder, "record", elsewhere, results_elsewhere, THERE)
        assert (Path(folder) / NAME).read_bytes() == text
    assert [replace(reply, calls=()) for reply in recorded] == [replace(reply, calls=()) for reply in replies]
    assert replayed == again
    assert [HERE.spelled(reply) for reply in recorded] == [THERE.spelled(reply) for reply in replayed]


def converse(
    folder: str, mode: Any, replies: list[AssistantMessage] | None, results: list[str], places: Places
) -> list[AssistantMessage]:
    """Have a conversation in which each reply is followed by one result."""
    provider = None if replies is None else OwnProvider(*replies)
    conversation = CassetteShelf(Path(folder), mode).conversation(tool_use_case(), TARGET, 1, provider, places)
    messages: list[Message] = [UserMessage("Count.")]
    played = []
    for result in results:
        played.append(conversation.reply(tool_use_case(), ChatRequest("", tuple(messages))))
        messages += [played[-1], ToolMessage("c", "t", result)]
    conversation.save()
    return played


# --- what no longer fits


GREP = ToolSpec(
    "grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string", "minLength": 1}}}
)
READ = ToolSpec("file_read", "Read.", {"type": "object", "required": ["path"]})
FIRST = ChatRequest("Be brief.", (UserMessage("Count."),), (GREP, READ), Sampling(temperature=0.0, seed=7))
READING = AssistantMessage(calls=(ToolCall("c1", "file_read", {"path": "a"}, '{"path": "a"}', "file_read"),))
SECOND = replace(FIRST, messages=(*FIRST.messages, READING, ToolMessage("c1", "file_read", "1\tone\n2\ttwo")))
DONE = AssistantMessage("Two.")


def ask(
    shelf: CassetteShelf, *requests: ChatRequest, target: str = TARGET, trial: int = 1, case_id: str = "c"
) -> Any:
    """Ask one request after the other, and return the last reply."""
    case = tool_use_case(case_id)
    conversation = shelf.conversation(case, target, trial, None)
    return [conversation.reply(case, request) for request in requests][-1]


def stale(shelf: CassetteShelf, *requests: ChatRequest, **keys: Any) -> str:
    """Return what is said to have changed."""
    with pytest.raises(StaleCassetteError) as failed:
        ask(shelf, *requests, **keys)
    assert not failed.value.transient
    assert failed.value.attempts == 0
    before, _, rest = str(failed.value).partition(" does not fit any more: ")
    assert before.startswith("the cassette cassettes/")
    changes, _, hint = rest.rpartition("; ")
    assert hint == "--tooleval-record records it anew"
    return changes


@pytest.fixture
def two_turns(shelf: Any) -> CassetteShelf:
    """Record a conversation of two turns, and give the shelf to replay it from."""
    case = tool_use_case()
    conversation = shelf("record").conversation(case, TARGET, 1, OwnProvider(READING, DONE))
    for request in (FIRST, SECOND):
        conversation.reply(case, request)
    conversation.save()
    replaying: CassetteShelf = shelf("replay")
    return replaying


def with_tools(*tools: ToolSpec) -> Change:
    return lambda request: replace(request, tools=tools)


def with_sampling(**keys: Any) -> Change:
    return lambda request: replace(request, sampling=replace(request.sampling, **keys))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda request: replace(request, system="Be long."), "system prompt changed"),
        (
            lambda request: replace(request, messages=(UserMessage("Sum."), *request.messages[1:])),
            "task changed from 'Count.' to 'Sum.'",
        ),
        (with_tools(replace(GREP, description="Seek."), READ), "tool grep: description changed"),
        (with_tools(replace(GREP, parameters={"type": "object"}), READ), "schema of grep changed"),
        (
            with_tools(replace(GREP, parameters={**GREP.parameters, "properties": {"pattern": {"type": "string", "minLength": True}}}), READ),
            "schema of grep changed",
        ),
        (with_tools(replace(GREP, parameters={**GREP.parameters, "type": {}}), READ), "schema of grep changed"),
        (with_tools(replace(GREP, parameters={**GREP.parameters, "properties": []}), READ), "schema of grep changed"),
        (with_tools(GREP, replace(READ, parameters={"type": "object", "required": 1})), "schema of file_read changed"),
        (with_tools(GREP, READ, ToolSpec("glob", "", {})), "tool glob added"),
        (with_tools(READ), "tool grep removed"),
        (with_tools(READ, GREP), "order of tools changed"),
        (with_tools(ToolSpec("seek", "Search.", {}), READ), "tool grep removed; tool seek added"),
        (with_sampling(temperature=1.0), "temperature changed from 0 to 1"),
        (with_sampling(temperature=0.25), "temperature changed from 0 to 0.25"),
        (with_sampling(temperature=None), "temperature changed from 0 to not set"),
        (with_sampling(max_output_tokens=64), "max output tokens changed from not set to 64"),
        (with_sampling(seed=123456789), "seed changed from 7 to 123456789"),
        (with_sampling(tool_choice="required"), "tool choice changed from auto to required"),
    ],
)  # fmt: skip
def test_a_change_of_the_request_is_said_in_words(two_turns: CassetteShelf, change: Change, words: str) -> None:
    assert stale(two_turns, change(FIRST)) == words


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            (READING, ToolMessage("c1", "file_read", "1\tone\n2\tTWO")),
            r"result of file_read (turn 1) changed from '1\tone\n2\ttwo' to '1\tone\n2\tTWO'",
        ),
        ((READING, replace(SECOND.messages[2], is_error=True)), "result of file_read (turn 1) changed"),
        ((READING,), "after turn 1 there are 0 messages where 1 were recorded"),
        ((READING, UserMessage("Go on.")), "a message after turn 1 is of another kind"),
        ((replace(READING, text="Hm."), *SECOND.messages[2:]), "the conversation before turn 2 changed"),
    ],
)  # fmt: skip
def test_a_change_of_the_conversation_is_said_in_words(
    two_turns: CassetteShelf, messages: tuple[Message, ...], words: str
) -> None:
    now = replace(SECOND, messages=(*FIRST.messages, *messages))
    assert stale(two_turns, FIRST, now).startswith(words)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((replace(READING, text="Hm."), UserMessage("Go on.")), "reply of turn 1 changed from 'So.' to 'Hm.'"),
        ((replace(READING, text="So."), UserMessage("Stop.")), "user message after turn 1 changed from 'Go on.' to 'Stop.'"),
        ((replace(READING, text="So.", calls=()), UserMessage("Go on.")), "reply of turn 1 changed"),
    ],
)  # fmt: skip
def test_a_conversation_that_somebody_else_leads_is_compared_too(
    messages: tuple[Message, ...], words: str, shelf: Any
) -> None:
    case = tool_use_case()
    conversation = shelf("record").conversation(case, TARGET, 1, OwnProvider(READING, DONE))
    led = replace(FIRST, messages=(*FIRST.messages, replace(READING, text="So."), UserMessage("Go on.")))
    for request in (FIRST, led):
        conversation.reply(case, request)
    conversation.save()
    assert ask(shelf("replay"), FIRST, led) == DONE
    assert stale(shelf("replay"), FIRST, replace(led, messages=(*FIRST.messages, *messages))) == words


def test_only_the_first_thing_that_is_said_is_the_task(shelf: Any) -> None:
    case = tool_use_case()
    opened = replace(FIRST, messages=(*FIRST.messages, UserMessage("Quickly.")))
    followed = replace(opened, messages=(*opened.messages, DONE, UserMessage("Sure?")))
    conversation = shelf("record").conversation(case, TARGET, 1, OwnProvider(DONE, DONE))
    for request in (opened, followed):
        conversation.reply(case, request)
    conversation.save()
    slowly = replace(FIRST, messages=(*FIRST.messages, UserMessage("Slowly.")))
    certain = replace(opened, messages=(*opened.messages, DONE, UserMessage("Certain?")))
    assert stale(shelf("replay"), slowly) == "user message after turn 0 changed from 'Quickly.' to 'Slowly.'"
    assert stale(shelf("replay"), opened, certain) == "user message after turn 1 changed from 'Sure?' to 'Certain?'"


def test_a_change_in_the_middle_of_a_run_is_one(two_turns: CassetteShelf) -> None:
    assert stale(two_turns, FIRST, replace(SECOND, tools=(READ,))) == "tool grep removed"


def test_a_long_difference_is_shown_where_it_is(two_turns: CassetteShelf) -> None:
    now = replace(FIRST, messages=(UserMessage("Count." + " please" * 5000),))
    assert len(stale(two_turns, now)) < 300


@pytest.mark.parametrize(("added", "last"), [(5, "tool tool4 added"), (6, "and 1 more"), (40, "and 35 more")])
def test_all_changes_are_said_but_not_without_end(two_turns: CassetteShelf, added: int, last: str) -> None:
    tools = [ToolSpec(f"tool{number}", "", {}) for number in range(added)]
    changes = stale(two_turns, replace(FIRST, system="", tools=tools)).split("; ")
    assert changes[:4] == [
        "system prompt changed",
        "tool grep removed",
        "tool file_read removed",
        "tool tool0 added",
    ]
    assert changes[7:9] == (["tool tool4 added"] if added == 5 else ["tool tool4 added", last])
    assert changes[-1] == last


def test_what_is_only_spelled_otherwise_is_no_change(two_turns: CassetteShelf) -> None:
    parameters = {"properties": {"pattern": {"minLength": 1.0, "type": "string"}}, "type": "object"}
    same = with_sampling(temperature=0)
    requests = [same(replace(each, tools=[replace(GREP, parameters=parameters), READ])) for each in (FIRST, SECOND)]
    assert ask(two_turns, *requests) == DONE


def test_a_time_limit_is_no_change(two_turns: CassetteShelf) -> None:
    assert ask(two_turns, replace(FIRST, until=1.0), replace(SECOND, until=2.0)) == DONE


def test_a_request_beyond_the_recording_is_stale(two_turns: CassetteShelf) -> None:
    third = replace(SECOND, messages=(*SECOND.messages, DONE, UserMessage("Sure?")))
    assert stale(two_turns, FIRST, SECOND, third) == "the run asks for more replies than were recorded (2)"


def test_the_same_request_gets_its_recordings_in_order(shelf: Any) -> None:
    conversation = shelf("record").conversation(
        tool_use_case(), TARGET, 1, OwnProvider(says("a"), says("b"), says("a"))
    )
    for _ in range(3):
        conversation.reply(tool_use_case(), FIRST)
    conversation.save()
    conversation = shelf("replay").conversation(tool_use_case(), TARGET, 1, None)
    assert [conversation.reply(tool_use_case(), FIRST).text for _ in range(3)] == ["a", "b", "a"]


def test_without_a_cassette_the_message_says_which(shelf: Any) -> None:
    run = run_recorded(shelf("replay"), tool_use_case("Größe"))
    assert run.status == "error"
    assert run.detail == (
        "there is no cassette cassettes/openai__m/groe~aedc3f80989a.json; --tooleval-record records one"
    )


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        ("openai__n/c.json", {"target": "openai:n"}, "model changed from m to n"),
        ("openai/c.json", {"target": "openai"}, "model changed from m to none"),
        ("other__m/c.json", {"target": "other:m"}, "target changed from openai:m to other:m"),
        ("openai__m/c.t2.json", {"trial": 2}, "trial changed from 1 to 2"),
        ("openai__m/d.json", {"case_id": "d"}, "case changed from c to d"),
    ],
)
def test_a_copied_cassette_is_not_taken_for_that_of_another_run(
    two_turns: CassetteShelf, folder: Path, name: str, keys: dict[str, Any], words: str
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    shutil.copy(folder / NAME, folder / name)
    assert stale(two_turns, FIRST, **keys) == words


def test_a_changed_file_of_the_case_shows_in_a_result(shelf: Any) -> None:
    provider = OwnProvider(says("", call(path="a.txt"), call("list_dir", "c2")), says("Two."))
    run_recorded(shelf("record"), tool_use_case(**COUNT), provider)
    run = run_recorded(shelf("replay"), tool_use_case(**COUNT | {"files": {"a.txt": "one\nthree\n"}}))
    assert run.status == "error"
    assert "does not fit any more: result of file_read (turn 1) changed from '" in run.detail
    assert "10 characters" in run.detail
    assert run.detail.count("changed from") == 1


def test_a_permission_that_changes_is_a_tool_that_does(shelf: Any) -> None:
    run_recorded(shelf("record"), tool_use_case(), OwnProvider(says("Two.")))
    run = run_recorded(shelf("replay"), tool_use_case(tools_deny=("web_fetch",), tool_permission={"bash": "allow"}))
    assert "any more: tool web_fetch removed; tool run_command added; " in run.detail


def test_a_broken_cassette_is_an_error_of_another_kind(two_turns: CassetteShelf, folder: Path) -> None:
    text = (folder / NAME).read_text()
    (folder / NAME).write_text(text.replace('"finish": "stop"', '"finish": "end"', 1))
    with pytest.raises(ProviderError) as failed:
        ask(two_turns, FIRST)
    assert not isinstance(failed.value, StaleCassetteError)
    assert str(failed.value).startswith(f"{SHOWN}:")
    assert "at /exchanges/0/reply/finish: " in str(failed.value)


def test_a_tool_whose_schema_is_no_json_is_named_and_not_sent(shelf: Any) -> None:
    odd = replace(FIRST, tools=[ToolSpec("odd", "", {"properties": {1: {}}})])
    provider = OwnProvider(DONE)
    conversation = shelf("record").conversation(tool_use_case(), TARGET, 1, provider)
    with pytest.raises(ProviderError, match="the request of turn 1 is no JSON: the key 1 of an object is no text"):
        conversation.reply(tool_use_case(), odd)
    assert provider.asked == 0


# --- recording


def broken_tool() -> Tool:
    def run(arguments: Any, context: Any) -> str:
        raise ToolUnavailableError("the server is gone")

    return Tool("broken", "", {"type": "object"}, "read", run)


@pytest.mark.parametrize(
    "replies",
    [
        (ProviderError("down", attempts=3),),
        (says("", call(path="a.txt")), ProviderError("down")),
        (says("", call(path="a.txt")), RuntimeError("a fault of the provider")),
        (says("", call("broken")),),
    ],
)
def test_a_run_that_failed_keeps_the_old_cassette(replies: Sequence[Any], folder: Path, shelf: Any) -> None:
    case = tool_use_case(**COUNT)
    run = run_recorded(shelf("record"), case, OwnProvider(*replies), tools=[broken_tool()])
    assert run.status == "error"
    assert not (folder / NAME).exists()
    run_recorded(shelf("record"), case, OwnProvider(says("Two.")), tools=[broken_tool()])
    good = (folder / NAME).read_bytes()
    run_recorded(shelf("record"), case, OwnProvider(*replies), tools=[broken_tool()])
    assert (folder / NAME).read_bytes() == good


def test_what_follows_a_failed_reply_is_not_saved(folder: Path, shelf: Any) -> None:
    conversation = shelf("record").conversation(
        tool_use_case(), TARGET, 1, OwnProvider(ProviderError("down"), DONE)
    )
    with pytest.raises(ProviderError, match="down"):
        conversation.reply(tool_use_case(), FIRST)
    conversation.reply(tool_use_case(), FIRST)
    conversation.save()
    assert not (folder / NAME).exists()


def test_recording_asks_every_time_and_overwrites_even_what_is_broken(folder: Path, shelf: Any) -> None:
    for answer in ("One.", "Two."):
        run_recorded(shelf("record"), tool_use_case(), OwnProvider(says(answer)))
    assert run_recorded(shelf("replay"), tool_use_case()).answer == "Two."
    (folder / NAME).write_text("{")
    run_recorded(shelf("record"), tool_use_case(), OwnProvider(says("Three.")))
    assert run_recorded(shelf("replay"), tool_use_case()).answer == "Three."


def test_a_run_that_was_cut_off_is_replayed_as_one(shelf: Any) -> None:
    case = tool_use_case(**COUNT, max_turns=2)
    calls = [says("", call(path="a.txt", call_id=f"c{turn}")) for turn in (1, 2)]
    recorded = run_recorded(shelf("record"), case, OwnProvider(*calls))
    replayed = run_recorded(shelf("replay"), case)
    assert (replayed.status, replayed.detail) == ("truncated", "the turn limit of 2 was reached")
    assert result_without_times(case, replayed) == result_without_times(case, recorded)
    longer = run_recorded(shelf("replay"), replace(case, max_turns=3))
    assert "the run asks for more replies than were recorded (2)" in longer.detail


def test_a_reply_that_the_loop_changes_is_replayed(folder: Path, shelf: Any) -> None:
    provider = OwnProvider(says("", call("functions.file_read", path="a.txt")), says("Two."))
    case = tool_use_case(**COUNT)
    recorded = run_recorded(shelf("record"), case, provider)
    assert recorded.names == ("file_read",)
    assert recorded.notes == ("the model called 'functions.file_read', which was read as 'file_read'",)
    second = json.loads((folder / NAME).read_text())["exchanges"][1]["request"]
    assert second["dropped"] == 1
    assert [message["role"] for message in second["messages"]] == ["assistant", "tool"]
    assert result_without_times(case, run_recorded(shelf("replay"), case)) == result_without_times(case, recorded)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (AssistantMessage("x", opaque={"data": b"x"}), "it is no JSON: Object of type bytes is not JSON serializable"),
        (AssistantMessage("x", opaque={"data": float("inf")}), "it is no JSON: Out of range float values"),
        (AssistantMessage("x", opaque={1: "x"}), "it is no JSON: the key 1 of an object is no text"),  # type: ignore[dict-item]
        (AssistantMessage("x", usage=Usage(input=1.5)), "/exchanges/0/reply/usage/input: found 1.5; expected a whole"),  # type: ignore[arg-type]
        (AssistantMessage("x", finish="end"), '/exchanges/0/reply/finish: found "end"; expected one of: stop'),  # type: ignore[arg-type]
        (AssistantMessage(None), "it is no JSON: "),  # type: ignore[arg-type]
        (AssistantMessage("x", calls=("grep",)), "it is no JSON: 'str' object has no attribute 'raw_name'"),  # type: ignore[arg-type]
        (AssistantMessage("x", opaque={"data": json.loads("[" * 300 + "]" * 300)}), "it is nested deeper than 200"),
    ],
)  # fmt: skip
def test_a_reply_that_is_no_json_is_refused_at_once(reply: Any, reason: str, folder: Path, shelf: Any) -> None:
    run = run_recorded(shelf("record"), tool_use_case(), OwnProvider(reply))
    assert run.status == "error"
    assert run.detail.startswith(f"{SHOWN}: the reply of turn 1 cannot be recorded: {reason}")
    assert run.attempts == 1
    assert not (folder / NAME).exists()


def test_what_is_no_reply_at_all_is_named(shelf: Any) -> None:
    run = run_recorded(shelf("record"), tool_use_case(), OwnProvider("hello"))
    assert run.detail == "the provider returned str; expected an AssistantMessage"


def test_lists_and_half_characters_are_made_json(shelf: Any) -> None:
    reply = AssistantMessage("half \ud800", [ToolCall("c1", "file_read", {"path": ("a",)})], opaque={"t": (1,)})  # type: ignore[arg-type]
    case = tool_use_case()
    recorded = shelf("record").conversation(case, TARGET, 1, OwnProvider(reply))
    played = recorded.reply(case, FIRST)
    recorded.save()
    assert played == ask(shelf("replay"), FIRST)
    assert played == AssistantMessage(
        "half \ufffd", (ToolCall("c1", "file_read", {"path": ["a"]}, "", "file_read"),), opaque={"t": [1]}
    )


def test_nobody_is_asked_where_nothing_can_be_written(folder: Path, shelf: Any) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    provider = OwnProvider(says("Two."))
    run = run_recorded(shelf("record"), tool_use_case(), provider)
    assert run.detail.startswith(f"the cassette {SHOWN} cannot be written: ")
    assert provider.asked == 0


def test_a_file_that_cannot_be_written_in_the_end_is_an_error(folder: Path, shelf: Any) -> None:
    (folder / NAME).mkdir(parents=True)
    conversation = shelf("record").conversation(tool_use_case(), TARGET, 1, OwnProvider(DONE))
    conversation.reply(tool_use_case(), FIRST)
    with pytest.raises(ProviderError, match=f"the cassette {SHOWN} cannot be written: "):
        conversation.save()


def test_the_provider_decides_what_is_run_and_stays_open(shelf: Any) -> None:
    case = tool_use_case("hard")
    conversation = shelf("record").conversation(case, TARGET, 1, OwnProvider())
    assert conversation.cannot_run(case) == "too hard"
    conversation.close()
    assert shelf("replay").conversation(case, TARGET, 1, OwnProvider()).cannot_run(case) is None


@pytest.mark.parametrize("mode", ["record", "extend"])
def test_who_is_to_be_asked_has_to_be_given(mode: str, shelf: Any) -> None:
    with pytest.raises(ValueError, match=f"the mode '{mode}' needs a provider"):
        shelf(mode).conversation(tool_use_case(), TARGET, 1, None)


def test_a_relative_folder_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shelf = CassetteShelf(Path("kept"), "record")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run_recorded(shelf, tool_use_case(), OwnProvider(says("Two.")))
    assert (tmp_path / "kept" / NAME).is_file()


# --- extending


def test_an_unchanged_run_is_replayed_and_its_file_left_alone(folder: Path, shelf: Any) -> None:
    case = tool_use_case(**COUNT)
    run_recorded(shelf("record"), case, OwnProvider(says("", call(path="a.txt")), says("Two.")))
    os.utime(folder / NAME, (1, 1))
    provider = OwnProvider()
    assert run_recorded(shelf("extend"), case, provider).answer == "Two."
    assert provider.asked == 0
    assert (folder / NAME).stat().st_mtime == 1


def test_the_start_that_still_fits_is_kept_and_the_rest_is_asked(folder: Path, shelf: Any) -> None:
    case = tool_use_case(**COUNT)
    turns = [says("", call(path="a.txt")), says("", call("list_dir", "c2")), says("Two.")]
    run_recorded(shelf("record"), case, OwnProvider(*turns))
    before = json.loads((folder / NAME).read_text())["exchanges"]

    changed = replace(case, files={"a.txt": "one\ntwo\nthree\n"})
    provider = OwnProvider(says("", call("glob", "c5", pattern="*")), says("Three."))
    extended = run_recorded(shelf("extend"), changed, provider)
    assert (extended.answer, extended.names, provider.asked) == ("Three.", ("file_read", "glob"), 2)
    after = json.loads((folder / NAME).read_text())["exchanges"]
    assert after[0] == before[0]
    assert len(after) == 3
    assert result_without_times(changed, run_recorded(shelf("replay"), changed)) == result_without_times(
        changed, extended
    )


def test_what_was_not_recorded_is(folder: Path, shelf: Any) -> None:
    provider = OwnProvider(says("Two."))
    assert run_recorded(shelf("extend"), tool_use_case(), provider).answer == "Two."
    assert run_recorded(shelf("replay"), tool_use_case()).answer == "Two."


def test_more_turns_are_appended(shelf: Any) -> None:
    case = tool_use_case(**COUNT, max_turns=1)
    run_recorded(shelf("record"), case, OwnProvider(says("", call(path="a.txt"))))
    longer = replace(case, max_turns=2)
    provider = OwnProvider(says("Two."))
    assert run_recorded(shelf("extend"), longer, provider).answer == "Two."
    assert provider.asked == 1
    assert run_recorded(shelf("replay"), longer).answer == "Two."


def test_a_failed_extension_keeps_the_old_cassette(folder: Path, shelf: Any) -> None:
    run_recorded(shelf("record"), tool_use_case(), OwnProvider(says("Two.")))
    good = (folder / NAME).read_bytes()
    run = run_recorded(shelf("extend"), tool_use_case(task="Sum."), OwnProvider(ProviderError("down")))
    assert run.detail == "down"
    assert (folder / NAME).read_bytes() == good


def test_a_cassette_of_another_model_is_recorded_anew(folder: Path, two_turns: CassetteShelf, shelf: Any) -> None:
    shutil.copytree(folder / "openai__m", folder / "openai__n")
    provider = OwnProvider(says("Mine."))
    conversation = shelf("extend").conversation(tool_use_case(), "openai:n", 1, provider)
    assert conversation.reply(tool_use_case(), FIRST).text == "Mine."
    conversation.save()
    assert ask(two_turns, FIRST, target="openai:n").text == "Mine."


def test_a_broken_cassette_is_not_extended(folder: Path, shelf: Any) -> None:
    (folder / NAME).parent.mkdir(parents=True)
    (folder / NAME).write_text("{")
    provider = OwnProvider(says("Two."))
    run = run_recorded(shelf("extend"), tool_use_case(), provider)
    assert run.detail.startswith(f"{SHOWN}:1: is not JSON")
    assert provider.asked == 0
    assert (folder / NAME).read_text() == "{"


# --- secrets


def leaking_tool(text: str) -> Tool:
    return Tool("leak", "", {"type": "object"}, "read", lambda arguments, context: text)


def test_a_secret_in_a_result_is_not_written_and_fits_any_text_in_its_place(folder: Path, shelf: Any) -> None:
    case, redact = tool_use_case(), Redactor([KEY])
    turns = (says("", call("leak")), says("I will not say."))
    recorded = run_recorded(
        shelf("record", redact), case, OwnProvider(*turns), tools=[leaking_tool(f"KEY={KEY}\nrc=0")]
    )
    assert recorded.trace[0].result == f"KEY={KEY}\nrc=0"
    text = (folder / NAME).read_text()
    assert KEY not in text
    assert '"KEY=[redacted]",' in text
    for now in (f"KEY={KEY}\nrc=0", "KEY=\nrc=0", "KEY=sk-other\nwith a second line\nrc=0", "KEY=[redacted]\nrc=0"):
        run = run_recorded(shelf("replay"), case, tools=[leaking_tool(now)])
        assert (run.status, run.detail) == ("ok", "")
    for now in ("KEY=sk-other\nrc=1", "KEY=rc=0", "OTHER=x\nrc=0"):
        run = run_recorded(shelf("replay"), case, tools=[leaking_tool(now)])
        assert "result of leak (turn 1) changed" in run.detail


@pytest.mark.parametrize(
    ("recorded", "now", "fits"),
    [
        ("a [redacted] b [redacted] c", "a 1 b 2 c", True),
        ("a [redacted] b [redacted] c", "a 1 c", False),
        ("a [redacted] b [redacted] c", "a 1 b c", False),
        ("[redacted]", "", True),
        ("x[redacted]x", "x", False),
        ("[redacted]a[redacted]", "bab", True),
        ("[redacted]ab[redacted]ab", "ab", False),
        ("[redacted]a[redacted]", "ab", True),
        ("[redacted]a[redacted]a[redacted]", "bab", False),
    ],
)
def test_what_was_redacted_stands_for_any_text(recorded: str, now: str, *, fits: bool, shelf: Any) -> None:
    run_recorded(shelf("record"), tool_use_case(task=recorded), OwnProvider(says("Two.")))
    run = run_recorded(shelf("replay"), tool_use_case(task=now))
    assert (run.status == "ok") is fits


def test_an_extension_writes_nothing_that_was_redacted_before(folder: Path, shelf: Any) -> None:
    case = tool_use_case(max_turns=2)
    turns = [says("", call("leak", f"c{turn}")) for turn in (1, 2)]
    run_recorded(shelf("record", Redactor([KEY])), case, OwnProvider(*turns), tools=[leaking_tool(f"KEY={KEY}")])
    longer = replace(case, max_turns=3)
    run_recorded(shelf("extend"), longer, OwnProvider(says("Done.")), tools=[leaking_tool("KEY=")])
    text = (folder / NAME).read_text()
    assert len(json.loads(text)["exchanges"]) == 3
    assert text.count("KEY=[redacted]") == 1


@pytest.mark.parametrize(
    "reply",
    [
        AssistantMessage(f"The key is {KEY}."),
        AssistantMessage(calls=(call(path=KEY),)),
        AssistantMessage(calls=(ToolCall("c1", "file_read", {KEY: 1}),)),
        AssistantMessage(calls=(ToolCall("c1", "file_read", None, f"{{{KEY}"),)),
        AssistantMessage("x", opaque={"reasoning_content": f"I saw {KEY}"}),
    ],
)
def test_a_reply_with_a_secret_cannot_be_recorded(reply: AssistantMessage, folder: Path, shelf: Any) -> None:
    run = run_recorded(shelf("record", Redactor([KEY])), tool_use_case(), OwnProvider(reply))
    assert run.status == "error"
    assert run.detail.startswith(
        f"{SHOWN}: the reply of turn 1 cannot be recorded: it holds a value that is kept secret"
    )
    assert KEY not in run.detail
    assert run.attempts == 1
    assert not (folder / NAME).exists()


def test_what_only_looks_like_a_secret_is_redacted_in_requests_and_may_be_said(folder: Path, shelf: Any) -> None:
    case, speech = tool_use_case(), "Send it as Bearer TOKEN."
    recording = shelf("record", Redactor([KEY]), lambda text: KEY in text)
    signed = "see https://host/page?id=1&sig={}\nBearer {}"
    turns = (says("", call("leak")), says(speech))
    run_recorded(recording, case, OwnProvider(*turns), tools=[leaking_tool(signed.format("abc", "def"))])
    text = (folder / NAME).read_text()
    assert '"see https://host/page?id=1&sig=[redacted]",' in text
    assert '"Bearer [redacted]"' in text
    replayed = run_recorded(shelf("replay"), case, tools=[leaking_tool(signed.format("uvw", "xyz"))])
    assert (replayed.status, replayed.answer) == ("ok", speech)
    secret = run_recorded(recording, case, OwnProvider(says(f"It is {KEY}.")))
    assert "it holds a value that is kept secret" in secret.detail


def test_a_secret_is_not_shown_as_a_difference(shelf: Any) -> None:
    case, secret = tool_use_case(), "sk-" + "0123456789" * 12
    run_recorded(shelf("record"), case, OwnProvider(says("", call("leak")), DONE), tools=[leaking_tool("nothing")])
    run = run_recorded(shelf("replay", Redactor([secret])), case, tools=[leaking_tool(f"it is {secret}")])
    assert "changed from 'nothing' to 'it is [redacted]'" in run.detail
