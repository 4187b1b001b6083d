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
from pytest_tooleval.providers.openai_responses import (
    OpenAIResponses,
    ResponsesQuirks,
    build_request,
    parse_reply,
    quirks_of,
)
from pytest_tooleval.providers.provider import ChatRequest, Sampling, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
ASK = ChatRequest("Be brief.", [UserMessage("Find main.")], [GREP])
LOCAL, HOSTED = ResponsesQuirks(), ResponsesQuirks(encrypted_reasoning=True, takes_seed=False)


def call_item(arguments: Any = "{}", name: Any = "grep", call_id: Any = "call_1", **rest: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **rest}


def message_item(*parts: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "id": "msg_1", "content": list(parts), **rest}


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def reasoning_item(number: int = 1, **rest: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], **rest}


def answered(*items: Any, status: Any = "completed", **rest: Any) -> dict[str, Any]:
    return {"object": "response", "id": "resp_1", "status": status, "error": None, "output": list(items), **rest}


def parse(*items: Any, **rest: Any) -> AssistantMessage:
    return parse_reply(answered(*items, **rest), ASK)


def sent_input(*messages: Message, quirks: ResponsesQuirks = LOCAL) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = build_request(ChatRequest("", messages, [GREP]), "m", quirks)["input"]
    return sent


# --- requests


def test_a_whole_conversation() -> None:
    call = ToolCall("call_7", "grep", {"pattern": "main"}, '{"pattern":"main"}', "grep")
    messages: list[Message] = [
        UserMessage("Find main."),
        AssistantMessage("I look.", calls=(call,)),
        ToolMessage("call_7", "grep", "no such folder", is_error=True),
        AssistantMessage("Nothing."),
    ]
    sampling = Sampling("required", temperature=0.0, max_output_tokens=64, seed=3)
    request = ChatRequest("Be brief.", messages, [GREP], sampling)
    assert build_request(request, "gpt-x", HOSTED) == {
        "model": "gpt-x",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Find main."},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I look."}],
            },
            {"type": "function_call", "call_id": "call_7", "name": "grep", "arguments": '{"pattern":"main"}'},
            {"type": "function_call_output", "call_id": "call_7", "output": "no such folder"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Nothing."}],
            },
        ],
        "tools": [
            {
                "type": "function",
                "name": "grep",
                "description": "Search.",
                "parameters": GREP.parameters,
                "strict": False,
            }
        ],
        "tool_choice": "required",
        "temperature": 0.0,
        "max_output_tokens": 64,
    }
    local = build_request(request, "gpt-x", LOCAL)
    assert local.get("include") is None
    assert local["seed"] == 3


def test_unset_settings_are_not_sent() -> None:
    bare = build_request(ChatRequest("", [UserMessage("Hi")]), "m", LOCAL)
    assert bare == {"model": "m", "input": [{"role": "user", "content": "Hi"}], "store": False}
    assert build_request(ASK, "m", LOCAL)["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("url", "model", "asked"),
    [
        ("https://api.openai.com/v1", "gpt-5.2", True),
        ("https://API.OPENAI.COM:443/v1/", "o4-mini", True),
        ("https://api.openai.com/v1", "ft:gpt-5:acme::1", True),
        ("https://api.openai.com/v1", "gpt-4.1", False),
        ("https://api.openai.com/v1", "gpt-4o-mini", False),
        ("https://api.openai.com/v1", "ft:gpt-4o:acme::1", False),
        ("https://api.openai.com/v1", "gpt-5-chat-latest", False),
        ("http://localhost:8080/v1", "gpt-oss", False),
        ("https://api.openai.com.example.org/v1", "gpt-5", False),
    ],
)
def test_encrypted_reasoning_is_asked_for_only_where_it_is_given(url: str, model: str, asked: bool) -> None:
    assert quirks_of(Account("openai-responses", url), model).encrypted_reasoning is asked


@pytest.mark.parametrize(
    ("url", "sent"), [("https://api.openai.com/v1", False), ("http://localhost:8080/v1", True)]
)
def test_a_seed_goes_where_one_is_taken(url: str, sent: bool) -> None:
    assert quirks_of(Account("openai-responses", url), "gpt-4.1").takes_seed is sent


REASONED = reasoning_item(encrypted_content="gAAAA==", content=None)


