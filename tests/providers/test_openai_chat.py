from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from chat_samples import CASE, chat_answer
from loopback import LoopbackServer, as_json

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, Patience
from pytest_tooleval.providers.openai_chat import (
    OpenAIChat,
    build_request,
    limit_parameter,
    parse_reply,
)
from pytest_tooleval.providers.presets import ChatQuirks
from pytest_tooleval.providers.provider import ChatRequest, Sampling, ToolChoice, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
ASK = ChatRequest("Be brief.", [UserMessage("Find main.")], [GREP])


def wire_call(arguments: Any = "{}", name: str = "grep", **rest: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **rest}


def parse(message: dict[str, Any], finish: Any = "stop", **rest: Any) -> AssistantMessage:
    return parse_reply(chat_answer(message, finish, **rest), ASK, ChatQuirks())


def sent_messages(*messages: Message, quirks: ChatQuirks | None = None) -> list[dict[str, Any]]:
    request = ChatRequest("", messages, [GREP])
    sent: list[dict[str, Any]] = build_request(request, "m", quirks or ChatQuirks())["messages"]
    return sent


# --- requests


def test_a_whole_conversation() -> None:
    call = ToolCall("call_7", "grep", {"pattern": "main"}, '{"pattern":"main"}', "grep")
    messages: list[Message] = [
        UserMessage("Find main."),
        AssistantMessage(calls=(call,)),
        ToolMessage("call_7", "grep", "no such folder", is_error=True),
        AssistantMessage(text="Nothing."),
    ]
    sampling = Sampling("required", temperature=0.0, max_output_tokens=64, seed=3)
    request = ChatRequest("Be brief.", messages, [GREP], sampling)
    assert build_request(request, "gpt-x", ChatQuirks()) == {
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Find main."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_7",
                        "type": "function",
                        "function": {"name": "grep", "arguments": '{"pattern":"main"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_7", "content": "no such folder"},
            {"role": "assistant", "content": "Nothing."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "grep", "description": "Search.", "parameters": GREP.parameters},
            }
        ],
        "tool_choice": "required",
        "temperature": 0.0,
        "max_tokens": 64,
        "seed": 3,
    }


def test_unset_settings_are_not_sent() -> None:
    bare = build_request(ChatRequest("", [UserMessage("Hi")]), "m", ChatQuirks())
    assert bare == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert build_request(ASK, "m", ChatQuirks())["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("url", "parameter"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://API.OPENAI.COM:443/v1/", "max_completion_tokens"),
        ("http://localhost:8080/v1", "max_tokens"),
        ("https://api.openai.com.example.org/v1", "max_tokens"),
    ],
)
def test_the_name_of_the_output_limit(url: str, parameter: str) -> None:
    quirks = ChatQuirks(limit_parameter=limit_parameter(Account("openai", url), ChatQuirks()))
    request = ChatRequest("", [UserMessage("Hi")], sampling=Sampling(max_output_tokens=9))
    body = build_request(request, "m", quirks)
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {parameter: 9}


def test_another_server_may_have_its_own_name_for_the_output_limit() -> None:
    quirks = ChatQuirks(limit_parameter="max_completion_tokens")
    assert (
        limit_parameter(Account("azure", "https://me.openai.azure.com/openai/v1"), quirks)
        == "max_completion_tokens"
    )


@pytest.mark.parametrize(
    ("quirks", "choice", "sent"),
    [
        (ChatQuirks(), "auto", {"tool_choice": "auto", "seed": 3}),
        (ChatQuirks(tool_choices={"auto": None}), "auto", {"seed": 3}),
        (ChatQuirks(tool_choices={"auto": None}), "required", {"tool_choice": "required", "seed": 3}),
        (ChatQuirks(tool_choices={"required": "any"}), "required", {"tool_choice": "any", "seed": 3}),
        (ChatQuirks(tool_choices={"required": "any"}), "none", {"tool_choice": "none", "seed": 3}),
        (ChatQuirks(seed_parameter="random_seed"), "auto", {"tool_choice": "auto", "random_seed": 3}),
        (ChatQuirks(seed_parameter=""), "auto", {"tool_choice": "auto"}),
    ],
)
def test_choice_and_seed_are_spelled_as_the_server_knows_them(
    quirks: ChatQuirks, choice: ToolChoice, sent: dict[str, Any]
) -> None:
    request = ChatRequest("", [UserMessage("Hi")], [GREP], Sampling(choice, seed=3))
    body = build_request(request, "m", quirks)
    assert {key: value for key, value in body.items() if key not in ("model", "messages", "tools")} == sent


