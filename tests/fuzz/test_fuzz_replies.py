from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import DIALECTS
from fuzzing import ODD_TEXT, ODD_VALUES, check_told, fuzzed, in_time, mutations, with_texts_replaced
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.agent.hints import unparsed_call_hint
from pytest_tooleval.broker.embedders.openai_api import parse_embeddings
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers import anthropic_messages, gemini, ollama_chat, openai_chat, openai_responses
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.http_errors import error_in_body, status_error
from pytest_tooleval.providers.ollama_chat import OllamaQuirks
from pytest_tooleval.providers.openai_responses import ResponsesQuirks
from pytest_tooleval.providers.presets import ChatQuirks
from pytest_tooleval.providers.provider import ChatRequest, Sampling, ToolSpec
from pytest_tooleval.providers.reply_check import reply_fault
from pytest_tooleval.providers.retry_after import asked_wait
from pytest_tooleval.providers.tool_adaptation import AdaptedTools
from pytest_tooleval.providers.wire import CallIds, decode_arguments, encode_arguments, offered_name, well_formed
from pytest_tooleval.transcript import AssistantMessage, ToolCall, ToolMessage, UserMessage

TOOLS = (
    ToolSpec("file_read", "Read.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("odd name!", "Odd.", {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
)
REQUEST = ChatRequest("Be brief.", (UserMessage("Read it."),), TOOLS, Sampling(max_output_tokens=64))
PARSERS: dict[str, tuple[Any, Callable[..., AssistantMessage], Callable[..., Any]]] = {
    "openai-chat": (
        openai_chat.TOOL_RULES,
        lambda body, request: openai_chat.parse_reply(body, request, ChatQuirks(call_ids="[a-zA-Z0-9]{9}")),
        lambda request: openai_chat.build_request(request, "m", ChatQuirks(echo_reasoning="always")),
    ),
    "openai-responses": (
        None,
        openai_responses.parse_reply,
        lambda request: openai_responses.build_request(request, "m", ResponsesQuirks(encrypted_reasoning=True)),
    ),
    "anthropic": (
        anthropic_messages.TOOL_RULES,
        anthropic_messages.parse_reply,
        lambda request: anthropic_messages.build_request(request, "m"),
    ),
    "ollama": (
        ollama_chat.TOOL_RULES,
        ollama_chat.parse_reply,
        lambda request: ollama_chat.build_request(request, "m", OllamaQuirks()),
    ),
    "gemini": (gemini.TOOL_RULES, gemini.parse_reply, gemini.build_request),
}
MORE: dict[str, list[Any]] = {
    "openai-chat": [
        {"choices": [{"finish_reason": "stop", "message": {"content": [{"type": "text", "text": "a"}], "refusal": "no"}}]},
        {"choices": [{"message": {"content": "", "reasoning_details": [{"data": "x"}], "function_call": {"name": "a", "arguments": "{}"}}}]},
    ],
    "openai-responses": [
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "message", "content": "a"}]},
        {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}, {"type": "web_search_call", "id": "w"}]},
    ],
    "anthropic": [
        {"content": [{"type": "thinking", "thinking": "a", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}, {"type": "tool_use", "id": "t", "name": "a", "input": {}, "caller": {}}], "stop_reason": "tool_use"},
        {"content": [], "stop_reason": "refusal", "stop_details": {"explanation": "no"}},
    ],
    "ollama": [{"message": {"content": "a", "thinking": "b", "tool_calls": [{"id": "1", "function": {"index": 0, "name": "a", "arguments": "{}"}}]}, "done": True, "done_reason": "length"}],
    "gemini": [
        {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "no"}},
        {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: print(default_api.file_read(path='x'))"}]},
        {"candidates": [{"content": {"parts": [{"text": "a", "thought": True, "thoughtSignature": "s"}, {"functionCall": {"id": "1", "name": "a", "args": {}}}]}, "finishReason": "STOP"}]},
    ],
}  # fmt: skip


def samples(dialect: str) -> list[Any]:
    speaker = DIALECTS[dialect][1]
    return [speaker.call(), speaker.text(), speaker.error(), *MORE[dialect]]


def as_received(body: Any) -> Any:
    """Return a body as the transport decodes it from the wire."""
    return json.loads(json.dumps(body), parse_constant=lambda _: None)


