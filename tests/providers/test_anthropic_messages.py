from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_samples import CASE
from loopback import LoopbackServer, as_json

from pytest_tooleval.agent.loop import Agent, AgentSettings
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.anthropic_messages import (
    DEFAULT_MAX_TOKENS,
    build_request,
    messages_url,
    open_provider,
    parse_reply,
)
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, Sampling, ToolSpec
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
ASK = ChatRequest("Be brief.", [UserMessage("Find main.")], [GREP])
THINKING = {"type": "thinking", "thinking": "I look first.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
TEXT = {"type": "text", "text": "Looking."}


def use(call_id: Any = "toolu_1", name: Any = "grep", given: Any = None, **rest: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if given is None else given, **rest}


def answer(*blocks: dict[str, Any], stop: Any = "end_turn", **rest: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": stop, **rest}


def parse(*blocks: dict[str, Any], stop: Any = "end_turn", **rest: Any) -> AssistantMessage:
    return parse_reply(answer(*blocks, stop=stop, **rest), ASK)


def turns(*messages: Message) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = build_request(ChatRequest("", messages, [GREP]), "m")["messages"]
    return sent


# --- requests


def test_a_whole_conversation() -> None:
    calls = (ToolCall("toolu_1", "grep", {"pattern": "main"}), ToolCall("toolu_2", "grep", {"pattern": "x"}))
    messages: list[Message] = [
        UserMessage("Find main."),
        AssistantMessage("Looking.", calls),
        ToolMessage("toolu_1", "grep", "src/app.py:3"),
        ToolMessage("toolu_2", "grep", "no match", is_error=True),
        AssistantMessage("In src/app.py."),
    ]
    sampling = Sampling("required", temperature=0.0, max_output_tokens=64, seed=3)
    assert build_request(ChatRequest("Be brief.", messages, [GREP], sampling), "claude-x") == {
        "model": "claude-x",
        "max_tokens": 64,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Find main."}]},
            {
                "role": "assistant",
                "content": [
                    TEXT,
                    {"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"pattern": "main"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "grep", "input": {"pattern": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "src/app.py:3"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": "no match",
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "In src/app.py."}]},
        ],
        "tools": [{"name": "grep", "description": "Search.", "input_schema": GREP.parameters}],
        "tool_choice": {"type": "any"},
        "temperature": 0.0,
    }


def test_unset_settings_are_not_sent_but_for_the_limit_that_the_api_needs() -> None:
    assert build_request(ChatRequest("", [UserMessage("Hi")]), "m") == {
        "model": "m",
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }
    assert DEFAULT_MAX_TOKENS == 4096


@pytest.mark.parametrize(("choice", "sent"), [("auto", "auto"), ("required", "any"), ("none", "none")])
def test_tool_choice(choice: Any, sent: str) -> None:
    request = ChatRequest("", [UserMessage("Hi")], [GREP], Sampling(choice))
    assert build_request(request, "m")["tool_choice"] == {"type": sent}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages"),
        ("http://localhost:8080/v1", "http://localhost:8080/v1/messages"),
        ("http://localhost:8080/v1/?k=2", "http://localhost:8080/v1/messages?k=2"),
        ("http://localhost:8080/v1/messages", "http://localhost:8080/v1/messages"),
        ("https://api.example.com/anthropic", "https://api.example.com/anthropic/v1/messages"),
    ],
)
def test_the_address(base: str, url: str) -> None:
    assert messages_url(Account("anthropic", base)) == url


def test_turns_alternate_and_results_come_first() -> None:
    sent = turns(
        UserMessage("one"),
        UserMessage("two"),
        AssistantMessage(calls=(ToolCall("a", "grep", {}),)),
        UserMessage("by the way"),
        ToolMessage("a", "grep", "r"),
        AssistantMessage(),
        UserMessage("three"),
    )
    assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
    assert [block.get("text") for block in sent[0]["content"]] == ["one", "two"]
    assert [block.get("text", block["type"]) for block in sent[2]["content"]] == [
        "tool_result",
        "by the way",
        "three",
    ]


@pytest.mark.parametrize("text", ["", " \n"])
def test_blank_text_is_never_sent(text: str) -> None:
    call = ToolCall("a", "grep", {})
    sent = turns(UserMessage("t"), AssistantMessage(text, (call,)), ToolMessage("a", "grep", text))
    assert sent[1]["content"] == [use("a")]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


@pytest.mark.parametrize(
    ("given", "sent"), [({"pattern": "x"}, {"pattern": "x"}), ("", {}), ("{broken", {}), ([1], {}), (None, {})]
)
def test_an_input_goes_back_as_an_object(given: Any, sent: dict[str, Any]) -> None:
    reply = parse({**use(), "input": given}, stop="tool_use")
    assert turns(UserMessage("t"), reply)[1]["content"] == [use(given=sent)]


# --- blocks that go back as they came