@pytest.mark.parametrize(
    ("key", "quirks", "headers"),
    [
        ("k-1", ChatQuirks(), {"Authorization": "Bearer k-1"}),
        ("k-1", ChatQuirks(key_header="api-key"), {"api-key": "k-1"}),
        (None, ChatQuirks(key_header="api-key"), {}),
    ],
)
def test_the_header_of_the_key(key: str | None, quirks: ChatQuirks, headers: dict[str, str]) -> None:
    assert OpenAIChat("m", Account("p", "http://h/v1", "K", key), quirks).headers == headers


@pytest.mark.parametrize(
    ("reply", "style", "sent"),
    [
        (AssistantMessage(calls=(ToolCall("a", "grep", {}),)), "null", {"content": None}),
        (AssistantMessage(calls=(ToolCall("a", "grep", {}),)), "empty", {"content": ""}),
        (AssistantMessage(calls=(ToolCall("a", "grep", {}),)), "omit", {}),
        (AssistantMessage("So.", calls=(ToolCall("a", "grep", {}),)), "null", {"content": "So."}),
        (AssistantMessage("So.", calls=(ToolCall("a", "grep", {}),)), "omit", {"content": "So."}),
        (AssistantMessage(), "null", {"content": ""}),
        (AssistantMessage(), "omit", {"content": ""}),
    ],
)
def test_content_beside_calls(reply: AssistantMessage, style: Any, sent: dict[str, Any]) -> None:
    (message,) = sent_messages(reply, quirks=ChatQuirks(content_beside_calls=style))
    assert {key: value for key, value in message.items() if key == "content"} == sent


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
    reply = parse({"content": None, "tool_calls": [wire_call(raw, id="a")]}, "tool_calls")
    (message,) = sent_messages(reply)
    assert message["tool_calls"][0]["function"]["arguments"] == sent


REASONING = {
    "reasoning_content": "first I look",
    "reasoning": "",
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "QUJD==", "index": 0}],
}


def test_reasoning_and_signatures_go_back_where_they_came_from() -> None:
    signed = wire_call('{"pattern":"x"}', id="a", extra_content={"google": {"thought_signature": "Wg=="}})
    message = {"role": "assistant", "content": None, "tool_calls": [signed], **REASONING}
    reply = parse(message, "tool_calls")
    assert reply.opaque == REASONING
    assert sent_messages(reply) == [message]
    assert sent_messages(reply, quirks=ChatQuirks(echo_reasoning="beside_calls")) == [message]
    (without,) = sent_messages(reply, quirks=ChatQuirks(echo_reasoning="never"))
    assert without == {"role": "assistant", "content": None, "tool_calls": [signed]}


def test_reasoning_beside_an_answer_can_be_left_out() -> None:
    answer = parse({"content": "Done.", "reasoning_content": "so"})
    (sent,) = sent_messages(answer, quirks=ChatQuirks(echo_reasoning="beside_calls"))
    assert sent == {"role": "assistant", "content": "Done."}


def test_absent_reasoning_is_not_sent() -> None:
    assert parse({"content": "x", "reasoning_content": None}).opaque == {}


# --- replies


@pytest.mark.parametrize(
    ("raw", "arguments", "kept"),
    [
        ('{"pattern": "x"}', {"pattern": "x"}, '{"pattern": "x"}'),
        ({"pattern": "x"}, {"pattern": "x"}, '{"pattern": "x"}'),
        ('"{\\"pattern\\": \\"x\\"}"', {"pattern": "x"}, '"{\\"pattern\\": \\"x\\"}"'),
        ("", {}, ""),
        ("  ", {}, "  "),
        (None, {}, ""),
        ('{"pattern": "x', None, '{"pattern": "x'),
        ("[]", None, "[]"),
    ],
)
def test_arguments(raw: Any, arguments: dict[str, Any] | None, kept: str) -> None:
    (call,) = parse({"tool_calls": [wire_call(raw, id="a")]}, "tool_calls").calls
    assert (call.arguments, call.raw_arguments) == (arguments, kept)


def test_missing_arguments() -> None:
    (call,) = parse({"tool_calls": [{"id": "a", "function": {"name": "grep"}}]}, "tool_calls").calls
    assert call == ToolCall("a", "grep", {}, "", "grep")


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", None, "eos", 3])
def test_calls_count_whatever_the_finish_reason(finish: Any) -> None:
    reply = parse({"content": None, "tool_calls": [wire_call(id="a")]}, finish)
    assert [call.name for call in reply.calls] == ["grep"]
    assert reply.finish == "stop"


def test_calls_keep_their_order() -> None:
    calls = [wire_call(name=name) for name in ("b", "a", "c", "a")]
    assert [call.name for call in parse({"tool_calls": calls}).calls] == ["b", "a", "c", "a"]


