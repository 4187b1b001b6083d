"""Cassettes: the requests and replies of one run as a JSON file that people can read and compare line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from pytest_tooleval.providers.provider import Sampling, ToolSpec
from pytest_tooleval.transcript import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

FORMAT = "tooleval-cassette/v1"

_JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Label:
    """Which run a cassette is of: the case's id, the target's name, the 1-based trial."""

    case: str
    target: str
    trial: int = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """What a request says beside the conversation; mostly the same in every request of a run."""

    system: str
    sampling: Sampling
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, told as the difference to the one before.

    Attributes:
        frame: system prompt, sampling and tools.
        dropped: how many messages at the end of the conversation so far, the last reply included, it does not
            hold any more.
        messages: those that it holds instead, or in addition.

    """

    frame: Frame
    dropped: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its reply."""

    asked: Asked
    reply: AssistantMessage


@dataclass(frozen=True, slots=True)
class Cassette:
    """The exchanges of one run in their order."""

    label: Label
    exchanges: tuple[Exchange, ...]


def cassette_text(cassette: Cassette) -> str:
    """Return a cassette as strict JSON; the same cassette gives the same text.

    Raises:
        TypeError: something in it is no JSON value.
        ValueError: likewise, such as a number that is not finite.
        RecursionError: something in it is nested too deep.

    """
    label = cassette.label
    document = {
        "format": FORMAT,
        "case": label.case,
        "target": label.target,
        "trial": label.trial,
        "exchanges": list(_encoded_exchanges(cassette.exchanges)),
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _encoded_exchanges(exchanges: Sequence[Exchange]) -> Iterator[_JsonObject]:
    before: _JsonObject = {}
    for exchange in exchanges:
        asked = exchange.asked
        frame = _encoded_frame(asked.frame)
        changed = {key: value for key, value in frame.items() if key not in before or _differ(before[key], value)}
        dropped = {"dropped": asked.dropped} if asked.dropped else {}
        messages = [_encoded_message(message) for message in asked.messages]
        yield {"request": {**changed, **dropped, "messages": messages}, "reply": _encoded_reply(exchange.reply)}
        before = frame


def _differ(left: Any, right: Any) -> bool:
    """Whether two JSON values are spelled differently; Python takes 1, 1.0 and True for equal."""
    return json.dumps(left) != json.dumps(right)


def _encoded_frame(frame: Frame) -> _JsonObject:
    return {
        "system": _lines(frame.system),
        "sampling": {key: value for key, value in _members(frame.sampling) if value is not None},
        "tools": [
            {
                "name": tool.name,
                "description": _lines(tool.description),
                "parameters": dict(tool.parameters),
            }
            for tool in frame.tools
        ],
    }


def _encoded_message(message: Message) -> _JsonObject:
    match message:
        case UserMessage(text):
            return {"role": "user", "text": _lines(text)}
        case ToolMessage():
            encoded = {"role": "tool", "call_id": message.call_id, "name": message.name}
            is_error = {"is_error": True} if message.is_error else {}
            return {**encoded, **is_error, "text": _lines(message.text)}
        case AssistantMessage():
            return {"role": "assistant", **_encoded_reply(message)}


def _encoded_reply(reply: AssistantMessage) -> _JsonObject:
    calls = [_encoded_call(call) for call in reply.calls]
    return {
        "text": _lines(reply.text),
        **({"calls": calls} if calls else {}),
        "finish": reply.finish,
        "usage": None if reply.usage is None else _encoded_usage(reply.usage),
        **({"opaque": dict(reply.opaque)} if reply.opaque else {}),
        "attempts": reply.attempts,
        **({"notes": list(reply.notes)} if reply.notes else {}),
    }


def _encoded_usage(usage: Usage) -> _JsonObject:
    return {key: value for key, value in _members(usage) if not (key == "reported_total" and value is None)}


def _encoded_call(call: ToolCall) -> _JsonObject:
    encoded: _JsonObject = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.raw_arguments != usual_text(call.arguments):
        encoded["raw"] = call.raw_arguments
    if call.raw_name != call.name:
        encoded["raw_name"] = call.raw_name
    if call.extra:
        encoded["extra"] = dict(call.extra)
    return encoded


def usual_text(arguments: Mapping[str, Any] | None) -> str:
    """Return the text of arguments that need not be spelled out in the file."""
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _members(value: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(value, field.name)) for field in fields(value)]


def _lines(text: str) -> str | list[str]:
    """Return a text of several lines as the list of them, so that a difference shows the lines that changed."""
    return text.split("\n") if "\n" in text else text
