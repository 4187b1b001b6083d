from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from chat_samples import CASE
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values
from loopback import LoopbackServer, as_json

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, Patience
from pytest_tooleval.providers.ollama_chat import (
    CONTEXT_TOKENS,
    TOOL_RULES,
    OllamaChat,
    OllamaQuirks,
    build_request,
    parse_reply,
)
from pytest_tooleval.providers.provider import ChatRequest, Sampling, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
ASK = ChatRequest("Be brief.", [UserMessage("Find main.")], [GREP])
QUIRKS = OllamaQuirks()


def wire_call(arguments: Any, name: Any = "grep", **rest: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **rest}


def answered(message: Any, reason: Any = "stop", **rest: Any) -> dict[str, Any]:
    if isinstance(message, dict):
        message = {"role": "assistant", **message}
    return {"model": "m", "message": message, "done": True, "done_reason": reason, **rest}


def parse(message: Any, reason: Any = "stop", **rest: Any) -> AssistantMessage:
    return parse_reply(answered(message, reason, **rest), ASK)


def sent_messages(*messages: Message) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = build_request(ChatRequest("", messages, [GREP]), "m", QUIRKS)["messages"]
    return sent


# --- requests


def test_a_whole_conversation() -> None:
    call = ToolCall("call_7", "grep", {"pattern": "main"}, '{"pattern":"main"}', "grep")
    messages: list[Message] = [
        UserMessage("Find main."),
        AssistantMessage("I look.", calls=(call,), opaque={"thinking": "where?"}),
        ToolMessage("call_7", "grep", "no such folder", is_error=True),
        AssistantMessage("Nothing."),
    ]
    sampling = Sampling(temperature=0.0, max_output_tokens=64, seed=3)
    request = ChatRequest("Be brief.", messages, [GREP], sampling)
    assert build_request(request, "qwen3", OllamaQuirks(context_tokens=9000)) == {
        "model": "qwen3",
        "stream": False,
        "truncate": False,
        "shift": False,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Find main."},
            {
                "role": "assistant",
                "content": "I look.",
                "thinking": "where?",
                "tool_calls": [{"id": "call_7", "function": {"name": "grep", "arguments": {"pattern": "main"}}}],
            },
            {"role": "tool", "tool_name": "grep", "tool_call_id": "call_7", "content": "no such folder"},
            {"role": "assistant", "content": "Nothing."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "grep", "description": "Search.", "parameters": GREP.parameters},
            }
        ],
        "options": {"num_ctx": 9000, "temperature": 0.0, "seed": 3, "num_predict": 64},
    }


def test_the_context_length_is_always_set_and_the_rest_only_when_asked_for() -> None:
    bare = build_request(ChatRequest("", [UserMessage("Hi")]), "m", QUIRKS)
    assert bare["options"] == {"num_ctx": CONTEXT_TOKENS}
    assert "tools" not in bare


def test_a_call_cannot_be_required_and_nobody_pretends_that_it_can() -> None:
    request = ChatRequest("", [UserMessage("Hi")], [GREP], Sampling("required"))
    with pytest.raises(ProviderError, match="cannot require a tool call") as refused:
        build_request(request, "m", QUIRKS)
    assert not refused.value.transient


def test_without_a_choice_there_are_no_tools() -> None:
    assert "tools" not in build_request(ChatRequest("", [UserMessage("Hi")], [GREP], Sampling("none")), "m", QUIRKS)


@pytest.mark.parametrize(
    ("base", "posted_to"),
    [
        ("http://localhost:11434", "http://localhost:11434/api/chat"),
        ("http://localhost:11434/", "http://localhost:11434/api/chat"),
        ("http://localhost:11434/v1", "http://localhost:11434/api/chat"),
        ("http://localhost:11434/v1/", "http://localhost:11434/api/chat"),
        ("http://localhost:11434/api", "http://localhost:11434/api/chat"),
        ("http://localhost:11434/api/chat", "http://localhost:11434/api/chat"),
        ("https://host/ollama/?key=k", "https://host/ollama/api/chat?key=k"),
    ],
)
def test_the_address(base: str, posted_to: str) -> None:
    assert OllamaChat("m", Account("ollama", base), QUIRKS).url == posted_to


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ({"pattern": "x"}, {"pattern": "x"}),
        ('{"pattern": "x"}', {"pattern": "x"}),
        ('"{\\"pattern\\":\\"x\\"}"', {"pattern": "x"}),
        ({}, {}),
        ("", {}),
        (None, {}),
        ('{"pattern":', {}),
        ([1], {}),
    ],
)
def test_arguments_go_back_as_an_object(raw: Any, sent: dict[str, Any]) -> None:
    reply = parse({"content": "", "tool_calls": [wire_call(raw)]})
    (message,) = sent_messages(reply)
    assert message["tool_calls"][0]["function"]["arguments"] == sent


