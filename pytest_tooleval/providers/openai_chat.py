"""The Chat Completions dialect of OpenAI and of the many servers that speak it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import ChatQuirks, Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolSpec
from pytest_tooleval.providers.tool_adaptation import ToolRules
from pytest_tooleval.providers.wire import (
    CallIds,
    broken,
    decode_arguments,
    encode_arguments,
    offered_name,
    token_count,
    well_formed,
)
from pytest_tooleval.transcript import (
    AssistantMessage,
    Finish,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

TOOL_RULES = ToolRules()

_PATH = "chat/completions"
_OPENAI_HOST = "api.openai.com"
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_FINISHES: Mapping[str, Finish] = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}
_CALL_FINISHES = ("tool_calls", "function_call")


class OpenAIChat:
    """The dialect of `POST {base}/chat/completions`."""

    def __init__(self, model: str, account: Account, quirks: ChatQuirks) -> None:
        self.url = account.endpoint(_PATH)
        self.headers = key_headers(account.key, quirks)
        self._model = model
        self._quirks = quirks

    def build_request(self, request: ChatRequest) -> JsonObject:
        """Return the body of a request; see the function of this name."""
        return build_request(request, self._model, self._quirks)

    def parse_reply(self, body: JsonObject, request: ChatRequest) -> AssistantMessage:
        """Return the reply in an answer; see the function of this name."""
        return parse_reply(body, request, self._quirks)


def open_provider(preset: Preset, account: Account, settings: ProviderSettings) -> DialectProvider:
    """Return the provider of a preset in this dialect; nothing is sent yet."""
    quirks = replace(preset.quirks, limit_parameter=limit_parameter(account, preset.quirks))
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(OpenAIChat(settings.model.strip(), account, quirks), transport, TOOL_RULES)


def limit_parameter(account: Account, quirks: ChatQuirks) -> str:
    """Return the output limit's name: OpenAI's newer models refuse the one that other servers know."""
    return "max_completion_tokens" if account.host == _OPENAI_HOST else quirks.limit_parameter


def key_headers(key: str | None, quirks: ChatQuirks) -> dict[str, str]:
    """Return the header that carries the key, or none when there is no key."""
    if not key:
        return {}
    return {quirks.key_header: key} if quirks.key_header else {"Authorization": f"Bearer {key}"}


def build_request(request: ChatRequest, model: str, quirks: ChatQuirks) -> JsonObject:
    """Return the body of a Chat Completions request, not streamed."""
    body: JsonObject = {"model": model, "messages": _sent_messages(request, quirks)}
    sampling = request.sampling
    if request.tools:
        body["tools"] = [_sent_tool(tool) for tool in request.tools]
    optional = {
        "tool_choice": quirks.spelled(sampling.tool_choice) if request.tools else None,
        "temperature": sampling.temperature,
        quirks.limit_parameter: sampling.max_output_tokens,
        quirks.seed_parameter: sampling.seed,
    }
    return body | {name: value for name, value in optional.items() if name and value is not None}


def _sent_tool(tool: ToolSpec) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _sent_messages(request: ChatRequest, quirks: ChatQuirks) -> list[JsonObject]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_sent_message(message, quirks) for message in request.messages]


def _sent_message(message: Message, quirks: ChatQuirks) -> JsonObject:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case AssistantMessage():
            return _sent_reply(message, quirks)


def _sent_reply(reply: AssistantMessage, quirks: ChatQuirks) -> JsonObject:
    sent: JsonObject = dict(reply.opaque) if _echoes_reasoning(reply, quirks) else {}
    sent["role"] = "assistant"
    if reply.text or not reply.calls or quirks.content_beside_calls == "empty":
        sent["content"] = reply.text
    elif quirks.content_beside_calls == "null":
        sent["content"] = None
    if reply.calls:
        sent["tool_calls"] = [_sent_call(call) for call in reply.calls]
    return sent


def _echoes_reasoning(reply: AssistantMessage, quirks: ChatQuirks) -> bool:
    return quirks.echo_reasoning == "always" or (quirks.echo_reasoning == "beside_calls" and bool(reply.calls))


def _sent_call(call: ToolCall) -> JsonObject:
    function = {"name": call.name, "arguments": encode_arguments(call)}
    return {**call.extra, "id": call.id, "type": "function", "function": function}


def parse_reply(body: JsonObject, request: ChatRequest, quirks: ChatQuirks) -> AssistantMessage:
    """Return the reply in a Chat Completions answer.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.
        quirks: which call ids the server takes back.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient).

    """
    body = well_formed(body)
    choice = _choice(body)
    message = _message(choice)
    calls = _calls(message, request, quirks)
    reason = choice.get("finish_reason")
    if reason in _CALL_FINISHES and not calls:
        raise broken(f"finish_reason is {reason!r} but there is no tool call")
    refusal = _refusal(message)
    return AssistantMessage(
        text=_text(message.get("content")) or refusal,
        calls=calls,
        finish="refusal" if refusal else _FINISHES.get(str(reason), "stop"),
        usage=_usage(body.get("usage")),
        opaque={key: message[key] for key in _REASONING_KEYS if message.get(key) is not None},
    )


def _choice(body: JsonObject) -> JsonObject:
    error = error_in_body(body)
    if error is not None:
        raise error
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise broken("it has no choices")
    return choices[0]


def _message(choice: JsonObject) -> JsonObject:
    error = error_in_body(choice)
    if error is not None:
        raise error
    if choice.get("finish_reason") == "error":
        raise broken("the server stopped with finish_reason 'error'")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise broken("its choice has no message")
    return message


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(_part_text(part, "text") for part in parts)


def _part_text(part: Any, kind: str) -> str:
    if isinstance(part, str):
        return part if kind == "text" else ""
    text = part.get(kind) if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _refusal(message: JsonObject) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    parts = message.get("content")
    return "".join(_part_text(part, "refusal") for part in parts) if isinstance(parts, list) else ""


def _calls(message: JsonObject, request: ChatRequest, quirks: ChatQuirks) -> tuple[ToolCall, ...]:
    ids = CallIds(request.messages, re.compile(quirks.call_ids) if quirks.call_ids else None)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(raw, ids, offered) for raw in _raw_calls(message))


def _raw_calls(message: JsonObject) -> list[Any]:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise broken("its tool_calls are no list")
    legacy = message.get("function_call")
    return calls or ([{"function": legacy}] if legacy else [])


def _call(raw: Any, ids: CallIds, offered: Collection[str]) -> ToolCall:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise broken("one of its tool calls names no function")
    arguments, raw_arguments = decode_arguments(function.get("arguments"))
    return ToolCall(
        id=ids.take(raw.get("id")),
        name=offered_name(function["name"], offered),
        arguments=arguments,
        raw_arguments=raw_arguments,
        raw_name=function["name"],
        extra={key: value for key, value in raw.items() if key not in _CALL_KEYS},
    )


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    prompt, output = token_count(usage, "prompt_tokens"), token_count(usage, "completion_tokens")
    total = token_count(usage, "total_tokens")
    if prompt is output is total is None:
        return None
    cached = token_count(usage.get("prompt_tokens_details"), "cached_tokens") or 0
    return Usage(
        input=max(0, (prompt or 0) - cached),
        cache_read=cached,
        output=output or 0,
        reasoning=token_count(usage.get("completion_tokens_details"), "reasoning_tokens") or 0,
        reported_total=total,
    )
