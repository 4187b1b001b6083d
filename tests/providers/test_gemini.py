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
from pytest_tooleval.providers.gemini import Gemini, build_request, open_provider, parse_reply
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, Sampling, ToolSpec
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
NOW = ToolSpec("now", "Tell the time.", {"type": "object", "properties": {}})
ASK = ChatRequest("Be brief.", [UserMessage("Find main.")], [GREP, NOW])
PRESET = Preset("gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY")


def call(name: Any = "grep", args: Any = None, signature: str = "", **rest: Any) -> dict[str, Any]:
    function = {"name": name, "args": {} if args is None else args, **rest}
    return {"functionCall": function, **({"thoughtSignature": signature} if signature else {})}


def answer(*parts: dict[str, Any], reason: Any = "STOP", **rest: Any) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    said = rest.pop("finishMessage", None)
    message = {"finishMessage": said} if said else {}
    return {"candidates": [{**content, **message, "finishReason": reason, "index": 0}], **rest}


def parse(*parts: dict[str, Any], reason: Any = "STOP", **rest: Any) -> AssistantMessage:
    return parse_reply(answer(*parts, reason=reason, **rest), ASK)


def contents(*messages: Message) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = build_request(ChatRequest("", messages, [GREP]))["contents"]
    return sent


def results_of(reply: AssistantMessage, text: str = "r") -> list[ToolMessage]:
    return [ToolMessage(one.id, one.name, text) for one in reply.calls]


# --- requests


def test_a_whole_conversation() -> None:
    calls = (ToolCall("x1", "grep", {"pattern": "main"}), ToolCall("x2", "grep", None, "{"))
    messages: list[Message] = [
        UserMessage("Find main."),
        AssistantMessage("Looking.", calls),
        ToolMessage("x1", "grep", "src/app.py:3"),
        ToolMessage("x2", "grep", "not an object", is_error=True),
        AssistantMessage("In src/app.py."),
    ]
    sampling = Sampling("required", temperature=0.0, max_output_tokens=64, seed=3)
    assert build_request(ChatRequest("Be brief.", messages, [GREP, NOW], sampling)) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Find main."}]},
            {
                "role": "model",
                "parts": [{"text": "Looking."}, call(args={"pattern": "main"}), call()],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "grep", "response": {"output": "src/app.py:3"}}},
                    {"functionResponse": {"name": "grep", "response": {"error": "not an object"}}},
                ],
            },
            {"role": "model", "parts": [{"text": "In src/app.py."}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "grep", "description": "Search.", "parametersJsonSchema": GREP.parameters},
                    {"name": "now", "description": "Tell the time."},
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {"temperature": 0.0, "maxOutputTokens": 64, "seed": 3},
    }


def test_unset_settings_are_not_sent() -> None:
    assert build_request(ChatRequest("", [UserMessage("Hi")])) == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]
    }


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("required", "ANY"), ("none", "NONE")])
def test_tool_choice(choice: Any, mode: str) -> None:
    request = ChatRequest("", [UserMessage("Hi")], [GREP], Sampling(choice))
    assert build_request(request)["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


@pytest.mark.parametrize(
    ("base", "model", "url"),
    [
        ("https://g/v1beta", "gemini-x", "https://g/v1beta/models/gemini-x:generateContent"),
        ("https://g/v1beta/", "models/gemini-x", "https://g/v1beta/models/gemini-x:generateContent"),
        ("https://g/v1beta", "tunedModels/mine", "https://g/v1beta/tunedModels/mine:generateContent"),
        ("https://g/v1beta?a=1", "x?key=1#", "https://g/v1beta/models/x%3Fkey%3D1%23:generateContent?a=1"),
    ],
)
def test_the_address_never_holds_the_key(base: str, model: str, url: str) -> None:
    dialect = Gemini(model, Account("gemini", base, "GEMINI_API_KEY", "key-123"))
    assert dialect.url == url
    assert dialect.headers == {"x-goog-api-key": "key-123"}
    assert Gemini(model, Account("gemini", base)).headers == {}


def test_messages_of_one_role_are_one_turn() -> None:
    sent = contents(UserMessage("a"), UserMessage("b"), AssistantMessage(), UserMessage("c"))
    assert sent == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}]