def test_thinking_goes_back_unchanged_in_its_place() -> None:
    blocks = [
        THINKING,
        HIDDEN,
        TEXT,
        use(given={"pattern": "x"}),
        THINKING | {"signature": "b3RoZXI="},
        use("toolu_2"),
    ]
    reply = parse(*blocks, stop="tool_use")
    assert (reply.text, [call.id for call in reply.calls]) == ("Looking.", ["toolu_1", "toolu_2"])
    assert turns(UserMessage("t"), reply)[1] == {"role": "assistant", "content": blocks}


@pytest.mark.parametrize("unsigned", [{"signature": ""}, {"signature": None}, {}])
def test_thinking_without_a_signature_is_left_out(unsigned: dict[str, Any]) -> None:
    reply = parse({"type": "thinking", "thinking": "cut", **unsigned}, HIDDEN, use(), stop="tool_use")
    assert turns(UserMessage("t"), reply)[1]["content"] == [HIDDEN, use()]


def test_blocks_of_the_servers_own_tools_are_no_calls_and_go_back() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "T"}]},
        {"type": "something_new", "of": ["the", {"future": 1}]},
        {"type": "text", "text": "Found.", "citations": [{"url": "u"}]},
        use(given={"pattern": "x"}, caller={"type": "direct"}),
    ]
    reply = parse(*blocks, stop="tool_use")
    assert [call.name for call in reply.calls] == ["grep"]
    assert reply.calls[0].extra == {"caller": {"type": "direct"}}
    assert turns(UserMessage("t"), reply)[1]["content"] == blocks


# --- replies


def test_parallel_calls_keep_their_order() -> None:
    reply = parse(TEXT, use("a", "grep", {"n": 1}), use("b", "ls"), use("c", "grep", {"n": 2}), stop="tool_use")
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("a", "grep", {"n": 1}),
        ("b", "ls", {}),
        ("c", "grep", {"n": 2}),
    ]


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        (None, "stop"),
        ("something_new", "stop"),
    ],
)
def test_stop_reasons(stop: Any, finish: str) -> None:
    assert parse(TEXT, stop=stop).finish == finish


@pytest.mark.parametrize("stop", ["end_turn", "tool_use", "pause_turn", None])
def test_calls_count_whatever_the_stop_reason(stop: Any) -> None:
    reply = parse(use(), stop=stop)
    assert (len(reply.calls), reply.finish) == (1, "stop")


@pytest.mark.parametrize("given", [{"pattern": "x"}, {}])
def test_a_call_that_the_output_limit_cut_off_is_told(given: dict[str, Any]) -> None:
    reply = parse(use(given=given), stop="max_tokens")
    assert (reply.finish, reply.calls[0].arguments) == ("length", given)


def test_a_refusal_without_text_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not allowed."}
    assert parse(stop="refusal", stop_details=details).text == "Not allowed."
    assert parse(TEXT, stop="refusal", stop_details=details).text == "Looking."
    assert parse(stop="refusal", stop_details=None).text == ""


def test_an_empty_answer_is_one() -> None:
    reply = parse()
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


def test_ids_are_unique_and_in_letters_that_the_api_takes() -> None:
    earlier = AssistantMessage(calls=(ToolCall("toolu_1", "grep", {}),))
    request = ChatRequest("", [UserMessage("t"), earlier], [GREP])
    given = ["toolu_1", "run:0", "ok_-9", "ok_-9", None, ""]
    reply = parse_reply(answer(*(use(one) for one in given), stop="tool_use"), request)
    ids = [call.id for call in reply.calls]
    assert ids[2] == "ok_-9"
    assert len({*ids, "toolu_1"}) == 7
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in ids)
    assert [block["id"] for block in turns(UserMessage("t"), reply)[1]["content"]] == ids


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"cache_read_input_tokens": 5}, None),
        ({"input_tokens": 9, "output_tokens": 4}, Usage(input=9, output=4)),
        (
            {
                "input_tokens": 9,
                "cache_read_input_tokens": 17102,
                "cache_creation_input_tokens": 40,
                "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 25,
            },
            Usage(input=9, cache_read=17102, cache_write=40, output=25),
        ),
        (
            {"input_tokens": 1, "cache_read_input_tokens": None, "output_tokens": "x"},
            Usage(input=1),
        ),
    ],
)
def test_usage(usage: Any, expected: Usage | None) -> None:
    assert parse(TEXT, usage=usage).usage == expected


def test_cached_tokens_count_once() -> None:
    usage = parse(TEXT, usage={"input_tokens": 1, "cache_read_input_tokens": 230, "output_tokens": 33}).usage
    assert usage is not None
    assert (usage.total, usage.reported_total) == (264, None)


