"""The Responses dialect of OpenAI and of the servers that speak it, used without state on the server."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolSpec
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

_PATH = "responses"
_OPENAI_HOST = "api.openai.com"
_OUTPUT = "output"
_INCOMPLETE = "incomplete_details"
_ENCRYPTED = "reasoning.encrypted_content"
_WITHOUT_REASONING = re.compile(r"(?:ft:)?(?:gpt-3|gpt-4|chatgpt-|.*-chat(?:-|$))")
_UNFINISHED = ("failed", "cancelled", "in_progress", "queued")


@dataclass(frozen=True, slots=True)
class ResponsesQuirks:
    """In what servers and models of this dialect differ.

    Attributes:
        encrypted_reasoning: whether reasoning is asked for in the form that can be sent back. Servers that keep
            nothing give theirs in the open; some of them, and models that do not reason, refuse to be asked.
        takes_seed: whether a seed is sent: OpenAI has none and refuses it.

    """

    encrypted_reasoning: bool = False
    takes_seed: bool = True


class OpenAIResponses:
    """The dialect of `POST {base}/responses`."""

    def __init__(self, model: str, account: Account, quirks: ResponsesQuirks) -> None:
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
    del preset
    model = settings.model.strip()
    quirks = quirks_of(account, model)
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(OpenAIResponses(model, account, quirks), transport)


def quirks_of(account: Account, model: str) -> ResponsesQuirks:
    """Return what is special about OpenAI's own server, where models that do not reason differ from the others."""
    if account.host != _OPENAI_HOST:
        return ResponsesQuirks()
    reasons = _WITHOUT_REASONING.match(model) is None
    return ResponsesQuirks(encrypted_reasoning=reasons, takes_seed=False)


def build_request(request: ChatRequest, model: str, quirks: ResponsesQuirks) -> JsonObject:
    """Return the body of a Responses request, not streamed and not stored."""
    body: JsonObject = {"model": model, "input": _input(request.messages), "store": False}
    sampling = request.sampling
    optional = {
        "instructions": request.system or None,
        "include": [_ENCRYPTED] if quirks.encrypted_reasoning else None,
        "tools": [_sent_tool(tool) for tool in request.tools] or None,
        "tool_choice": sampling.tool_choice if request.tools else None,
        "temperature": sampling.temperature,
        "max_output_tokens": sampling.max_output_tokens,
        "seed": sampling.seed if quirks.takes_seed else None,
    }
    return body | {name: value for name, value in optional.items() if value is not None}


def _sent_tool(tool: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,  # left out, it would make every property required
    }


def _input(messages: Sequence[Message]) -> list[JsonObject]:
    return [item for message in messages for item in _sent_items(message)]


def _sent_items(message: Message) -> Iterator[JsonObject]:
    match message:
        case UserMessage(text):
            yield {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, text=text):
            yield {"type": "function_call_output", "call_id": call_id, "output": text}
        case AssistantMessage():
            items = message.opaque.get(_OUTPUT)
            if isinstance(items, list) and sum(map(_is_call, items)) == len(message.calls):
                yield from _echoed_items(items, message.calls)
            else:
                yield from _rebuilt_items(message)


def _echoed_items(items: Sequence[JsonObject], calls: Sequence[ToolCall]) -> Iterator[JsonObject]:
    """Yield a reply's own items in their order, without reasoning that can only be looked up by its id.

    Where nothing is stored, such an id is refused; what followed it then goes without ids, by which the API would
    ask for the reasoning.
    """
    kept = [item for item in items if _can_be_sent_back(item)]
    if len(kept) < len(items):
        kept = [{key: value for key, value in item.items() if key != "id"} for item in kept]
    remaining = iter(calls)
    for item in kept:
        yield item | _sent_call(next(remaining)) if _is_call(item) else item


def _can_be_sent_back(item: JsonObject) -> bool:
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _rebuilt_items(reply: AssistantMessage) -> Iterator[JsonObject]:
    if reply.text:
        content = [{"type": "output_text", "text": reply.text}]
        yield {"type": "message", "role": "assistant", "content": content}
    for call in reply.calls:
        yield _sent_call(call)


def _sent_call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": encode_arguments(call),
    }


def _is_call(item: JsonObject) -> bool:
    return item.get("type") == "function_call"


def parse_reply(body: JsonObject, request: ChatRequest) -> AssistantMessage:
    """Return the reply in a Responses answer.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient).

    """
    body = well_formed(body)
    items = _items(body)
    parts = [part for item in items for part in _parts(item)]
    refusal = "".join(_text(part, "refusal") for part in parts)
    usage = _usage(body.get("usage"))
    return AssistantMessage(
        text="".join(_text(part, "text") for part in parts) or refusal,
        calls=_calls(items, request),
        finish="refusal" if refusal else _finish(body, usage, request.sampling.max_output_tokens),
        usage=usage,
        opaque={_OUTPUT: items} if items else {},
    )


def _items(body: JsonObject) -> list[JsonObject]:
    error = error_in_body(body)
    if error is not None:
        raise error
    status = body.get("status")
    if status in _UNFINISHED:
        raise broken(f"the response's status is {status!r}")
    items = body.get(_OUTPUT)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise broken("it has no list of output items")
    return items


def _finish(body: JsonObject, usage: Usage | None, most: int | None) -> Finish:
    """Return why the reply ended.

    A server that knows nothing of incomplete responses calls every reply completed: there it is the number of
    tokens that tells whether the output limit cut it off.
    """
    if body.get("status") == "incomplete":
        details = body.get(_INCOMPLETE)
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return "refusal" if reason == "content_filter" else "length"
    reached = most is not None and usage is not None and usage.output >= most
    return "length" if reached and _INCOMPLETE not in body else "stop"


def _parts(item: JsonObject) -> list[Any]:
    content = item.get("content") if item.get("type") == "message" else None
    if isinstance(content, str):
        return [{"text": content}]
    return content if isinstance(content, list) else []


def _text(part: Any, kind: str) -> str:
    text = part.get(kind) if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _calls(items: Sequence[JsonObject], request: ChatRequest) -> tuple[ToolCall, ...]:
    ids = CallIds(request.messages)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(item, ids, offered) for item in items if _is_call(item))


def _call(item: JsonObject, ids: CallIds, offered: Collection[str]) -> ToolCall:
    name = item.get("name")
    if not isinstance(name, str):
        raise broken("one of its function calls has no name")
    arguments, raw_arguments = decode_arguments(item.get("arguments"))
    return ToolCall(
        id=ids.take(item.get("call_id")),
        name=offered_name(name, offered),
        arguments=arguments,
        raw_arguments=raw_arguments,
        raw_name=name,
    )


def _usage(usage: Any) -> Usage | None:
    """Return the counts with each token once: its input holds what was cached, its output what was reasoned."""
    if not isinstance(usage, Mapping):
        return None
    sent, output = token_count(usage, "input_tokens"), token_count(usage, "output_tokens")
    total = token_count(usage, "total_tokens")
    if sent is output is total is None:
        return None
    details = usage.get("input_tokens_details")
    cached = token_count(details, "cached_tokens") or 0
    written = token_count(details, "cache_write_tokens") or 0
    return Usage(
        input=max(0, (sent or 0) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=output or 0,
        reasoning=token_count(usage.get("output_tokens_details"), "reasoning_tokens") or 0,
        reported_total=total,
    )
