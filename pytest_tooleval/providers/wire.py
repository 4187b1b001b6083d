"""What the wire dialects share: clean text, numbers, arguments, call ids, names that models give."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall

MOST_TOKENS = 10**12
"""More than any reply can have; a larger count is no count, and sums of such would not fit a float."""

MOST_LEVELS = 100
"""How deep arguments may be nested: no tool asks for more, and every part of a run can hold so many."""

_LAYERS = 3
_WORD = re.compile(r"[A-Za-z_][\w.:-]*", re.ASCII)
_CALLED = re.compile(r"(?<![\w.:-])([A-Za-z_][\w.:-]*)\(", re.ASCII)
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)(?:\.|::?|/)")


def broken(what: str) -> ProviderError:
    """Return the error of an answer that breaks the protocol; another attempt may bring a sound one."""
    return ProviderError(f"the answer breaks the protocol: {what}", transient=True)


def token_count(counts: Any, key: str) -> int | None:
    """Return a number of tokens from a usage object, or None where it states none that can be one."""
    value = counts.get(key) if isinstance(counts, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS else None


def well_formed(value: Any) -> Any:
    """Return a JSON value with every lone surrogate in its texts and keys replaced by U+FFFD."""
    if isinstance(value, str):
        return _well_formed_text(value)
    if isinstance(value, list):
        return [well_formed(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed(item) for key, item in value.items()}
    return value


def _well_formed_text(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decode_arguments(raw: Any) -> tuple[dict[str, Any] | None, str]:
    """Decode the arguments of a tool call.

    Args:
        raw: a JSON object, its text, its text encoded once more, or nothing (empty, blank, null).

    Returns:
        The object (None when `raw` is not one) and the arguments as text as they came.

    """
    if raw is None:
        return {}, ""
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    return _object_in(text), _well_formed_text(text)


def _object_in(text: str) -> dict[str, Any] | None:
    value: Any = text
    try:
        for _ in range(_LAYERS):
            if isinstance(value, str):
                value = _loads_strictly(value) if value.strip() else {}
        if not isinstance(value, dict | None) or is_nested_deeper(value, MOST_LEVELS):
            return None
        arguments: dict[str, Any] = well_formed(value or {})
    except (ValueError, RecursionError):
        return None
    return arguments


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects of a JSON value stand in each other on more than so many levels."""
    layer = [value]
    for _ in range(levels):
        layer = [member for each in layer for member in _members(each)]
        if not layer:
            return False
    return any(isinstance(each, dict | list) for each in layer)


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def is_double_encoded(call: ToolCall) -> bool:
    """Whether the model's arguments came as a JSON string that holds the JSON object."""
    return call.arguments is not None and call.raw_arguments.lstrip().startswith('"')


def encode_arguments(call: ToolCall) -> str:
    """Return the arguments as the one JSON text to send back: always an object, encoded once.

    The model's own text is kept where it is one already; `{}` stands for what is not an object.
    """
    if call.arguments is None:
        return "{}"
    try:
        if _loads_strictly(call.raw_arguments) == call.arguments:
            return call.raw_arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps(call.arguments, ensure_ascii=False)


def _loads_strictly(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond the range of numbers")
    return number


class CallIds:
    """Gives the calls of one reply ids that are unique in the whole conversation.

    The provider's own id is kept where it is new and may be sent back; else one is made that every provider takes.

    Args:
        earlier: the conversation so far.
        taken: what an id must match to be taken back, or None when any will do.

    """

    def __init__(self, earlier: Sequence[Message], taken: re.Pattern[str] | None = None) -> None:
        replies = [message for message in earlier if isinstance(message, AssistantMessage)]
        self._turn = len(replies)
        self._used = {call.id for reply in replies for call in reply.calls}
        self._taken = taken
        self._position = 0

    def take(self, given: Any) -> str:
        """Return the id of the next call, for which the provider gave `given` (None when nothing)."""
        own = str(given).strip() if isinstance(given, str | int) else ""
        fresh = own if self._may_be_kept(own) else next(self._made())
        self._position += 1
        self._used.add(fresh)
        return fresh

    def _may_be_kept(self, own: str) -> bool:
        return bool(own) and own not in self._used and (self._taken is None or bool(self._taken.fullmatch(own)))

    def _made(self) -> Iterator[str]:
        made = (made_id(self._turn, self._position, salt) for salt in itertools.count())
        return (candidate for candidate in made if candidate not in self._used)


def made_id(turn: int, position: int, salt: int = 0) -> str:
    """Return nine letters and digits, always the same for the same place in a conversation."""
    return hashlib.sha256(f"{turn}:{position}:{salt}".encode()).hexdigest()[:9]


def unreadable_call(said: str, earlier: Sequence[Message], offered: Collection[str]) -> ToolCall:
    """Return the call that stands for one which an API could not read.

    Args:
        said: what the API says about it, or what the model wrote.
        earlier: the transcript so far, whose call ids are not used again.
        offered: names of the tools; the one that `said` is about gives the call its name.

    """
    name = _named_tool(said, offered)
    return ToolCall(CallIds(earlier).take(None), name, None, said, name)


def _named_tool(said: str, offered: Collection[str]) -> str:
    """Return the tool that a message is about: an offered one, else what looks like a call."""
    called = [offered_name(name, offered) for name in _CALLED.findall(said) if name != "print"]
    mentioned = [offered_name(word.rstrip(".:-"), offered) for word in _WORD.findall(said)]
    known = (name for name in (*called, *mentioned) if name in offered)
    return next(known, called[0] if called else "malformed_function_call")


def offered_name(raw: str, offered: Iterable[str]) -> str:
    """Return the offered name that `raw` means.

    A namespace that models put before names (`functions.`, `tools.`, `default_api:`) is removed
    where the rest is offered; any other name is returned as it is.
    """
    names = frozenset(offered)
    namespace = _NAMESPACE.match(raw)
    if raw in names or namespace is None:
        return raw
    rest = raw[namespace.end() :]
    return rest if rest in names else raw