@pytest.mark.parametrize("finish", ["length", "max_tokens"])
@pytest.mark.parametrize("arguments", ['{"pattern": "x', '{"pattern": "x"}'])
def test_a_call_that_the_output_limit_cut_off_is_told(finish: str, arguments: str) -> None:
    reply = parse({"tool_calls": [wire_call(arguments, id="a")]}, finish)
    assert reply.finish == "length"
    assert reply.calls[0].raw_arguments == arguments


@pytest.mark.parametrize(
    ("message", "finish", "text"),
    [
        ({"content": None, "refusal": "I will not."}, "stop", "I will not."),
        ({"content": "Half", "refusal": None}, "content_filter", "Half"),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "stop", "No."),
    ],
)
def test_refusals(message: dict[str, Any], finish: str, text: str) -> None:
    reply = parse(message, finish)
    assert (reply.finish, reply.text) == ("refusal", text)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}], "two parts"),
        ([{"type": "image_url"}, None, "bare", {"type": "text", "text": None}], "bare"),
        (5, ""),
        ("a\ud800b", "a\ufffdb"),
        (
            '<tool_call>{"name": "grep", "arguments": {}}</tool_call>',
            '<tool_call>{"name": "grep", "arguments": {}}</tool_call>',
        ),
    ],
)
def test_text_is_text(content: Any, text: str) -> None:
    reply = parse({"content": content})
    assert (reply.text, reply.calls) == (text, ())


def test_a_message_without_content() -> None:
    assert parse({}).text == ""


def test_legacy_function_call() -> None:
    message = {"content": None, "function_call": {"name": "grep", "arguments": '{"pattern":"x"}'}}
    (call,) = parse(message, "function_call").calls
    assert (call.name, call.arguments) == ("grep", {"pattern": "x"})
    assert re.fullmatch(r"[A-Za-z0-9]{9}", call.id)


def test_ids_are_unique_in_the_reply_and_the_conversation() -> None:
    earlier = parse({"tool_calls": [wire_call(id="run:0")]})
    request = ChatRequest("", [UserMessage("t"), earlier], [GREP])
    calls = [wire_call(id=given) for given in ("run:0", "run:1", "run:1", "", None)] + [wire_call()]
    reply = parse_reply(chat_answer({"tool_calls": calls}), request, ChatQuirks())
    ids = [call.id for call in reply.calls]
    assert ids[1] == "run:1"
    assert len({"run:0", *ids}) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", ids[place]) for place in (0, 2, 3, 4, 5))
    assert parse_reply(chat_answer({"tool_calls": calls}), request, ChatQuirks()) == reply


def test_ids_that_a_server_would_not_take_back_are_replaced() -> None:
    calls = [wire_call(id=given) for given in ("chatcmpl-tool-1", "abcDEF123", "abcDEF12_")]
    answer = chat_answer({"tool_calls": calls})
    first, second, third = (
        call.id for call in parse_reply(answer, ASK, ChatQuirks(call_ids="[a-zA-Z0-9]{9}")).calls
    )
    assert second == "abcDEF123"
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", first)
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", third)
    assert len({first, second, third}) == 3


def test_a_namespace_before_an_offered_name_is_removed() -> None:
    calls = [wire_call(name="functions.grep", id="a"), wire_call(name="functions.rm", id="b")]
    reply = parse({"tool_calls": calls})
    assert [(call.name, call.raw_name) for call in reply.calls] == [
        ("grep", "functions.grep"),
        ("functions.rm", "functions.rm"),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"prompt_tokens": None, "completion_tokens": "x"}, None),
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(input=10, output=5)),
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 80,
                "total_tokens": 1080,
                "prompt_tokens_details": {"cached_tokens": 900},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(input=100, cache_read=900, output=80, reasoning=30, reported_total=1080),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(input=0, cache_read=8, output=1),
        ),
        (
            {"prompt_tokens": 5.0, "completion_tokens": True, "prompt_tokens_details": None, "total_tokens": -1},
            Usage(input=5),
        ),
        ({"total_tokens": 7}, Usage(reported_total=7)),
        (
            {"prompt_tokens": float("inf"), "completion_tokens": float("nan"), "total_tokens": 3},
            Usage(reported_total=3),
        ),
    ],
)
def test_usage(usage: Any, expected: Usage | None) -> None:
    assert parse({"content": "x"}, usage=usage).usage == expected


def test_absent_usage_is_unknown() -> None:
    assert parse({"content": "x"}).usage is None