def test_thinking_goes_back_where_it_came_from() -> None:
    reply = parse({"content": "", "thinking": "first I look", "tool_calls": [wire_call({}, extra={"k": 1})]})
    (message,) = sent_messages(reply)
    assert message == {
        "role": "assistant",
        "content": "",
        "thinking": "first I look",
        "tool_calls": [{"id": reply.calls[0].id, "function": {"name": "grep", "arguments": {}}, "extra": {"k": 1}}],
    }


@pytest.mark.parametrize("thinking", [None, "", 3])
def test_absent_thinking_is_not_sent(thinking: Any) -> None:
    assert parse({"content": "x", "thinking": thinking}).opaque == {}


def test_what_a_schema_refers_to_is_written_out(serve: Serve) -> None:
    schema = {"properties": {"at": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "string", "enum": ["x"]}}}
    server = serve(as_json(answered({"content": "hi"})))
    provider = provider_at(server)
    provider.reply(CASE, ChatRequest("", [UserMessage("t")], [ToolSpec("go", "", schema)]))
    provider.close()
    parameters = server.asked[0].body["tools"][0]["function"]["parameters"]
    assert parameters["properties"]["at"] == {"type": "string", "enum": ["x"]}


# --- replies


@pytest.mark.parametrize(
    ("raw", "arguments", "kept"),
    [
        ({"pattern": "x"}, {"pattern": "x"}, '{"pattern": "x"}'),
        ('{"pattern": "x"}', {"pattern": "x"}, '{"pattern": "x"}'),
        ("", {}, ""),
        (None, {}, ""),
        ('{"pattern": "x', None, '{"pattern": "x'),
        ([], None, "[]"),
    ],
)
def test_arguments(raw: Any, arguments: dict[str, Any] | None, kept: str) -> None:
    (call,) = parse({"content": "", "tool_calls": [wire_call(raw)]}).calls
    assert (call.arguments, call.raw_arguments) == (arguments, kept)


def test_calls_get_ids_that_pair_them_with_their_results() -> None:
    earlier = parse({"content": "", "tool_calls": [wire_call({}), wire_call({})]})
    request = ChatRequest("", [UserMessage("t"), earlier], [GREP])
    calls = [wire_call({}), wire_call({}, id="call_a"), wire_call({}, id="call_a")]
    reply = parse_reply(answered({"content": "", "tool_calls": calls}), request)
    ids = [call.id for call in (*earlier.calls, *reply.calls)]
    assert ids[3] == "call_a"
    assert len(set(ids)) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in ids if one != "call_a")


def test_calls_keep_their_order_and_lose_their_namespace() -> None:
    names = ["grep", "functions.grep", "functions.rm", "a"]
    reply = parse({"content": "", "tool_calls": [wire_call({}, name) for name in names]})
    assert [call.name for call in reply.calls] == ["grep", "grep", "functions.rm", "a"]
    assert [call.raw_name for call in reply.calls] == names


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), ("length", "length"), (None, "stop"), ("new", "stop")]
)
def test_why_it_ended(reason: Any, finish: str) -> None:
    reply = parse({"content": "x", "tool_calls": [wire_call({})]}, reason)
    assert (reply.finish, len(reply.calls)) == (finish, 1)


@pytest.mark.parametrize(("content", "text"), [("So.", "So."), (None, ""), (["x"], ""), ("a\ud800b", "a\ufffdb")])
def test_text_is_text(content: Any, text: str) -> None:
    assert parse({"content": content}).text == text


@pytest.mark.parametrize(
    ("message", "counts", "usage"),
    [
        ({"content": "x"}, {"prompt_eval_count": 26, "eval_count": 9}, Usage(input=26, output=9)),
        (
            {"content": "x"},
            {"prompt_eval_count": 26, "prompt_eval_cached_count": 20, "eval_count": 9},
            Usage(input=6, cache_read=20, output=9),
        ),
        (
            {"content": "x"},
            {"prompt_eval_count": 26, "prompt_eval_cached_count": 99, "eval_count": 9},
            Usage(cache_read=26, output=9),
        ),
        ({"content": "x"}, {"eval_count": 9}, None),
        ({"content": "x"}, {"prompt_eval_count": 26}, None),
        ({"content": "", "thinking": "hm"}, {"prompt_eval_count": 26}, None),
        ({"content": "", "tool_calls": [wire_call({})]}, {"prompt_eval_count": 26}, None),
        ({"content": ""}, {"prompt_eval_count": 26}, Usage(input=26)),
        ({"content": "x"}, {"prompt_eval_count": "26", "eval_count": True}, None),
        ({"content": "x"}, {}, None),
    ],
)
def test_half_of_the_usage_is_unknown_usage(message: Any, counts: dict[str, Any], usage: Usage | None) -> None:
    assert parse(message, **counts).usage == usage


LONG = ChatRequest("s" * 400, [UserMessage("word " * 3000), ToolMessage("a", "grep", "y" * 600)], [GREP])


@pytest.mark.parametrize("read", [1, 1025, 1999])
def test_a_prompt_that_the_server_cut_is_no_measurement(read: int) -> None:
    with pytest.raises(ProviderError, match=rf"read {read} tokens of 15999 characters") as failed:
        parse_reply(answered({"content": "Hm?"}, prompt_eval_count=read, eval_count=2), LONG)
    assert not failed.value.transient


