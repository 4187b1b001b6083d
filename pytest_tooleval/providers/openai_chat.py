"""The Chat Completions dialect of OpenAI and of the many servers that speak it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import ContentBesideCalls, Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolSpec
from pytest_tooleval.providers.wire import (
    CallIds,
    decode_arguments,
    echoed_name,
    encode_arguments,
    object_schema,
    offered_name,
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

LimitParameter: TypeAlias = Literal["max_tokens", "max_completion_tokens"]

_PATH = "chat/completions"
_OPENAI_HOST = "api.openai.com"
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_FINISHES: Mapping[str, Finish] = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}
_CALL_FINISHES = frozenset({"tool_calls", "function_call"})


@dataclass(frozen=True, slots=True)
class ChatQuirks:
    """In what servers of this dialect differ.

    Attributes:
        limit_parameter: name of the output limit.
        content_beside_calls: content of an assistant message with tool calls and no text.
        echo_reasoning: whether an assistant message's reasoning is sent back.

    """

    limit_parameter: LimitParameter = "max_tokens"
    content_beside_calls: ContentBesideCalls = "null"
    echo_reasoning: bool = True


class OpenAIChat:
    """The dialect of `POST {base}/chat/completions`."""

    def __init__(self, model: str, account: Account, quirks: ChatQuirks) -> None:
        self.url = account.endpoint(_PATH)
        self.headers = {"Authorization": f"Bearer {account.key}"} if account.key else {}
        self._model = model
        self._quirks = quirks

    def build_request(self, request: ChatRequest) -> JsonObject:
        """Return the body of a request; see the function of this name."""
        return build_request(request, self._model, self._quirks)

    def parse_reply(self, body: JsonObject, request: ChatRequest) -> AssistantMessage:
        """Return the reply in an answer; see the function of this name."""
        return parse_reply(body, request)


def open_provider(preset: Preset, account: Account, settings: ProviderSettings) -> DialectProvider:
    """Return the provider of a preset in this dialect; nothing is sent yet."""
    quirks = ChatQuirks(
        limit_parameter=limit_parameter(account),
        content_beside_calls=preset.content_beside_calls,
        echo_reasoning=preset.echo_reasoning,
    )
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(OpenAIChat(settings.model.strip(), account, quirks), transport)


def limit_parameter(account: Account) -> LimitParameter:
    """Return the output limit's name: OpenAI's newer models refuse the one that other servers know."""
    return "max_completion_tokens" if account.host == _OPENAI_HOST else "max_tokens"


def build_request(request: ChatRequest, model: str, quirks: ChatQuirks) -> JsonObject:
    """Return the body of a Chat Completions request, not streamed."""
    body: JsonObject = {"model": model, "messages": _sent_messages(request, quirks)}
    sampling = request.sampling
    if request.tools:
        body["tools"] = [_sent_tool(tool) for tool in request.tools]
        body["tool_choice"] = sampling.tool_choice
    optional = {
        "temperature": sampling.temperature,
        quirks.limit_parameter: sampling.max_output_tokens,
        "seed": sampling.seed,
    }
    return body | {name: value for name, value in optional.items() if value is not None}


def _sent_tool(tool: ToolSpec) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": object_schema(tool.parameters),
    }
    return {"type": "function", "function": function}


def _sent_messages(request: ChatRequest, quirks: ChatQuirks) -> list[JsonObject]:
    offered = frozenset(tool.name for tool in request.tools)
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_sent_message(message, offered, quirks) for message in request.messages]


def _sent_message(message: Message, offered: Collection[str], quirks: ChatQuirks) -> JsonObject:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case AssistantMessage():
            return _sent_reply(message, offered, quirks)


def _sent_reply(reply: AssistantMessage, offered: Collection[str], quirks: ChatQuirks) -> JsonObject:
    sent: JsonObject = dict(reply.opaque) if quirks.echo_reasoning else {}
    sent["role"] = "assistant"
    if reply.text or not reply.calls or quirks.content_beside_calls == "empty":
        sent["content"] = reply.text
    elif quirks.content_beside_calls == "null":
        sent["content"] = None
    if reply.calls:
        sent["tool_calls"] = [_sent_call(call, offered) for call in reply.calls]
    return sent


def _sent_call(call: ToolCall, offered: Collection[str]) -> JsonObject:
    function = {"name": echoed_name(call.name, offered), "arguments": encode_arguments(call)}
    return {**call.extra, "id": call.id, "type": "function", "function": function}


def parse_reply(body: JsonObject, request: ChatRequest) -> AssistantMessage:
    """Return the reply in a Chat Completions answer.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient).

    """
    body = well_formed(body)
    choice = _choice(body)
    message = _message(choice)
    calls = _calls(message, request)
    reason = choice.get("finish_reason")
    if reason in _CALL_FINISHES and not calls:
        raise _broken(f"finish_reason is {reason!r} but there is no tool call")
    refusal = _refusal(message)
    return AssistantMessage(
        text=_text(message.get("content")) or refusal,
        calls=calls,
        finish="refusal" if refusal else _FINISHES.get(str(reason), "stop"),
        usage=_usage(body.get("usage")),
        opaque={key: message[key] for key in _REASONING_KEYS if message.get(key) is not None},
    )


def _broken(what: str) -> ProviderError:
    return ProviderError(f"the answer breaks the protocol: {what}", transient=True)


def _choice(body: JsonObject) -> JsonObject:
    error = error_in_body(body)
    if error is not None:
        raise error
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _broken("it has no choices")
    return choices[0]


def _message(choice: JsonObject) -> JsonObject:
    error = error_in_body(choice)
    if error is not None:
        raise error
    if choice.get("finish_reason") == "error":
        raise _broken("the server stopped with finish_reason 'error'")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _broken("its choice has no message")
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


def _calls(message: JsonObject, request: ChatRequest) -> tuple[ToolCall, ...]:
    ids = CallIds(request.messages)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(raw, ids, offered) for raw in _raw_calls(message))


def _raw_calls(message: JsonObject) -> list[Any]:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise _broken("its tool_calls are no list")
    legacy = message.get("function_call")
    return calls or ([{"function": legacy}] if legacy else [])


def _call(raw: Any, ids: CallIds, offered: Collection[str]) -> ToolCall:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise _broken("one of its tool calls names no function")
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
    prompt, output = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    total = _count(usage, "total_tokens")
    if prompt is output is total is None:
        return None
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens") or 0
    return Usage(
        input=max(0, (prompt or 0) - cached),
        cache_read=cached,
        output=output or 0,
        reasoning=_count(usage.get("completion_tokens_details"), "reasoning_tokens") or 0,
        reported_total=total,
    )


def _count(counts: Any, key: str) -> int | None:
    value = counts.get(key) if isinstance(counts, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < float("inf") else None