@pytest.mark.parametrize("dialect", PARSERS)
@fuzzed(60)
@given(data=st.data())
def test_any_body_gives_a_reply_that_can_be_sent_back_or_a_provider_error(
    dialect: str, data: st.DataObject
) -> None:
    body = as_received(data.draw(mutations(st.sampled_from(samples(dialect)))))
    if not isinstance(body, dict):
        body = {"choices": body, "content": body, "output": body, "message": body, "candidates": body}
    rules, parse, build = PARSERS[dialect]
    adapted = AdaptedTools(REQUEST, rules) if rules else None
    request = adapted.request if adapted else REQUEST
    with in_time():
        try:
            reply = parse(body, request)
        except ProviderError as error:
            check_told(error, most=2000)
            return
        reply = adapted.restored(reply) if adapted else reply
        assert reply_fault(reply) == ""
        unparsed_call_hint(reply.text, ["file_read"])
        results = tuple(ToolMessage(call.id, call.name, "result", is_error=True) for call in reply.calls)
        following = ChatRequest("", (*REQUEST.messages, reply, *results), TOOLS)
        asked = build(AdaptedTools(following, rules).request if rules else following)
        json.dumps(asked, allow_nan=False, ensure_ascii=False).encode()
    assert len({call.id for call in reply.calls}) == len(reply.calls)


@pytest.mark.parametrize("piece", ["x", "x.", "a:", "a(", '"name":', '{"a":', "\\", " ", "<", "5", "\u00e9"])
@pytest.mark.parametrize("dialect", PARSERS)
def test_long_texts_take_little_time(dialect: str, piece: str) -> None:
    parse = PARSERS[dialect][1]
    text = piece * (70_000 // len(piece))
    for body in (changed for sample in samples(dialect) for changed in with_texts_replaced(sample, text)):
        with in_time(), contextlib.suppress(ProviderError):
            unparsed_call_hint(parse(body, REQUEST).text, ["file_read"])


@fuzzed(80)
@given(st.sampled_from([200, 302, 400, 401, 404, 429, 500, 503, 529, 999]), ODD_VALUES | st.binary(), ODD_TEXT)
def test_any_error_gives_a_short_message(status: int, body: Any, header: str) -> None:
    import httpx

    data = body if isinstance(body, bytes) else json.dumps({"error": body}).encode()
    value = header.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b"").replace(b"\x00", b"")
    headers = [(b"retry-after", value), (b"location", value), (b"retry-after-ms", value)]
    answer = httpx.Response(status, headers=headers, content=data)
    with in_time():
        error = status_error(answer, data, Account("p", "http://h/v1", "KEY", "k"), 1e9)
        asked_wait(answer.headers, 1e9)
        inside = error_in_body({"error": body}) if not isinstance(body, bytes) else None
    for each in (error, inside):
        if each is not None:
            check_told(each, most=2000)
    assert (error is None) == (200 <= status < 300)


@fuzzed(100)
@given(ODD_VALUES | ODD_TEXT | st.text(st.sampled_from('{}[]":,a1e\\ \n'), max_size=30))
def test_any_arguments_are_an_object_or_none_and_can_be_sent_back(raw: Any) -> None:
    with in_time():
        arguments, text = decode_arguments(raw)
        again = encode_arguments(ToolCall("1", "a", arguments, text))
    assert arguments is None or isinstance(arguments, dict)
    assert isinstance(json.loads(again), dict)
    text.encode()
    again.encode()


@fuzzed(60)
@given(st.lists(ODD_VALUES, max_size=5), ODD_TEXT)
def test_any_ids_become_unique_texts(given_ids: list[Any], name: str) -> None:
    with in_time():
        ids = CallIds(())
        taken = [ids.take(each) for each in given_ids]
        assert isinstance(offered_name(well_formed(name), ["file_read"]), str)
    assert len(set(taken)) == len(taken)
    assert all(isinstance(each, str) and each for each in taken)


EMBEDDINGS = {"data": [{"index": 0, "embedding": [0.5, 1.0]}, {"index": 1, "embedding": [1, 0]}]}


@fuzzed(60)
@given(mutations(st.just(EMBEDDINGS)))
def test_any_embeddings_are_vectors_or_a_provider_error(body: Any) -> None:
    with in_time():
        try:
            rows = parse_embeddings(body if isinstance(body, dict) else {"data": body}, 2)
        except ProviderError as error:
            check_told(error, most=2000)
            return
    assert len(rows) == 2