def test_a_reply_goes_back_as_it_came() -> None:
    items = [
        REASONED,
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "é"}},
        message_item(said("I look."), phase="commentary", status="completed"),
        reasoning_item(2, encrypted_content="gBBBB=="),
        call_item('{"pattern": "x"}', id="fc_1", status="completed", namespace=None),
        call_item('{"pattern": "y"}', call_id="call_2", id="fc_2"),
    ]
    reply = parse(*items)
    assert sent_input(reply, quirks=HOSTED) == items
    assert [call.arguments for call in reply.calls] == [{"pattern": "x"}, {"pattern": "y"}]
    assert reply.text == "I look."


def test_reasoning_in_the_open_goes_back_too() -> None:
    items = [reasoning_item(content=[{"type": "reasoning_text", "text": "hm"}], encrypted_content=""), call_item()]
    assert sent_input(parse(*items)) == items


@pytest.mark.parametrize(
    "unusable",
    [
        reasoning_item(),
        reasoning_item(encrypted_content=None),
        reasoning_item(content=[]),
        reasoning_item(summary=[{"type": "summary_text", "text": "hm"}]),
    ],
)
def test_reasoning_that_can_only_be_looked_up_is_left_out_with_the_ids_that_ask_for_it(
    unusable: dict[str, Any],
) -> None:
    sent = sent_input(parse(unusable, message_item(said("So.")), call_item(id="fc_1")))
    assert sent == [{"type": "message", "role": "assistant", "content": [said("So.")]}, call_item()]


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ({"pattern": "x"}, '{"pattern": "x"}'),
        ('"{\\"pattern\\":\\"x\\"}"', '{"pattern": "x"}'),
        ('{\n "pattern": "x"\n}', '{\n "pattern": "x"\n}'),
        ("", "{}"),
        (None, "{}"),
        ('{"pattern":', "{}"),
    ],
)
def test_arguments_are_echoed_encoded_once(raw: Any, sent: str) -> None:
    (item,) = sent_input(parse(call_item(raw)))
    assert item["arguments"] == sent


def test_names_and_ids_that_were_replaced_are_echoed_as_they_are_now() -> None:
    earlier = parse(call_item(call_id="call_1"))
    request = ChatRequest("", [UserMessage("t"), earlier], [GREP])
    reply = parse_reply(answered(call_item(name="functions.grep", call_id="call_1", id="fc_9")), request)
    (item,) = sent_input(reply)
    assert (item["name"], item["id"]) == ("grep", "fc_9")
    assert item["call_id"] == reply.calls[0].id
    assert re.fullmatch(r"[A-Za-z0-9]{9}", item["call_id"])


def test_items_that_do_not_fit_the_calls_are_not_trusted() -> None:
    call = ToolCall("a", "grep", {})
    reply = AssistantMessage("t", (call,), opaque={"output": [call_item(), call_item(call_id="b")]})
    assert [item["type"] for item in sent_input(reply)] == ["message", "function_call"]


# --- replies


@pytest.mark.parametrize(
    ("raw", "arguments", "kept"),
    [
        ('{"pattern": "x"}', {"pattern": "x"}, '{"pattern": "x"}'),
        ({"pattern": "x"}, {"pattern": "x"}, '{"pattern": "x"}'),
        ('"{\\"pattern\\": \\"x\\"}"', {"pattern": "x"}, '"{\\"pattern\\": \\"x\\"}"'),
        ("", {}, ""),
        (None, {}, ""),
        ('{"pattern": "x', None, '{"pattern": "x'),
        ("[]", None, "[]"),
    ],
)
def test_arguments(raw: Any, arguments: dict[str, Any] | None, kept: str) -> None:
    (call,) = parse(call_item(raw)).calls
    assert (call.arguments, call.raw_arguments) == (arguments, kept)


def test_a_call_is_known_by_its_call_id_and_not_by_the_items_id() -> None:
    assert parse(call_item(id="fc_1", call_id="call_9")).calls[0].id == "call_9"


