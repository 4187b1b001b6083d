"""Tools as one API takes them: names, arguments and schemas on the way there, real names on the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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


class AdaptedTools:
    """One request's tools as an API takes them.

    Attributes:
        request: the request to send, its offered tools, calls and results renamed.
        losses: what the schemas do not say any more, each with the tool's name and the place.

    """

    def __init__(self, request: ChatRequest, rules: ToolRules) -> None:
        self._names = ToolNames([tool.name for tool in request.tools], _mentioned(request.messages), rules.names)
        self._arguments: dict[str, dict[str, str]] = {}
        self.losses: list[str] = []
        tools = tuple(self._sent_tool(tool, rules) for tool in request.tools)
        self.request = replace(request, tools=tools, messages=tuple(map(self._sent_message, request.messages)))

    def restored(self, reply: AssistantMessage) -> AssistantMessage:
        """Return a reply to `request` with the real names of tools and arguments."""
        return replace(reply, calls=tuple(map(self._real_call, reply.calls)))

    def _sent_tool(self, tool: ToolSpec, rules: ToolRules) -> ToolSpec:
        adapted = adapted_schema(tool.parameters, rules.schemas)
        self.losses += [f"{tool.name}: {loss}" for loss in adapted.losses]
        schema = adapted.schema
        if rules.arguments is not None:
            sent = names_to_send(schema["properties"], rules.arguments)
            self._arguments[tool.name] = sent
            schema = _with_arguments(schema, sent)
        return ToolSpec(self._names.sent(tool.name), tool.description, schema)

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