@pytest.mark.parametrize(
    ("body", "transient", "said"),
    [
        (answer(stop="tool_use"), True, "there is no tool call"),
        (answer(TEXT, stop="tool_use"), True, "there is no tool call"),
        (answer(TEXT, stop="pause_turn"), False, "pause_turn"),
        ({}, True, "no content"),
        ({"content": None}, True, "no content"),
        ({"type": "error"}, True, "no content"),
        ({"content": ["x"]}, True, "has no type"),
        ({"content": [{"text": "x"}]}, True, "has no type"),
        (answer(use(name=None)), True, "has no name"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, True, "Overloaded"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "bad schema"}},
            False,
            "bad schema",
        ),
    ],
)
def test_answers_that_are_none(body: dict[str, Any], transient: bool, said: str) -> None:
    with pytest.raises(ProviderError, match=said) as failed:
        parse_reply(body, ASK)
    assert failed.value.transient is transient


def test_surrogates_do_no_harm() -> None:
    blocks = [{"type": "text", "text": "\ud83d"}, {**THINKING, "thinking": "\udc00"}, use(given={"p": "\udfff"})]
    reply = parse(*blocks, stop="tool_use")
    json.dumps(turns(UserMessage("t"), reply), ensure_ascii=False).encode()
    assert reply.calls[0].arguments == {"p": "\ufffd"}


# --- over HTTP


def test_two_turns_over_the_wire(serve: Serve) -> None:
    tool = ToolSpec("files.find", "Find.", {"type": "object", "properties": {"filter[name]": {"type": "string"}}})
    called = answer(
        THINKING,
        use("toolu_1", "files_find", {"filter_name_": "é"}),
        use("toolu_1", "files_find", {}),
        stop="tool_use",
    )
    overloaded = as_json(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, status=529
    )
    server = serve(overloaded, as_json(called), as_json(answer(TEXT)))
    account = Account("anthropic", server.url.removesuffix("/v1"), "ANTHROPIC_API_KEY", "sk-ant-1")
    preset = Preset("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")
    provider = open_provider(preset, account, ProviderSettings(" claude-x ", timeout=5.0, retries=1))
    ask = ChatRequest("", [UserMessage("Find é.")], [tool])
    first = provider.reply(CASE, ask)
    results = [ToolMessage(call.id, call.name, "é.txt") for call in first.calls]
    second = provider.reply(CASE, ChatRequest("", [*ask.messages, first, *results], [tool]))
    provider.close()

    assert [(call.name, call.arguments) for call in first.calls] == [
        ("files.find", {"filter[name]": "é"}),
        ("files.find", {}),
    ]
    assert (first.attempts, second.text) == (2, "Looking.")
    assert {asked.path for asked in server.asked} == {"/v1/messages"}
    assert {asked.headers["x-api-key"] for asked in server.asked} == {"sk-ant-1"}
    assert {asked.headers["anthropic-version"] for asked in server.asked} == {"2023-06-01"}
    body, again = server.asked[1].body, server.asked[2].body
    assert body["model"] == "claude-x"
    assert body["tools"] == again["tools"]
    assert body["tools"][0]["name"] == "files_find"
    assert list(body["tools"][0]["input_schema"]["properties"]) == ["filter_name_"]
    own = first.calls[1].id
    assert own != "toolu_1"
    assert again["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                THINKING,
                use("toolu_1", "files_find", {"filter_name_": "é"}),
                use(own, "files_find"),
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "é.txt"},
                {"type": "tool_result", "tool_use_id": own, "content": "é.txt"},
            ],
        },
    ]


def test_a_call_that_the_output_limit_cut_off_never_runs(serve: Serve, tmp_path: Path) -> None:
    cut = answer(use("a", "grep", {"pattern": "x"}), use("b", "grep", {}), stop="max_tokens")
    server = serve(as_json(cut), as_json(answer(TEXT)))
    preset = Preset("mine", "anthropic", server.url)
    provider = open_provider(preset, Account("mine", server.url), ProviderSettings("m", timeout=5.0, retries=0))
    ran: list[Any] = []
    tool = Tool("grep", "Search.", GREP.parameters, "read", lambda arguments, context: ran.append(arguments))
    run = Agent(CASE, provider, Offer({"grep": tool}, {}), ToolContext(tmp_path), AgentSettings()).run()
    provider.close()
    assert ran == [{"pattern": "x"}]
    assert [entry.call.id for entry in run.trace] == ["a"]
    results = server.asked[1].body["messages"][2]["content"]
    assert [(block["tool_use_id"], block.get("is_error")) for block in results] == [("a", None), ("b", True)]


def test_without_a_key_none_is_sent(serve: Serve) -> None:
    server = serve(as_json(answer(TEXT)))
    preset = Preset("mine", "anthropic", server.url)
    provider = open_provider(preset, Account("mine", server.url), ProviderSettings("m"))
    assert provider.reply(CASE, ASK).text == "Looking."
    provider.close()
    assert "x-api-key" not in server.asked[0].headers
    assert server.asked[0].path == "/v1/messages"
