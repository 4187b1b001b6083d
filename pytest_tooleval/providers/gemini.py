"""The generateContent dialect of Google's Gemini API."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.http import HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import error_in_body
from pytest_tooleval.providers.presets import Preset
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, ToolChoice, ToolSpec
from pytest_tooleval.providers.tool_adaptation import ToolRules
from pytest_tooleval.providers.tool_names import NameRule
from pytest_tooleval.providers.tool_schemas import SchemaRules
from pytest_tooleval.providers.wire import (
    CallIds,
    broken,
    decode_arguments,
    offered_name,
    token_count,
    unreadable_call,
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

Role: TypeAlias = Literal["user", "model"]

TOOL_RULES = ToolRules(
    names=NameRule(characters="A-Za-z0-9_.:-", first="A-Za-z_"),
    schemas=SchemaRules(
        references=False,
        keywords=frozenset(
            {
                "type",
                "format",
                "title",
                "description",
                "enum",
                "items",
                "prefixItems",
                "minItems",
                "maxItems",
                "minimum",
                "maximum",
                "anyOf",
                "properties",
                "additionalProperties",
                "required",
            }
        ),
        formats=frozenset({"date-time", "date", "time"}),
        plain_values=True,
    ),
)
"""What `parametersJsonSchema` is documented to hear.

The older `parameters` is a smaller subset of OpenAPI that cannot say "a text or null" or "one of the numbers 1, 2",
and refuses the whole request for the first word that it does not know.
"""

_MODES: Mapping[ToolChoice, str] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
_REFUSALS = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"}
)
_COMPLETE = frozenset({"STOP", "MAX_TOKENS"})
_PARTS, _MALFORMED_CALL = "parts", "malformedCall"


class Gemini:
    """The dialect of `POST {base}/models/NAME:generateContent`."""

    def __init__(self, model: str, account: Account) -> None:
        self.url = account.endpoint(f"{_resource(model)}:generateContent")
        self.headers = {"x-goog-api-key": account.key} if account.key else {}

    def build_request(self, request: ChatRequest) -> JsonObject:
        """Return the body of a request; see the function of this name."""
        return build_request(request)

    def parse_reply(self, body: JsonObject, request: ChatRequest) -> AssistantMessage:
        """Return the reply in an answer; see the function of this name."""
        return parse_reply(body, request)


def open_provider(preset: Preset, account: Account, settings: ProviderSettings) -> DialectProvider:
    """Return the provider of a preset in this dialect; nothing is sent yet."""
    del preset
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return DialectProvider(Gemini(settings.model.strip(), account), transport, TOOL_RULES)


def _resource(model: str) -> str:
    """Return a model's name as a path: `tunedModels/mine` is one already, `gemini-x` stands below `models`."""
    name = quote(model.strip("/"))
    return name if "/" in name else f"models/{name}"