# --- parts that go back as they came


def test_each_signature_goes_back_with_its_part() -> None:
    parts = [
        {"text": "I plan.", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "Looking."},
        call(args={"pattern": "a"}, signature="Zmlyc3Q="),
        call(args={"pattern": "b"}),
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"text": "", "thoughtSignature": "bGFzdA=="},
    ]
    reply = parse(*parts)
    assert reply.text == "Looking."
    assert [one.arguments for one in reply.calls] == [{"pattern": "a"}, {"pattern": "b"}]
    assert contents(UserMessage("t"), reply)[1] == {"role": "model", "parts": parts}


def test_parts_that_say_nothing_are_not_sent_back() -> None:
    reply = parse({"text": ""}, {}, {"text": "", "thought": True}, {"text": "Yes."})
    assert contents(UserMessage("t"), reply)[1]["parts"] == [{"text": "Yes."}]


def test_calls_without_ids_are_answered_in_order_and_by_name() -> None:
    reply = parse(call(args={"pattern": "a"}), call("now"))
    assert len({one.id for one in reply.calls}) == 2
    sent = contents(UserMessage("t"), reply, *results_of(reply))
    assert sent[1]["parts"] == [call(args={"pattern": "a"}), call("now")]
    assert [part["functionResponse"] for part in sent[2]["parts"]] == [
        {"name": "grep", "response": {"output": "r"}},
        {"name": "now", "response": {"output": "r"}},
    ]


def test_ids_are_sent_where_they_were_given_and_are_unique() -> None:
    reply = parse(call(id="f1"), call("now"), call(id="f1"))
    first, made, again = (one.id for one in reply.calls)
    assert first == "f1"
    assert len({first, made, again}) == 3
    sent = contents(UserMessage("t"), reply, *results_of(reply))
    assert [part["functionCall"].get("id") for part in sent[1]["parts"]] == ["f1", None, again]
    assert [part["functionResponse"].get("id") for part in sent[2]["parts"]] == ["f1", None, again]


# --- replies


def test_thoughts_are_no_answer() -> None:
    reply = parse({"text": "Hm.", "thought": True}, {"text": "It "}, {"text": "is 4."})
    assert reply.text == "It is 4."


@pytest.mark.parametrize("args", [{}, None])
def test_missing_arguments(args: Any) -> None:
    function = {"name": "now", **({} if args is None else {"args": args})}
    (found,) = parse({"functionCall": function}).calls
    assert (found.name, found.arguments) == ("now", {})


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), (None, "stop"), ("OTHER", "stop"), ("SOMETHING_NEW", "stop")],
)
def test_finish_reasons_of_a_reply_with_content(reason: Any, finish: str) -> None:
    reply = parse({"text": "Half"}, call(), reason=reason)
    assert (reply.finish, len(reply.calls)) == (finish, 1)


@pytest.mark.parametrize("reason", ["STOP", "MAX_TOKENS"])
def test_an_empty_reply_is_one(reason: str) -> None:
    reply = parse(reason=reason)
    assert (reply.text, reply.calls) == ("", ())
    assert contents(UserMessage("t"), reply) == [{"role": "user", "parts": [{"text": "t"}]}]


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"])
def test_refusals(reason: str) -> None:
    assert parse(reason=reason, finishMessage="Blocked.") == AssistantMessage("Blocked.", finish="refusal")
    assert parse({"text": "Half"}, reason=reason).text == "Half"


