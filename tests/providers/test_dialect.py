from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chat_samples import CASE, chat_answer
from loopback import LoopbackServer, as_json

from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, Patience
from pytest_tooleval.providers.openai_chat import OpenAIChat
from pytest_tooleval.providers.presets import ChatQuirks
from pytest_tooleval.providers.provider import ChatRequest, ToolSpec
from pytest_tooleval.transcript import ToolMessage, UserMessage

Serve = Callable[..., LoopbackServer]

TOOLS = [
    ToolSpec("files.read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("files.list", "List files.", {"type": "object"}),
    ToolSpec("route", "Find a way.", {"anyOf": [{"properties": {"to": {}}}, {"properties": {"via": {}}}]}),
]


def provider_at(server: LoopbackServer) -> DialectProvider:
    account = Account("openai", server.url)
    return DialectProvider(
        OpenAIChat("m", account, ChatQuirks()), HttpTransport(account, Patience(5.0, 2, lambda _: None))
    )


def called(*names: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": '{"path": "a"}'}}
        for number, name in enumerate(names)
    ]
    return chat_answer({"content": None, "tool_calls": calls}, "tool_calls")


def functions(body: Any) -> list[dict[str, Any]]:
    return [tool["function"] for tool in body["tools"]]


def test_the_wire_has_names_that_the_api_takes_and_the_transcript_the_real_ones(serve: Serve) -> None:
    server = serve(as_json(called("files_read", "functions.files.list", "rm -rf")), as_json(chat_answer({})))
    provider = provider_at(server)
    ask = ChatRequest("", [UserMessage("t")], TOOLS)
    reply = provider.reply(CASE, ask)
    assert [(call.name, call.raw_name) for call in reply.calls] == [
        ("files.read", "files.read"),
        ("files.list", "functions.files.list"),
        ("rm -rf", "rm -rf"),
    ]
    results = [ToolMessage(call.id, call.name, "ok") for call in reply.calls]
    provider.reply(CASE, ChatRequest("", [*ask.messages, reply, *results], TOOLS))
    provider.close()
    first, second = (asked.body for asked in server.asked)
    assert [function["name"] for function in functions(first)] == ["files_read", "files_list", "route"]
    assert functions(first) == functions(second)
    echoed = [call["function"]["name"] for call in second["messages"][1]["tool_calls"]]
    assert echoed == ["files_read", "files_list", "rm_-rf"]


def test_one_schema_that_the_api_refuses_is_sent_as_one_that_it_takes(serve: Serve) -> None:
    server = serve(as_json(chat_answer({"content": "hi"})))
    provider = provider_at(server)
    provider.reply(CASE, ChatRequest("", [UserMessage("t")], TOOLS))
    provider.close()
    read, listed, route = (function["parameters"] for function in functions(server.asked[0].body))
    assert read == TOOLS[0].parameters
    assert listed == {"type": "object", "properties": {}}
    assert route == {"type": "object", "properties": {"to": {}, "via": {}}}
    assert "anyOf" in TOOLS[2].parameters


def test_it_says_how_many_requests_a_reply_took(serve: Serve) -> None:
    server = serve(as_json({}, status=503), as_json(chat_answer({"content": "ok"})))
    provider = provider_at(server)
    reply = provider.reply(CASE, ChatRequest("", [UserMessage("t")], TOOLS))
    provider.close()
    assert (reply.text, reply.attempts) == ("ok", 2)


def test_the_offer_stays_the_same_whatever_the_model_invents(serve: Serve) -> None:
    server = serve(as_json(called("nothing like it")), as_json(called("nothing-like-it")), as_json(chat_answer({})))
    provider = provider_at(server)
    messages: list[Any] = [UserMessage("t")]
    for _ in range(3):
        reply = provider.reply(CASE, ChatRequest("", messages, TOOLS))
        messages += [reply, *(ToolMessage(call.id, call.name, "no such tool") for call in reply.calls)]
    provider.close()
    assert len({json.dumps(asked.body["tools"]) for asked in server.asked}) == 1
    replies = [message for message in server.asked[2].body["messages"] if message["role"] == "assistant"]
    echoed = [reply["tool_calls"][0]["function"]["name"] for reply in replies]
    assert echoed == ["nothing_like_it", "nothing-like-it"]