def test_ids_are_unique_in_the_reply_and_the_conversation() -> None:
    earlier = parse(call_item(call_id="run:0"))
    request = ChatRequest("", [UserMessage("t"), earlier], [GREP])
    given_ids = ("run:0", "run:1", "run:1", "", None)
    reply = parse_reply(answered(*(call_item(call_id=one) for one in given_ids)), request)
    ids = [call.id for call in reply.calls]
    assert ids[1] == "run:1"
    assert len({"run:0", *ids}) == 6
    outputs = [ToolMessage(call.id, "grep", "r") for call in reply.calls]
    items = sent_input(earlier, ToolMessage("run:0", "grep", "r"), reply, *outputs)
    called = [item["call_id"] for item in items if item["type"] == "function_call"]
    resulted = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    assert called == resulted


def test_a_namespace_before_an_offered_name_is_removed() -> None:
    calls = parse(call_item(name="functions.grep"), call_item(name="functions.rm", call_id="b")).calls
    assert [(call.name, call.raw_name) for call in calls] == [
        ("grep", "functions.grep"),
        ("functions.rm", "functions.rm"),
    ]


@pytest.mark.parametrize(
    ("parts", "text", "finish"),
    [
        ([said("one "), said("two")], "one two", "stop"),
        ([{"type": "refusal", "refusal": "I will not."}], "I will not.", "refusal"),
        ([said("Half."), {"type": "refusal", "refusal": "No."}], "Half.", "refusal"),
        ([{"type": "output_text", "text": None}, None, {"type": "output_audio"}], "", "stop"),
        ([], "", "stop"),
        ([said("a\ud800b")], "a\ufffdb", "stop"),
    ],
)
def test_text_and_refusals(parts: list[Any], text: str, finish: str) -> None:
    reply = parse(message_item(*parts))
    assert (reply.text, reply.finish, reply.calls) == (text, finish, ())


def test_several_messages_and_a_bare_text() -> None:
    reply = parse(message_item(said("one ")), {"type": "message", "content": "two"}, REASONED)
    assert reply.text == "one two"


@pytest.mark.parametrize(
    ("details", "finish"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "refusal"),
        ({"reason": "something new"}, "length"),
        ({}, "length"),
        (None, "length"),
    ],
)
def test_an_incomplete_reply_says_so(details: Any, finish: str) -> None:
    cut = call_item('{"pattern": "x', status="incomplete")
    reply = parse(message_item(said("Half")), cut, status="incomplete", incomplete_details=details)
    assert (reply.finish, reply.text) == (finish, "Half")
    assert [call.arguments for call in reply.calls] == [None]


@pytest.mark.parametrize(
    ("most", "spent", "known", "finish"),
    [
        (64, 64, {}, "length"),
        (64, 65, {}, "length"),
        (64, 63, {}, "stop"),
        (None, 64, {}, "stop"),
        (64, None, {}, "stop"),
        (64, 64, {"incomplete_details": None}, "stop"),
    ],
)
def test_a_server_without_incomplete_replies_is_known_by_its_tokens(
    most: int | None, spent: int | None, known: dict[str, Any], finish: str
) -> None:
    request = ChatRequest("", ASK.messages, ASK.tools, Sampling(max_output_tokens=most))
    body = answered(call_item('{"pattern": "x'), usage={"input_tokens": 9, "output_tokens": spent}, **known)
    assert parse_reply(body, request).finish == finish


def test_calls_count_whatever_the_status_says() -> None:
    reply = parse(call_item(), status=None)
    assert [call.name for call in reply.calls] == ["grep"]
    assert reply.finish == "stop"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"input_tokens": None, "output_tokens": "x"}, None),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(input=10, output=5)),
        (
            {
                "input_tokens": 2006,
                "input_tokens_details": {"cached_tokens": 1920},
                "output_tokens": 300,
                "output_tokens_details": {"reasoning_tokens": 100},
                "total_tokens": 2306,
            },
            Usage(input=86, cache_read=1920, output=300, reasoning=100, reported_total=2306),
        ),
        (
            {
                "input_tokens": 1000,
                "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 300},
                "output_tokens": 1,
                "total_tokens": 1001,
            },
            Usage(input=100, cache_read=600, cache_write=300, output=1, reported_total=1001),
        ),
        (
            {"input_tokens": 5, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 8}},
            Usage(input=0, cache_read=8, output=1),
        ),
        ({"input_tokens": 5.0, "output_tokens": True, "input_tokens_details": []}, Usage(input=5)),
        ({"total_tokens": 7}, Usage(reported_total=7)),
    ],
)
def test_usage(usage: Any, expected: Usage | None) -> None:
    assert parse(message_item(said("x")), usage=usage).usage == expected