@pytest.mark.parametrize(
    ("feedback", "text"),
    [
        ({"blockReason": "SAFETY"}, "the prompt was blocked: SAFETY"),
        ({"blockReason": "OTHER", "blockReasonMessage": "Not this."}, "Not this."),
    ],
)
def test_a_blocked_prompt_is_a_refusal(feedback: dict[str, str], text: str) -> None:
    body = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}
    reply = parse_reply(body, ASK)
    assert reply == AssistantMessage(text, finish="refusal", usage=Usage(input=5, reported_total=5))


# --- calls that the API could not read


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Malformed function call: print(default_api.grep(pattern='x'))", "grep"),
        ("Malformed function call: grep{pattern: x", "grep"),
        ("Malformed function call: call(default_api:now", "now"),
        ("Malformed function call: print(default_api.rm(path='x'))", "default_api.rm"),
        ("Unexpected tool call: now.", "now"),
        ("", "malformed_function_call"),
    ],
)
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_cannot_be_read_is_the_models(reason: str, said: str, name: str) -> None:
    reply = parse(reason=reason, finishMessage=said)
    (found,) = reply.calls
    assert (found.name, found.arguments, found.raw_arguments) == (name, None, said or reason)
    assert (reply.finish, reply.text) == ("stop", "")


def test_what_cannot_be_read_stands_in_the_history_as_text() -> None:
    broken = parse(call(signature="c2ln"), reason="MALFORMED_FUNCTION_CALL", finishMessage="grep(pattern=")
    again = parse_reply(answer(call(id="f9")), ChatRequest("", [UserMessage("t"), broken], [GREP]))
    sent = contents(
        UserMessage("t"), broken, *results_of(broken, "not an object"), again, *results_of(again, "found")
    )
    assert [turn["role"] for turn in sent] == ["user", "model", "user", "model", "user"]
    assert (sent[1]["parts"], sent[2]["parts"]) == ([{"text": "grep(pattern="}], [{"text": "not an object"}])
    assert sent[3]["parts"] == [call(id="f9")]
    assert sent[4]["parts"][0]["functionResponse"]["id"] == "f9"


# --- usage and errors


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"promptTokenCount": 10, "candidatesTokenCount": 4}, Usage(input=10, output=4)),
        (
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 900,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 60,
                "toolUsePromptTokenCount": 7,
                "totalTokenCount": 1087,
            },
            Usage(input=107, cache_read=900, output=80, reasoning=60, reported_total=1087),
        ),
        (
            {"promptTokenCount": 3, "cachedContentTokenCount": 9, "totalTokenCount": 3},
            Usage(input=0, cache_read=9, reported_total=3),
        ),
        ({"promptTokenCount": "x", "totalTokenCount": 7}, Usage(reported_total=7)),
    ],
)
def test_usage(usage: Any, expected: Usage | None) -> None:
    assert parse({"text": "x"}, usageMetadata=usage).usage == expected