@pytest.mark.parametrize("read", [2000, 4000, 0, None])
def test_a_prompt_that_may_be_whole_is_taken(read: int | None) -> None:
    assert parse_reply(answered({"content": "Hm."}, prompt_eval_count=read, eval_count=2), LONG).text == "Hm."


def test_blank_space_is_no_sign_of_a_cut_prompt() -> None:
    request = ChatRequest("", [UserMessage("a\n" + " " * 9000 + "b")])
    assert parse_reply(answered({"content": "Hm."}, prompt_eval_count=30, eval_count=2), request).text == "Hm."


@pytest.mark.parametrize(
    ("body", "transient", "said"),
    [
        ({"error": "model 'nope' not found"}, False, "not found"),
        ({"error": "server overloaded, please try again"}, True, "overloaded"),
        (answered({"content": ""}, "load"), True, "did not generate"),
        (answered({"content": ""}, "unload"), True, "did not generate"),
        ({**answered({"content": "H"}), "done": False}, True, "part of a stream"),
        (answered(None), True, "no message"),
        (answered("text"), True, "no message"),
        ({}, True, "no message"),
        (answered({"content": "", "tool_calls": {"a": 1}}), True, "no list"),
        (answered({"content": "", "tool_calls": [None]}), True, "names no function"),
        (answered({"content": "", "tool_calls": [wire_call({}, None)]}), True, "names no function"),
    ],
)
def test_answers_that_are_none(body: dict[str, Any], transient: bool, said: str) -> None:
    with pytest.raises(ProviderError, match=said) as failed:
        parse_reply(body, ASK)
    assert failed.value.transient is transient


KEYS = st.sampled_from(["content", "thinking", "tool_calls", "function", "name", "arguments", "id"])
WORDS = st.sampled_from(["grep", "{}", "\ud800", ""]) | st.none() | st.integers(0, 3)


@given(
    st.dictionaries(KEYS, json_values(KEYS, WORDS), max_size=4),
    st.lists(st.dictionaries(KEYS, json_values(KEYS, WORDS), max_size=3), max_size=3) | st.none(),
    json_values(),
)
def test_whatever_comes_is_a_reply_that_can_be_sent_back_or_an_error_of_ours(
    message: dict[str, Any], calls: Any, odd: Any
) -> None:
    body = answered({**message, "tool_calls": calls}, odd, prompt_eval_count=odd, eval_count=odd)
    try:
        reply = parse_reply(body, ASK)
    except ProviderError:
        return
    (sent,) = sent_messages(reply)
    json.dumps(sent, ensure_ascii=False).encode()
    assert [call["id"] for call in sent.get("tool_calls", [])] == [call.id for call in reply.calls]
    assert all(isinstance(call["function"]["arguments"], dict) for call in sent.get("tool_calls", []))


# --- over HTTP


def provider_at(server: LoopbackServer, retries: int = 0) -> DialectProvider:
    account = Account("ollama", server.url)
    transport = HttpTransport(account, Patience(timeout=5.0, retries=retries, sleep=lambda _: None))
    return DialectProvider(OllamaChat("qwen3", account, QUIRKS), transport, TOOL_RULES)


def test_the_second_request_holds_the_arguments_as_an_object(serve: Serve) -> None:
    called = answered({"content": "", "thinking": "é", "tool_calls": [wire_call({"pattern": "é"})]})
    server = serve(as_json(called), as_json(answered({"content": "Found."})))
    provider = provider_at(server)
    first = provider.reply(CASE, ASK)
    result = ToolMessage(first.calls[0].id, "grep", "src/é.py")
    second = provider.reply(CASE, ChatRequest(ASK.system, [*ASK.messages, first, result], ASK.tools))
    provider.close()
    assert second.text == "Found."
    assert [asked.path for asked in server.asked] == ["/api/chat"] * 2
    call_id = first.calls[0].id
    assert server.asked[1].body["messages"][2:] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "é",
            "tool_calls": [{"id": call_id, "function": {"name": "grep", "arguments": {"pattern": "é"}}}],
        },
        {"role": "tool", "tool_name": "grep", "tool_call_id": call_id, "content": "src/é.py"},
    ]


def test_an_error_inside_a_good_status(serve: Serve) -> None:
    server = serve(as_json({"error": "the runner is overloaded"}), as_json(answered({"content": "ok"})))
    provider = provider_at(server, retries=1)
    assert provider.reply(CASE, ASK).attempts == 2
    provider.close()


def test_what_cannot_be_asked_for_is_not_sent(serve: Serve) -> None:
    server = serve(as_json(answered({"content": "ok"})))
    provider = provider_at(server)
    with pytest.raises(ProviderError, match="cannot require") as refused:
        provider.reply(CASE, ChatRequest("", ASK.messages, ASK.tools, Sampling("required")))
    provider.close()
    assert (server.asked, refused.value.attempts) == ([], 0)
