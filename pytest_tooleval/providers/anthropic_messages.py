"""The Messages dialect of Anthropic and of the servers that speak it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolChoice, ToolSpec
from pytest_tooleval.providers.tool_adaptation import ToolRules
from pytest_tooleval.providers.tool_names import NameRule
from pytest_tooleval.providers.wire import (
    CallIds,
    broken,
    decode_arguments,
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

Role: TypeAlias = Literal["user", "assistant"]

DEFAULT_MAX_TOKENS = 4096
"""The output limit that is sent when none is set: the API insists on one."""

TOOL_RULES = ToolRules(names=NameRule(longest=128), arguments=NameRule(characters="A-Za-z0-9_.-"))

_VERSION = "2023-06-01"
_CALL_IDS = re.compile(r"[a-zA-Z0-9_-]+")
_CALL_KEYS = frozenset({"type", "id", "name", "input"})
_CHOICES: Mapping[ToolChoice, str] = {"auto": "auto", "required": "any", "none": "none"}
_FINISHES: Mapping[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_CONTENT = "content"


class AnthropicMessages:
    """The dialect of `POST {base}/v1/messages`; a base that ends in `/v1` is as good."""

    def __init__(self, model: str, account: Account) -> None:
        self.url = messages_url(account)
        self.headers = {"anthropic-version": _VERSION, **({"x-api-key": account.key} if account.key else {})}
        self._model = model

    def build_request(self, request: ChatRequest) -> JsonObject:
        """Return the body of a request; see the function of this name."""
        return build_request(request, self._model)

    def parse_reply(self, body: JsonObject, request: ChatRequest) -> AssistantMessage:
        """Return the reply in an answer; see the function of this name."""
        return parse_reply(body, request)


def open_provider(preset: Preset, account: Account, settings: ProviderSettings) -> DialectProvider:
    """Return the provider of a preset in this dialect; nothing is sent yet."""
    del preset
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(AnthropicMessages(settings.model.strip(), account), transport, TOOL_RULES)


def messages_url(account: Account) -> str:
    """Return where requests are posted, whether the base URL names the version or not."""
    names_version = urlsplit(account.base_url).path.rstrip("/").endswith("/v1")
    return account.endpoint("messages" if names_version else "v1/messages")


def build_request(request: ChatRequest, model: str) -> JsonObject:
    """Return the body of a Messages request, not streamed; the API has no seed."""
    sampling = request.sampling
    body: JsonObject = {
        "model": model,
        "max_tokens": sampling.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _turns(request.messages),
    }
    optional = {
        "system": request.system or None,
        "tools": [_sent_tool(tool) for tool in request.tools] or None,
        "tool_choice": {"type": _CHOICES[sampling.tool_choice]} if request.tools else None,
        "temperature": sampling.temperature,
    }
    return body | {name: value for name, value in optional.items() if value is not None}


def _sent_tool(tool: ToolSpec) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _turns(messages: Sequence[Message]) -> list[JsonObject]:
    """Return the conversation as turns that alternate; a turn of the user begins with the results of calls."""
    said = [(role, blocks) for role, blocks in map(_sent_message, messages) if blocks]
    turns: list[JsonObject] = []
    for role, group in itertools.groupby(said, key=lambda turn: turn[0]):
        blocks = [block for _, blocks in group for block in blocks]
        if role == "user":
            blocks.sort(key=lambda block: block["type"] != "tool_result")
        turns.append({"role": role, "content": blocks})
    return turns


def _sent_message(message: Message) -> tuple[Role, list[JsonObject]]:
    match message:
        case UserMessage(text):
            return "user", _text_blocks(text)
        case ToolMessage():
            return "user", [_sent_result(message)]
        case AssistantMessage():
            return "assistant", list(_sent_reply(message))


def _text_blocks(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _sent_result(result: ToolMessage) -> JsonObject:
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        **({"content": result.text} if result.text.strip() else {}),
        **({"is_error": True} if result.is_error else {}),
    }


def _sent_reply(reply: AssistantMessage) -> Iterator[JsonObject]:
    """Yield the blocks of a reply in the order in which they came, its calls among them."""
    calls = iter(reply.calls)
    for block in reply.opaque.get(_CONTENT, _text_blocks(reply.text)):
        if block["type"] == "tool_use":
            yield from map(_sent_call, itertools.islice(calls, 1))
        else:
            yield block
    yield from map(_sent_call, calls)


def _sent_call(call: ToolCall) -> JsonObject:
    return {**call.extra, "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}


def parse_reply(body: JsonObject, request: ChatRequest) -> AssistantMessage:
    """Return the reply in a Messages answer.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient), or the server
            paused in the middle of tools of its own.

    """
    body = well_formed(body)
    blocks = _blocks(body)
    calls = _calls(blocks, request)
    reason = body.get("stop_reason")
    if reason == "tool_use" and not calls:
        raise broken("stop_reason is 'tool_use' but there is no tool call")
    if reason == "pause_turn" and not calls:
        raise ProviderError("the server paused a turn for tools of its own (pause_turn); turn those tools off")
    text = "".join(block["text"] for block in blocks if _is_text(block))
    finish = _FINISHES.get(str(reason), "stop")
    return AssistantMessage(
        text=text or (_refusal(body) if finish == "refusal" else ""),
        calls=calls,
        finish=finish,
        usage=_usage(body.get("usage")),
        opaque={_CONTENT: [_kept(block) for block in blocks if _may_be_sent_back(block)]},
    )


def _blocks(body: JsonObject) -> list[JsonObject]:
    error = error_in_body(body)
    if error is not None:
        raise error
    blocks = body.get("content")
    if body.get("type") == "error" or not isinstance(blocks, list):
        raise broken("it has no content")
    if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks):
        raise broken("one of its content blocks has no type")
    return blocks


def _is_text(block: JsonObject) -> bool:
    return block["type"] == "text" and isinstance(block.get("text"), str)


def _may_be_sent_back(block: JsonObject) -> bool:
    """Whether the API takes a block back: it refuses blank text, and thinking without its signature."""
    if block["type"] == "text":
        return _is_text(block) and bool(block["text"].strip())
    return block["type"] != "thinking" or bool(block.get("signature"))


def _kept(block: JsonObject) -> JsonObject:
    """Return what is kept of a block: of a call its place, since the call itself is kept elsewhere."""
    return {"type": "tool_use"} if block["type"] == "tool_use" else block


def _calls(blocks: Sequence[JsonObject], request: ChatRequest) -> tuple[ToolCall, ...]:
    ids = CallIds(request.messages, _CALL_IDS)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(block, ids, offered) for block in blocks if block["type"] == "tool_use")


def _call(block: JsonObject, ids: CallIds, offered: Collection[str]) -> ToolCall:
    name = block.get("name")
    if not isinstance(name, str):
        raise broken("one of its tool calls has no name")
    arguments, raw_arguments = decode_arguments(block.get("input"))
    return ToolCall(
        id=ids.take(block.get("id")),
        name=offered_name(name, offered),
        arguments=arguments,
        raw_arguments=raw_arguments,
        raw_name=name,
        extra={key: value for key, value in block.items() if key not in _CALL_KEYS},
    )


def _refusal(body: JsonObject) -> str:
    details = body.get("stop_details")
    explanation = details.get("explanation") if isinstance(details, dict) else None
    return explanation if isinstance(explanation, str) else ""


def _usage(usage: Any) -> Usage | None:
    """Return the usage; the API counts cached tokens beside `input_tokens`, and gives no total."""
    given, output = token_count(usage, "input_tokens"), token_count(usage, "output_tokens")
    if given is output is None:
        return None
    return Usage(
        input=given or 0,
        cache_read=token_count(usage, "cache_read_input_tokens") or 0,
        cache_write=token_count(usage, "cache_creation_input_tokens") or 0,
        output=output or 0,
    )