@pytest.mark.parametrize(
    ("body", "transient", "said"),
    [
        ({}, True, "no candidates"),
        ({"candidates": []}, True, "no candidates"),
        ({"candidates": ["x"]}, True, "no candidates"),
        ({"candidates": None, "promptFeedback": {}}, True, "no candidates"),
        (answer(reason="OTHER"), True, "finishReason is 'OTHER'"),
        (answer(reason=None), True, "finishReason is None"),
        ({"candidates": [{"content": {"parts": "x"}, "finishReason": "STOP"}]}, True, "no list of objects"),
        (answer({"functionCall": None}), True, "has no name"),
        (answer(call(name=None)), True, "has no name"),
        ({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}, True, "busy"),
        ({"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}, False, "bad"),
    ],
)
def test_answers_that_are_none(body: dict[str, Any], transient: bool, said: str) -> None:
    with pytest.raises(ProviderError, match=said) as failed:
        parse_reply(body, ASK)
    assert failed.value.transient is transient


def test_surrogates_do_no_harm() -> None:
    reply = parse({"text": "\ud83d"}, call(args={"pattern": "\udc00"}, signature="s"))
    json.dumps(contents(UserMessage("t"), reply), ensure_ascii=False).encode()
    assert reply.calls[0].arguments == {"pattern": "\ufffd"}


# --- over HTTP


def test_two_turns_over_the_wire(serve: Serve) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"type": "integer", "exclusiveMinimum": 0}},
        "additionalProperties": False,
    }
    tools = [ToolSpec("2 lines/read", "Read.", schema), NOW]
    called = answer(call("_2_lines_read", {"n": 1}, "c2ln"), call("now", id="f2"))
    server = serve(as_json(called), as_json(answer({"text": "Done."})))
    account = Account("gemini", server.url, "GEMINI_API_KEY", "key-123")
    provider = open_provider(PRESET, account, ProviderSettings(" gemini-x ", timeout=5.0, retries=0))
    ask = ChatRequest("", [UserMessage("Read.")], tools)
    first = provider.reply(CASE, ask)
    second = provider.reply(CASE, ChatRequest("", [*ask.messages, first, *results_of(first)], tools))
    provider.close()

    assert [one.name for one in first.calls] == ["2 lines/read", "now"]
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", first.calls[0].id)
    assert second.text == "Done."
    assert {asked.path for asked in server.asked} == {"/v1/models/gemini-x:generateContent"}
    assert {asked.headers["x-goog-api-key"] for asked in server.asked} == {"key-123"}
    body, again = (asked.body for asked in server.asked)
    assert body["tools"] == again["tools"]
    assert body["tools"][0]["functionDeclarations"][0] == {
        "name": "_2_lines_read",
        "description": "Read.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "(exclusiveMinimum: 0)"}},
            "additionalProperties": False,
        },
    }
    assert again["contents"][1:] == [
        {"role": "model", "parts": [call("_2_lines_read", {"n": 1}, "c2ln"), call("now", id="f2")]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "_2_lines_read", "response": {"output": "r"}}},
                {"functionResponse": {"id": "f2", "name": "now", "response": {"output": "r"}}},
            ],
        },
    ]


def test_a_run_goes_on_after_a_call_that_cannot_be_read(serve: Serve, tmp_path: Path) -> None:
    said = "Malformed function call: print(default_api.log_search(pattern=x"
    server = serve(
        as_json(answer(reason="MALFORMED_FUNCTION_CALL", finishMessage=said)),
        as_json(answer(call("log_search", {"pattern": "x"}, "c2ln"))),
        as_json(answer({"text": "Found."})),
    )
    provider = open_provider(PRESET, Account("gemini", server.url), ProviderSettings("m", timeout=5.0, retries=0))
    tool = Tool("log search", "Search.", GREP.parameters, "read", lambda arguments, context: "line 3")
    run = Agent(CASE, provider, Offer({tool.name: tool}, {}), ToolContext(tmp_path), AgentSettings()).run()
    provider.close()
    assert (run.status, run.answer, run.notes) == ("ok", "Found.", ())
    assert [(entry.call.name, entry.outcome) for entry in run.trace] == [
        ("log search", "invalid_arguments"),
        ("log search", "ok"),
    ]
    last = server.asked[2].body["contents"]
    assert [turn["parts"][0] for turn in last[1:]] == [
        {"text": said},
        {"text": f"the arguments are not a JSON object: {said}"},
        call("log_search", {"pattern": "x"}, "c2ln"),
        {"functionResponse": {"name": "log_search", "response": {"output": "line 3"}}},
    ]


def test_an_error_never_shows_the_key(serve: Serve) -> None:
    server = serve(as_json({"error": {"code": 400, "message": "API key not valid: key-123"}}, status=400))
    account = Account("gemini", server.url, "GEMINI_API_KEY", "key-123")
    provider = open_provider(PRESET, account, ProviderSettings("m", timeout=5.0, retries=0))
    with pytest.raises(ProviderError, match="not valid") as failed:
        provider.reply(CASE, ASK)
    provider.close()
    assert "key-123" not in str(failed.value)
