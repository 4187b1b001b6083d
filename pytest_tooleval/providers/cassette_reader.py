"""Cassettes read back: strictly, and every fault with its line and place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

from pytest_tooleval.cases.jsontext import Document, decode_document, pointer_text, read_document
from pytest_tooleval.cases.schema import describe
from pytest_tooleval.errors import CaseError, Problem, nearest
from pytest_tooleval.providers.cassette import FORMAT, Asked, Cassette, Exchange, Frame, Label, usual_text
from pytest_tooleval.providers.provider import Sampling, ToolChoice, ToolSpec
from pytest_tooleval.transcript import (
    AssistantMessage,
    Finish,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

_FRAME_KEYS = ("system", "sampling", "tools")
_COUNTS = tuple(field.name for field in fields(Usage) if field.name != "reported_total")

_T = TypeVar("_T")
_Path: TypeAlias = tuple[str | int, ...]


def read_cassette(path: Path, shown: Path) -> Cassette:
    """Read a cassette.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        CaseError: it cannot be read, is no strict JSON, of another version or damaged; names line and place.

    """
    return _decoded(read_document(path, shown))


def decode_cassette(text: str, shown: Path) -> Cassette:
    """Return the cassette whose text this is; raises what `read_cassette` raises."""
    return _decoded(decode_document(text, shown))


class _DamageError(Exception):
    """A value that is not what it has to be."""

    def __init__(self, path: _Path, message: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class _Found:
    """A value of the file and where it stands."""

    value: Any
    path: _Path = ()

    def other_than(self, expected: str) -> _DamageError:
        return _DamageError(self.path, f"found {describe(self.value)}; expected {expected}")

    def members(self, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, _Found]:
        value = self.mapping()
        known = (*required, *optional)
        for key in value:
            if key not in known:
                hint = nearest(key, known) or f"; known are: {', '.join(known)}"
                raise _DamageError((*self.path, key), f"unknown key {key!r}{hint}")
        for key in required:
            if key not in value:
                raise _DamageError(self.path, f"the key {key!r} is missing")
        return {key: _Found(member, (*self.path, key)) for key, member in value.items()}

    def mapping(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.other_than("an object")
        return self.value

    def items(self, item: Callable[[_Found], _T]) -> tuple[_T, ...]:
        if not isinstance(self.value, list):
            raise self.other_than("a list")
        return tuple(item(_Found(each, (*self.path, index))) for index, each in enumerate(self.value))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.other_than("a string")
        return self.value

    def lines(self) -> str:
        if isinstance(self.value, list):
            return "\n".join(self.items(_Found.text))
        if not isinstance(self.value, str):
            raise self.other_than("a string, or a list of lines")
        return self.value

    def whole(self, least: int | None = None) -> int:
        is_whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        if not is_whole or (least is not None and self.value < least):
            raise self.other_than("a whole number" if least is None else f"a whole number of at least {least}")
        return int(self.value)

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.other_than("a number")
        return self.value

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.other_than("true or false")
        return self.value

    def one_of(self, known: Sequence[str]) -> Any:
        if self.value not in known:
            raise self.other_than(f"one of: {', '.join(known)}")
        return self.value


def _decoded(document: Document) -> Cassette:
    value = None if document.is_list else document.elements[0].value
    try:
        return _decoded_cassette(_Found(value))
    except _DamageError as damage:
        problem = Problem(
            document.path, str(damage), document.line_of(damage.path), pointer_text(damage.path) or None
        )
        raise CaseError([problem]) from None


def _decoded_cassette(found: _Found) -> Cassette:
    version = found.value.get("format") if isinstance(found.value, dict) else None
    if version is None:
        raise _DamageError((), f"is no cassette: it is no object with the 'format' {FORMAT!r}")
    if version != FORMAT:
        message = f"is a cassette of another version: {describe(version)}, expected {FORMAT!r}"
        raise _DamageError(("format",), message)
    keys = found.members(("format", "case", "target", "trial", "exchanges"))
    label = Label(keys["case"].text(), keys["target"].text(), keys["trial"].whole(least=1))
    return Cassette(label, tuple(_decoded_exchanges(keys["exchanges"])))


def _decoded_exchanges(found: _Found) -> Iterator[Exchange]:
    frame: Frame | None = None
    for exchange in found.items(lambda each: each.members(("request", "reply"))):
        required = ("messages",) if frame else ("messages", *_FRAME_KEYS)
        request = exchange["request"].members(required, ("dropped", *_FRAME_KEYS))
        frame = _decoded_frame(request, frame)
        asked = Asked(
            frame=frame,
            dropped=request["dropped"].whole(least=0) if "dropped" in request else 0,
            messages=request["messages"].items(_decoded_message),
        )
        yield Exchange(asked, _decoded_reply(exchange["reply"]))


def _decoded_frame(request: Mapping[str, _Found], before: Frame | None) -> Frame:
    """Return the frame that a request gives, or that of the request before where it gives nothing."""
    return Frame(
        request["system"].lines() if "system" in request or before is None else before.system,
        _decoded_sampling(request["sampling"]) if "sampling" in request or before is None else before.sampling,
        request["tools"].items(_decoded_tool) if "tools" in request or before is None else before.tools,
    )


def _decoded_sampling(found: _Found) -> Sampling:
    keys = found.members(("tool_choice",), ("temperature", "max_output_tokens", "seed"))
    return Sampling(
        tool_choice=keys["tool_choice"].one_of(get_args(ToolChoice)),
        temperature=keys["temperature"].number() if "temperature" in keys else None,
        max_output_tokens=keys["max_output_tokens"].whole() if "max_output_tokens" in keys else None,
        seed=keys["seed"].whole() if "seed" in keys else None,
    )


def _decoded_tool(found: _Found) -> ToolSpec:
    keys = found.members(("name", "description", "parameters"))
    return ToolSpec(keys["name"].text(), keys["description"].lines(), keys["parameters"].mapping())


def _decoded_message(found: _Found) -> Message:
    role = _Found(found.mapping().get("role"), (*found.path, "role")).one_of(("user", "tool", "assistant"))
    if role == "assistant":
        return _decoded_reply(found, ("role",))
    if role == "user":
        return UserMessage(found.members(("role", "text"))["text"].lines())
    keys = found.members(("role", "call_id", "name", "text"), ("is_error",))
    is_error = keys["is_error"].truth() if "is_error" in keys else False
    return ToolMessage(keys["call_id"].text(), keys["name"].text(), keys["text"].lines(), is_error)


def _decoded_reply(found: _Found, also: Sequence[str] = ()) -> AssistantMessage:
    keys = found.members(("text", "finish", "usage", "attempts", *also), ("calls", "opaque", "notes"))
    return AssistantMessage(
        text=keys["text"].lines(),
        calls=keys["calls"].items(_decoded_call) if "calls" in keys else (),
        finish=keys["finish"].one_of(get_args(Finish)),
        usage=None if keys["usage"].value is None else _decoded_usage(keys["usage"]),
        opaque=keys["opaque"].mapping() if "opaque" in keys else {},
        attempts=keys["attempts"].whole(least=0),
        notes=keys["notes"].items(_Found.text) if "notes" in keys else (),
    )


def _decoded_usage(found: _Found) -> Usage:
    keys = found.members(_COUNTS, ("reported_total",))
    return Usage(**{key: count.whole() for key, count in keys.items()})


def _decoded_call(found: _Found) -> ToolCall:
    keys = found.members(("id", "name", "arguments"), ("raw", "raw_name", "extra"))
    arguments = None if keys["arguments"].value is None else keys["arguments"].mapping()
    return ToolCall(
        id=keys["id"].text(),
        name=keys["name"].text(),
        arguments=arguments,
        raw_arguments=keys["raw"].text() if "raw" in keys else usual_text(arguments),
        raw_name=keys["raw_name"].text() if "raw_name" in keys else keys["name"].text(),
        extra=keys["extra"].mapping() if "extra" in keys else {},
    )
