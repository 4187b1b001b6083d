"""Ollama's own chat dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolSpec
from pytest_tooleval.providers.tool_adaptation import ToolRules
from pytest_tooleval.providers.tool_schemas import SchemaRules
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
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

# the server keeps the keywords of a property that it knows, and `$ref` is not among them
TOOL_RULES = ToolRules(schemas=SchemaRules(references=False))
CONTEXT_TOKENS = 16_384

_PATH = "api/chat"
_OTHER_PATHS = ("/v1", "/api")
_THINKING = "thinking"
_CALL_KEYS = frozenset({"id", "type", "function"})
_NO_ANSWER = ("load", "unload")
_MOST_CHARACTERS_A_TOKEN = 8


@dataclass(frozen=True, slots=True)
class OllamaQuirks:
    """What is set for every request.

    Attributes:
        context_tokens: the context length. It is always asked for: the server's default is short, and it cuts
            the front of longer prompts off, where the system prompt and the tools are.

    """

    context_tokens: int = CONTEXT_TOKENS


class OllamaChat:
    """The dialect of `POST {root}/api/chat`."""

    def __init__(self, model: str, account: Account, quirks: OllamaQuirks) -> None:
        self.url = _root(account).endpoint(_PATH)
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
    quirks = OllamaQuirks(settings.context_tokens or CONTEXT_TOKENS)
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(OllamaChat(settings.model.strip(), account, quirks), transport, TOOL_RULES)


def _root(account: Account) -> Account:
    """Return the account at the server's root, also where the base URL of another of its APIs is given."""
    address, mark, query = account.base_url.partition("?")
    root = address.rstrip("/")
    for path in _OTHER_PATHS:
        root = root.removesuffix(path)
    return replace(account, base_url=f"{root}{mark}{query}")


def build_request(request: ChatRequest, model: str, quirks: OllamaQuirks) -> JsonObject:
    """Return the body of a chat request, not streamed.

    The API has no `tool_choice`: with `none`, no tools are sent.

    Raises:
        ProviderError: a call is to be required, which would be ignored without a word.

    """
    sampling = request.sampling
    if sampling.tool_choice == "required":
        raise ProviderError(
            "Ollama's API cannot require a tool call: it has no tool_choice; leave --tooleval-tool-choice at 'auto'"
        )
    body: JsonObject = {
        "model": model,
        "messages": _sent_messages(request),
        "stream": False,
        "truncate": False,
        "shift": False,
        "options": _options(request, quirks),
    }
    if request.tools and sampling.tool_choice != "none":
        body["tools"] = [_sent_tool(tool) for tool in request.tools]
    return body


def _options(request: ChatRequest, quirks: OllamaQuirks) -> JsonObject:
    options = {
        "num_ctx": quirks.context_tokens,
        "temperature": request.sampling.temperature,
        "seed": request.sampling.seed,
        "num_predict": request.sampling.max_output_tokens,
    }
    return {name: value for name, value in options.items() if value is not None}


def _sent_tool(tool: ToolSpec) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _sent_messages(request: ChatRequest) -> list[JsonObject]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_sent_message(message) for message in request.messages]


def _sent_message(message: Message) -> JsonObject:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, name=name, text=text):
            return {"role": "tool", "tool_name": name, "tool_call_id": call_id, "content": text}
        case AssistantMessage():
            return _sent_reply(message)


def _sent_reply(reply: AssistantMessage) -> JsonObject:
    sent: JsonObject = {"role": "assistant", "content": reply.text, **reply.opaque}
    if reply.calls:
        sent["tool_calls"] = [_sent_call(call) for call in reply.calls]
    return sent


def _sent_call(call: ToolCall) -> JsonObject:
    return {**call.extra, "id": call.id, "function": {"name": call.name, "arguments": call.arguments or {}}}


def parse_reply(body: JsonObject, request: ChatRequest) -> AssistantMessage:
    """Return the reply in a chat answer.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.

    Raises:
        ProviderError: the answer is an error, breaks the protocol (then it is transient) or belongs to a
            prompt that was cut.

    """
    body = well_formed(body)
    message = _message(body)
    calls = _calls(message, request)
    _refuse_cut_prompt(body, request)
    text, thinking = message.get("content"), message.get(_THINKING)
    return AssistantMessage(
        text=text if isinstance(text, str) else "",
        calls=calls,
        finish="length" if body.get("done_reason") == "length" else "stop",
        usage=_usage(body, is_empty=not (text or thinking or calls)),
        opaque={_THINKING: thinking} if isinstance(thinking, str) and thinking else {},
    )


def _message(body: JsonObject) -> JsonObject:
    error = error_in_body(body)
    if error is not None:
        raise error
    if body.get("done") is False:
        raise broken("it is a part of a stream")
    reason = body.get("done_reason")
    if reason in _NO_ANSWER:
        raise broken(f"the server did not generate (done_reason {reason!r})")
    message = body.get("message")
    if not isinstance(message, dict):
        raise broken("it has no message")
    return message


def _calls(message: JsonObject, request: ChatRequest) -> tuple[ToolCall, ...]:
    raw_calls = message.get("tool_calls") or []
    if not isinstance(raw_calls, list):
        raise broken("its tool_calls are no list")
    ids = CallIds(request.messages)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(raw, ids, offered) for raw in raw_calls)


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


def _refuse_cut_prompt(body: JsonObject, request: ChatRequest) -> None:
    """Raise where fewer tokens were read than the texts of the prompt can be: a server that ignores `truncate`."""
    read = token_count(body, "prompt_eval_count")
    texts = [request.system, *(message.text for message in request.messages)]
    characters = sum(len(" ".join(text.split())) for text in texts)
    if read and characters > read * _MOST_CHARACTERS_A_TOKEN:
        raise ProviderError(
            f"the prompt was cut: the server read {read} tokens of {characters} characters; "
            "the context length of the model or the server is too short for this case"
        )


def _usage(body: Mapping[str, Any], *, is_empty: bool) -> Usage | None:
    """Return the counts, or None where one is missing: half of a count would pass for the whole.

    Older servers leave `prompt_eval_count` out where the prompt was cached. `eval_count` is left out at zero,
    which is a count only when the reply is empty.
    """
    prompt, output = token_count(body, "prompt_eval_count"), token_count(body, "eval_count")
    if output is None and is_empty:
        output = 0
    if prompt is None or output is None:
        return None
    cached = min(token_count(body, "prompt_eval_cached_count") or 0, prompt)
    return Usage(input=prompt - cached, cache_read=cached, output=output)