@pytest.mark.parametrize(
    ("body", "transient", "said_so"),
    [
        (answered(status="failed", error={"code": "server_error", "message": "boom"}), True, "boom"),
        (answered(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), True, "slow"),
        (answered(status="failed", error={"code": "invalid_prompt", "message": "bad"}), False, "bad"),
        (answered(status="failed", error={"code": "insufficient_quota", "message": "pay"}), False, "pay"),
        (answered(status="failed"), True, "status is 'failed'"),
        (answered(status="cancelled"), True, "status is 'cancelled'"),
        (answered(status="in_progress"), True, "status is 'in_progress'"),
        (answered(status="queued"), True, "status is 'queued'"),
        ({"error": {"message": "busy", "type": "overloaded_error"}}, True, "busy"),
        ({}, True, "no list of output items"),
        ({"output": None}, True, "no list of output items"),
        (answered("text"), True, "no list of output items"),
        (answered(call_item(name=None)), True, "has no name"),
        ({"choices": [{"message": {"content": "chat"}}]}, True, "no list of output items"),
    ],
)
def test_answers_that_are_none(body: dict[str, Any], transient: bool, said_so: str) -> None:
    with pytest.raises(ProviderError, match=said_so) as failed:
        parse_reply(body, ASK)
    assert failed.value.transient is transient


ITEM_KEYS = st.sampled_from(
    ["type", "content", "call_id", "name", "arguments", "text", "refusal", "summary", "encrypted_content", "id"]
)
ITEM_WORDS = st.sampled_from(
    ["message", "function_call", "reasoning", "output_text", "refusal", "grep", "{}", "\ud800"]
)


@given(
    st.lists(st.dictionaries(ITEM_KEYS, json_values(ITEM_KEYS, ITEM_WORDS | st.none()), max_size=5), max_size=5),
    st.sampled_from(["completed", "incomplete", None]) | json_values(),
    json_values(),
)
def test_whatever_comes_is_a_reply_that_can_be_sent_back_or_an_error_of_ours(
    items: list[dict[str, Any]], status: Any, usage: Any
) -> None:
    try:
        reply = parse_reply(answered(*items, status=status, usage=usage, incomplete_details=usage), ASK)
    except ProviderError:
        return
    sent = sent_input(reply)
    json.dumps(sent, ensure_ascii=False).encode()
    assert [item["call_id"] for item in sent if item.get("type") == "function_call"] == [
        call.id for call in reply.calls
    ]


# --- over HTTP


def test_two_turns_over_the_wire(serve: Serve) -> None:
    items = [REASONED, call_item('{"pattern": "é"}', id="fc_1")]
    server = serve(as_json(answered(*items)), as_json(answered(message_item(said("Found.")))))
    account = Account("openai-responses", server.url, "OPENAI_API_KEY", "sk-here-1")
    transport = HttpTransport(account, Patience(timeout=5.0, retries=0))
    provider = DialectProvider(OpenAIResponses("gpt-x", account, LOCAL), transport)
    first = provider.reply(CASE, ASK)
    result = ToolMessage("call_1", "grep", "src/é.py: \ud800")
    second = provider.reply(CASE, ChatRequest(ASK.system, [*ASK.messages, first, result], ASK.tools))
    provider.close()
    assert second.text == "Found."
    assert [asked.path for asked in server.asked] == ["/v1/responses"] * 2
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer sk-here-1"] * 2
    assert server.asked[1].body["input"] == [
        {"role": "user", "content": "Find main."},
        *items,
        {"type": "function_call_output", "call_id": "call_1", "output": "src/é.py: \ufffd"},
    ]


def test_a_failed_response_is_asked_for_again(serve: Serve) -> None:
    failed = answered(status="failed", error={"code": "server_error", "message": "boom"})
    server = serve(as_json(failed), as_json(answered(message_item(said("ok")))))
    account = Account("openai-responses", server.url)
    transport = HttpTransport(account, Patience(timeout=5.0, retries=1, sleep=lambda _: None))
    provider = DialectProvider(OpenAIResponses("m", account, LOCAL), transport)
    reply = provider.reply(CASE, ASK)
    provider.close()
    assert (reply.text, reply.attempts, len(server.asked)) == ("ok", 2, 2)