@pytest.mark.parametrize(
    ("body", "transient", "said"),
    [
        (chat_answer({"content": "", "tool_calls": []}, "tool_calls"), True, "there is no tool call"),
        (chat_answer({"content": ""}, "function_call"), True, "there is no tool call"),
        ({}, True, "no choices"),
        ({"choices": None}, True, "no choices"),
        ({"choices": [], "usage": {"prompt_tokens": 3}}, True, "no choices"),
        ({"choices": ["x"]}, True, "no choices"),
        ({"choices": [{"finish_reason": "stop"}]}, True, "no message"),
        (chat_answer({"content": None}, "error"), True, "finish_reason 'error'"),
        (chat_answer({"tool_calls": {"a": 1}}), True, "no list"),
        (chat_answer({"tool_calls": [None]}), True, "names no function"),
        (chat_answer({"tool_calls": [{"id": "a", "function": {"name": None}}]}), True, "names no function"),
        ({"error": {"message": "busy", "type": "overloaded_error"}}, True, "busy"),
        ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, True, "slow down"),
        ({"error": {"message": "upstream", "code": 502}}, True, "upstream"),
        ({"error": {"message": "later", "code": 429}, "choices": []}, True, "later"),
        ({"error": {"message": "bad schema", "type": "invalid_request_error", "code": 400}}, False, "bad schema"),
        ({"error": "model is overloaded"}, True, "overloaded"),
        ({"error": "no such thing"}, False, "no such thing"),
        ({"choices": [{"error": {"message": "gone", "code": 503}, "message": {}}]}, True, "gone"),
        ({"error": {"message": "odd \ud800", "code": 503}}, True, "odd \ufffd"),
    ],
)
def test_answers_that_are_none(body: dict[str, Any], transient: bool, said: str) -> None:
    with pytest.raises(ProviderError, match=said) as failed:
        parse_reply(body, ASK, ChatQuirks())
    assert failed.value.transient is transient


def test_a_null_error_is_none() -> None:
    assert parse({"content": "x"}, error=None).text == "x"


def test_surrogates_in_names_arguments_and_signatures_do_no_harm() -> None:
    call = wire_call('{"pattern": "\\udc00"}', name="gr\ud800ep", id="i\ud800", extra_content={"s": "\udfff"})
    reply = parse({"content": "\ud83d", "reasoning": "\ud83d", "tool_calls": [call]})
    json.dumps(sent_messages(reply), ensure_ascii=False).encode()
    assert reply.calls[0].arguments == {"pattern": "\ufffd"}
    assert reply.calls[0].raw_name == "gr\ufffdep"


# --- over HTTP


def provider_at(server: LoopbackServer, slept: list[float], retries: int = 2) -> DialectProvider:
    account = Account("openai", server.url, "OPENAI_API_KEY", "sk-here-1")
    transport = HttpTransport(account, Patience(5.0, retries, slept.append))
    return DialectProvider(OpenAIChat("gpt-x", account, ChatQuirks()), transport)


def test_two_turns_over_the_wire(serve: Serve) -> None:
    called = chat_answer({"content": None, "tool_calls": [wire_call('{"pattern": "é"}', id="a")]}, "tool_calls")
    server = serve(as_json(called), as_json(chat_answer({"content": "Found."})))
    provider = provider_at(server, [])
    first = provider.reply(CASE, ASK)
    result = ToolMessage("a", "grep", "src/é.py: \ud800")
    second = provider.reply(CASE, ChatRequest(ASK.system, [*ASK.messages, first, result], ASK.tools))
    provider.close()
    assert second.text == "Found."
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer sk-here-1"] * 2
    assert server.asked[0].body == build_request(ASK, "gpt-x", ChatQuirks())
    assert server.asked[1].body["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "a",
        "content": "src/é.py: \ufffd",
    }
    assert server.connections == 1


def test_a_broken_answer_is_asked_for_again(serve: Serve) -> None:
    broken = as_json(chat_answer({"content": "", "tool_calls": []}, "tool_calls"))
    server = serve(broken, as_json(chat_answer({"content": "ok"})))
    slept: list[float] = []
    provider = provider_at(server, slept)
    assert provider.reply(CASE, ASK).text == "ok"
    provider.close()
    assert (len(server.asked), len(slept)) == (2, 1)


def test_an_answer_that_stays_broken_is_an_infrastructure_error(serve: Serve) -> None:
    server = serve(as_json(chat_answer({"content": ""}, "tool_calls")))
    provider = provider_at(server, [])
    with pytest.raises(ProviderError, match=r"^openai: http://.*breaks the protocol.*\(3 attempts\)$"):
        provider.reply(CASE, ASK)
    provider.close()


def test_a_model_can_be_asked_about_any_case(serve: Serve) -> None:
    assert provider_at(serve(as_json({})), []).cannot_run(CASE) is None
