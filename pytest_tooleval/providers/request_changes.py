"""What differs between a recorded request and the one that a run makes now, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_tooleval.measures.matching import equal
from pytest_tooleval.measures.text import cut_pair
from pytest_tooleval.providers.account import REDACTED
from pytest_tooleval.providers.cassette import Frame, Label
from pytest_tooleval.providers.provider import Sampling, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, Message, ToolMessage, UserMessage

_SHOWN_CHARS = 60


def label_changes(recorded: Label, now: Label) -> Iterator[str]:
    """Yield what a cassette is of that the run is not: another case, model or trial."""
    if recorded.case != now.case:
        yield f"case changed from {recorded.case} to {now.case}"
    if recorded.target != now.target:
        yield _target_change(recorded.target, now.target)
    if recorded.trial != now.trial:
        yield f"trial changed from {recorded.trial} to {now.trial}"


def _target_change(recorded: str, now: str) -> str:
    provider, _, model = recorded.partition(":")
    provider_now, _, model_now = now.partition(":")
    if provider == provider_now:
        return f"model changed from {model or 'none'} to {model_now or 'none'}"
    return f"target changed from {recorded} to {now}"


def frame_changes(recorded: Frame, now: Frame) -> Iterator[str]:
    """Yield each difference in system prompt, sampling and tools; the order of a schema's keys is none."""
    if not _same(recorded.system, now.system):
        yield "system prompt changed"
    yield from _sampling_changes(recorded.sampling, now.sampling)
    yield from _tool_changes(recorded.tools, now.tools)


def _sampling_changes(recorded: Sampling, now: Sampling) -> Iterator[str]:
    values = asdict(now)
    for name, value in asdict(recorded).items():
        if value != values[name]:
            yield f"{name.replace('_', ' ')} changed from {_setting(value)} to {_setting(values[name])}"


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _tool_changes(recorded: Sequence[ToolSpec], now: Sequence[ToolSpec]) -> Iterator[str]:
    before = {tool.name: tool for tool in recorded}
    after = {tool.name: tool for tool in now}
    yield from (f"tool {name} removed" for name in before if name not in after)
    yield from (f"tool {name} added" for name in after if name not in before)
    kept = [name for name in before if name in after]
    for name in kept:
        if not _same(before[name].description, after[name].description):
            yield f"tool {name}: description changed"
        if not _same(before[name].parameters, after[name].parameters):
            yield f"schema of {name} changed"
    if kept != [name for name in after if name in before]:
        yield "order of tools changed"


def message_changes(
    recorded: Sequence[Message], now: Sequence[Message], before: Sequence[Message], redact: Callable[[str], str]
) -> Iterator[str]:
    """Yield each difference in the messages that a request adds.

    Args:
        recorded: those of the recording, where `[redacted]` stands for any text.
        now: those of the run.
        before: the messages of the run that stand before them.
        redact: takes secrets out of what is shown.

    """
    turn = sum(isinstance(message, AssistantMessage) for message in before)
    if len(recorded) != len(now):
        yield f"after turn {turn} there are {len(now)} messages where {len(recorded)} were recorded"
        return
    for index, (one, other) in enumerate(zip(recorded, now, strict=True)):
        turn += isinstance(other, AssistantMessage)
        if type(one) is not type(other):
            yield f"a message after turn {turn} is of another kind"
        elif not _same(asdict(one), asdict(other)):
            is_first = not before and index == 0
            yield _changed_message(other, turn, is_first=is_first) + _texts(redact(one.text), redact(other.text))


def _changed_message(message: Message, turn: int, *, is_first: bool) -> str:
    match message:
        case UserMessage():
            return "task changed" if is_first else f"user message after turn {turn} changed"
        case ToolMessage(name=name):
            return f"result of {name} (turn {turn}) changed"
        case AssistantMessage():
            return f"reply of turn {turn} changed"


def _texts(recorded: str, now: str) -> str:
    if recorded == now:
        return ""
    was, is_now = cut_pair(recorded, now, _SHOWN_CHARS)
    return f" from {was!r} to {is_now!r}"


def _same(recorded: Any, now: Any) -> bool:
    """Whether two JSON values are equal but for what was redacted in the recorded one."""
    if isinstance(recorded, str) and isinstance(now, str):
        return recorded == now or (REDACTED in recorded and _fits(recorded.split(REDACTED), now))
    if isinstance(recorded, Mapping) and isinstance(now, Mapping):
        return recorded.keys() == now.keys() and all(_same(recorded[key], now[key]) for key in recorded)
    if isinstance(recorded, list | tuple) and isinstance(now, list | tuple):
        return len(recorded) == len(now) and all(map(_same, recorded, now))
    return equal(recorded, now)


def _fits(pieces: Sequence[str], text: str) -> bool:
    """Whether a text consists of the pieces in their order, with anything between them."""
    first, *middle, last = pieces
    position, end = len(first), len(text) - len(last)
    if position > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