def build_request(request: ChatRequest) -> JsonObject:
    """Return the body of a generateContent request."""
    sampling = request.sampling
    settings = {
        "temperature": sampling.temperature,
        "maxOutputTokens": sampling.max_output_tokens,
        "seed": sampling.seed,
    }
    optional = {
        "systemInstruction": {"parts": [{"text": request.system}]} if request.system else None,
        "tools": [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        if request.tools
        else None,
        "toolConfig": _tool_config(sampling.tool_choice) if request.tools else None,
        "generationConfig": {name: value for name, value in settings.items() if value is not None},
    }
    body: JsonObject = {"contents": _contents(request.messages)}
    return body | {name: value for name, value in optional.items() if value}


def _sent_tools(tools: Sequence[ToolSpec]) -> list[JsonObject]:
    return [{"functionDeclarations": list(map(_declaration, tools))}] if tools else []


def _declaration(tool: ToolSpec) -> JsonObject:
    """Return the declaration of a tool; one without arguments has no schema, an empty object is refused."""
    schema = {"parametersJsonSchema": tool.parameters} if tool.parameters.get("properties") else {}
    return {"name": tool.name, "description": tool.description, **schema}


def _tool_config(choice: ToolChoice) -> JsonObject:
    return {"functionCallingConfig": {"mode": _MODES[choice]}}


def _contents(messages: Sequence[Message]) -> list[JsonObject]:
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    with_ids = frozenset(call_id for reply in replies for call_id in _ids_given(reply))
    as_text = frozenset(call.id for reply in replies if _MALFORMED_CALL in reply.opaque for call in reply.calls)
    said = [(_role(message), list(_sent_parts(message, with_ids, as_text))) for message in messages]
    turns = itertools.groupby([turn for turn in said if turn[1]], key=lambda turn: turn[0])
    return [{"role": role, "parts": [part for _, parts in group for part in parts]} for role, group in turns]


def _role(message: Message) -> Role:
    return "model" if isinstance(message, AssistantMessage) else "user"


def _ids_given(reply: AssistantMessage) -> Iterator[str]:
    """Yield the ids of the calls to which the API gave one: only they and their results are sent with one."""
    parts = [part for part in reply.opaque.get(_PARTS, ()) if "functionCall" in part]
    return (call.id for call, part in zip(reply.calls, parts, strict=False) if part["functionCall"].get("id"))


def _sent_parts(message: Message, with_ids: Collection[str], as_text: Collection[str]) -> Iterator[JsonObject]:
    match message:
        case UserMessage(text):
            yield {"text": text}
        case ToolMessage() if message.call_id in as_text:
            yield {"text": message.text}
        case ToolMessage():
            yield _sent_result(message, with_ids)
        case AssistantMessage():
            yield from _sent_reply(message, with_ids)


def _sent_result(result: ToolMessage, with_ids: Collection[str]) -> JsonObject:
    response = {"error" if result.is_error else "output": result.text}
    named = {"id": result.call_id} if result.call_id in with_ids else {}
    return {"functionResponse": {**named, "name": result.name, "response": response}}


def _sent_reply(reply: AssistantMessage, with_ids: Collection[str]) -> Iterator[JsonObject]:
    """Yield the parts of a reply as they came, each signature with its part, its calls among them."""
    calls = iter(() if _MALFORMED_CALL in reply.opaque else reply.calls)
    for part in reply.opaque.get(_PARTS, [{"text": reply.text}] if reply.text else []):
        if "functionCall" in part:
            for call in itertools.islice(calls, 1):
                yield {**part, "functionCall": {**part["functionCall"], **_sent_call(call, with_ids)}}
        else:
            yield part
    for call in calls:
        yield {"functionCall": _sent_call(call, with_ids)}


def _sent_call(call: ToolCall, with_ids: Collection[str]) -> JsonObject:
    named = {"id": call.id} if call.id in with_ids else {}
    return {**named, "name": call.name, "args": call.arguments or {}}


def parse_reply(body: JsonObject, request: ChatRequest) -> AssistantMessage:
    """Return the reply in a generateContent answer.

    A call that the API could not read (MALFORMED_FUNCTION_CALL) or that was not allowed (UNEXPECTED_TOOL_CALL) is
    the model's doing: it is a call without arguments, of the tool that the API's message names.

    Args:
        body: the decoded answer.
        request: what was asked; its call ids are not used again, its tools tell names from namespaces.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient).

    """
    body = well_formed(body)
    error = error_in_body(body)
    if error is not None:
        raise error
    usage = _usage(body.get("usageMetadata"))
    candidate = _candidate(body)
    if candidate is None:
        return AssistantMessage(text=_blocked(body), finish="refusal", usage=usage)
    said = candidate.get("finishReason")
    reason = said if isinstance(said, str) else None
    parts = _parts(candidate)
    if reason in _MALFORMED:
        return _malformed(candidate, request, usage)
    if not parts and reason not in _COMPLETE | _REFUSALS:
        raise broken(f"it has no content and its finishReason is {reason!r}")
    text = "".join(part["text"] for part in parts if _is_answer(part))
    if reason in _REFUSALS:
        return AssistantMessage(text=text or _message(candidate), finish="refusal", usage=usage)
    return AssistantMessage(
        text=text,
        calls=_calls(parts, request),
        finish="length" if reason == "MAX_TOKENS" else "stop",
        usage=usage,
        opaque={_PARTS: [_kept(part) for part in parts if _says_something(part)]},
    )


def _candidate(body: JsonObject) -> JsonObject | None:
    """Return the first candidate, or None when the prompt was refused."""
    candidates = body.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return candidates[0]
    if not candidates and _blocked(body):
        return None
    raise broken("it has no candidates")


def _blocked(body: JsonObject) -> str:
    """Return why the prompt was refused, or an empty text."""
    feedback = body.get("promptFeedback")
    if not isinstance(feedback, dict) or not feedback.get("blockReason"):
        return ""
    said = feedback.get("blockReasonMessage")
    return said if isinstance(said, str) and said else f"the prompt was blocked: {feedback['blockReason']}"


def _parts(candidate: JsonObject) -> list[JsonObject]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if parts is not None and not (isinstance(parts, list) and all(isinstance(part, dict) for part in parts)):
        raise broken("its parts are no list of objects")
    return parts or []


def _message(candidate: JsonObject) -> str:
    message = candidate.get("finishMessage")
    return message if isinstance(message, str) else ""


def _is_answer(part: JsonObject) -> bool:
    return isinstance(part.get("text"), str) and not part.get("thought")


def _says_something(part: JsonObject) -> bool:
    """Whether a part can be sent back: one with an empty text only when something else is in it."""
    return any(value not in ("", None) for key, value in part.items() if key != "thought")


def _kept(part: JsonObject) -> JsonObject:
    """Return what is kept of a part: of a call not its arguments, since the call is kept elsewhere."""
    if "functionCall" not in part:
        return part
    function = {key: value for key, value in part["functionCall"].items() if key not in ("name", "args")}
    return {**part, "functionCall": function}


def _calls(parts: Sequence[JsonObject], request: ChatRequest) -> tuple[ToolCall, ...]:
    ids = CallIds(request.messages)
    offered = frozenset(tool.name for tool in request.tools)
    return tuple(_call(part["functionCall"], ids, offered) for part in parts if "functionCall" in part)


def _call(function: Any, ids: CallIds, offered: Collection[str]) -> ToolCall:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise broken("one of its function calls has no name")
    arguments, raw_arguments = decode_arguments(function.get("args"))
    return ToolCall(
        id=ids.take(function.get("id")),
        name=offered_name(function["name"], offered),
        arguments=arguments,
        raw_arguments=raw_arguments,
        raw_name=function["name"],
    )


def _malformed(candidate: JsonObject, request: ChatRequest, usage: Usage | None) -> AssistantMessage:
    """Return a reply with the one call that the API could not read.

    In the history it stands as text: as a call it would need the signature that it never got.
    """
    said = _message(candidate) or str(candidate["finishReason"])
    call = unreadable_call(said, request.messages, frozenset(tool.name for tool in request.tools))
    return AssistantMessage(calls=(call,), usage=usage, opaque={_MALFORMED_CALL: True, _PARTS: [{"text": said}]})


def _usage(usage: Any) -> Usage | None:
    """Return the usage; the API counts cached tokens within the prompt, and thoughts beside the candidates."""
    prompt, output = token_count(usage, "promptTokenCount"), token_count(usage, "candidatesTokenCount")
    thoughts, total = token_count(usage, "thoughtsTokenCount"), token_count(usage, "totalTokenCount")
    if prompt is output is thoughts is total is None:
        return None
    cached = token_count(usage, "cachedContentTokenCount") or 0
    return Usage(
        input=max(0, (prompt or 0) - cached) + (token_count(usage, "toolUsePromptTokenCount") or 0),
        cache_read=cached,
        output=(output or 0) + (thoughts or 0),
        reasoning=thoughts or 0,
        reported_total=total,
    )
