"""Tools as one API takes them: names, arguments and schemas on the way there, real names on the way back."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pytest_tooleval.providers.provider import ChatRequest, ToolSpec
from pytest_tooleval.providers.tool_names import NameRule, ToolNames, names_to_send
from pytest_tooleval.providers.tool_schemas import SchemaRules, adapted_schema
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage


@dataclass(frozen=True, slots=True)
class ToolRules:
    """What an API takes as a tool; by default what OpenAI's function tools may be.

    Attributes:
        names: the names of tools.
        arguments: the names of a tool's arguments, or None when any will do.
        schemas: the schema of a tool's arguments.

    """

    names: NameRule = field(default_factory=NameRule)
    arguments: NameRule | None = None
    schemas: SchemaRules = field(default_factory=SchemaRules)


class _Offer:
    """Offered tools as the key of a cache: the same texts with the very same schemas, which cannot be hashed."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self.tools = tools  # kept, so that no other schema gets the id of one that is gone
        self._key = tuple((tool.name, tool.description, id(tool.parameters)) for tool in tools)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Offer) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class _AdaptedOffer(NamedTuple):
    """What an API is told of the offered tools in every request.

    Attributes:
        names: what they are called.
        tools: what is sent of them.
        arguments: what the arguments of each tool are called, by its real name, where the API is particular.
        losses: what the schemas do not say any more.

    """

    names: ToolNames
    tools: tuple[ToolSpec, ...]
    arguments: Mapping[str, Mapping[str, str]]
    losses: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def _adapted_offer(offer: _Offer, rules: ToolRules) -> _AdaptedOffer:
    """Return adapted tools: the cases of a suite are offered few different sets, in thousands of requests."""
    names = ToolNames([tool.name for tool in offer.tools], (), rules.names)
    tools: list[ToolSpec] = []
    arguments: dict[str, dict[str, str]] = {}
    losses: list[str] = []
    for tool in offer.tools:
        adapted = adapted_schema(tool.parameters, rules.schemas)
        losses += [f"{tool.name}: {loss}" for loss in adapted.losses]
        schema = adapted.schema
        if rules.arguments is not None:
            sent = names_to_send(schema["properties"], rules.arguments)
            arguments[tool.name] = sent
            schema = _with_arguments(schema, sent)
        tools.append(ToolSpec(names.sent(tool.name), tool.description, schema))
    return _AdaptedOffer(names, tuple(tools), arguments, tuple(losses))


class AdaptedTools:
    """One request's tools as an API takes them.

    Attributes:
        request: the request to send, its offered tools, calls and results renamed.
        losses: what the schemas do not say any more, each with the tool's name and the place.

    """

    def __init__(self, request: ChatRequest, rules: ToolRules) -> None:
        offer = _adapted_offer(_Offer(tuple(request.tools)), rules)
        self._names = offer.names.also(_mentioned(request.messages))
        self._arguments = offer.arguments
        self.losses = offer.losses
        messages = tuple(map(self._sent_message, request.messages))
        self.request = replace(request, tools=offer.tools, messages=messages)

    def restored(self, reply: AssistantMessage) -> AssistantMessage:
        """Return a reply to `request` with the real names of tools and arguments."""
        return replace(reply, calls=tuple(map(self._real_call, reply.calls)))

    def _sent_message(self, message: Message) -> Message:
        if isinstance(message, ToolMessage):
            return replace(message, name=self._names.sent(message.name))
        if isinstance(message, AssistantMessage):
            return replace(message, calls=tuple(map(self._sent_call, message.calls)))
        return message

    def _sent_call(self, call: ToolCall) -> ToolCall:
        sent = self._arguments.get(call.name, {})
        return replace(call, name=self._names.sent(call.name), arguments=_renamed(call.arguments, sent))

    def _real_call(self, call: ToolCall) -> ToolCall:
        name = self._names.real(call.name)
        real = {sent: real for real, sent in self._arguments.get(name, {}).items()}
        arguments = _renamed(call.arguments, real)
        return replace(call, name=name, raw_name=self._real_raw_name(call, name), arguments=arguments)

    def _real_raw_name(self, call: ToolCall, name: str) -> str:
        """Return the name as the model gave it, with the real one in place of the one it was told."""
        raw = call.raw_name or call.name
        told = self._names.sent(name)
        return raw.removesuffix(told) + name if raw.endswith(told) else raw


def _mentioned(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ToolMessage):
            yield message.name
        elif isinstance(message, AssistantMessage):
            yield from (call.name for call in message.calls)


def _renamed(arguments: dict[str, Any] | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    if arguments is None or not names:
        return arguments
    return {names.get(name, name): value for name, value in arguments.items()}


def _with_arguments(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    properties = {names[name]: value for name, value in schema["properties"].items()}
    required = [names.get(name, name) for name in schema.get("required", ())]
    return {**schema, "properties": properties, **({"required": required} if required else {})}
