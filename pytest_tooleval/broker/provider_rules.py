"""What the APIs of hosted models take as a tool: names and input schemas that make one of them refuse the request.

A selection: what the tools of real servers run into, each known from the API's own error message. It is about what
an API is sent; a client may well rewrite a name or a schema before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_tooleval.cases.jsontext import pointer_text
from pytest_tooleval.measures.text import cut

OPENAI, ANTHROPIC, GEMINI = "OpenAI", "Anthropic", "Gemini"
MOST_DESCRIPTION = 1024
"""Characters of a tool's description that OpenAI's Chat Completions take."""

NAME_PATTERNS: Mapping[str, str] = {
    OPENAI: r"^[a-zA-Z0-9_-]{1,64}$",
    ANTHROPIC: r"^[a-zA-Z0-9_-]{1,128}$",
    GEMINI: r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$",
}
"""What each provider takes as the name of a tool."""

PROPERTY_PATTERN = r"^[a-zA-Z0-9_.-]{1,64}$"
"""What Anthropic takes as the name of a parameter."""

Pointer: TypeAlias = tuple[str | int, ...]
_COMPOSITIONS = ("anyOf", "oneOf", "allOf")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_LISTS = (*_COMPOSITIONS, "prefixItems", "items")
_MOST_PLACES = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why some providers refuse a schema.

    Attributes:
        providers: who.
        what: what they refuse.
        fix: what to write instead.
        places: where in the schema, as JSON pointers.

    """

    providers: tuple[str, ...]
    what: str
    fix: str
    places: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Who refuses what, and where; of many places the first few."""
        verb = "refuses" if len(self.providers) == 1 else "refuse"
        shown = ", ".join(cut(place, 120) for place in self.places[:_MOST_PLACES])
        more = len(self.places) - _MOST_PLACES
        where = f" (at {shown}{f' and {more} more places' if more > 0 else ''})" if shown else ""
        return f"{' and '.join(self.providers)} {verb} {self.what}{where}"


def refusing_name(name: str) -> tuple[str, ...]:
    """Return the providers that refuse a tool of this name."""
    return tuple(provider for provider, pattern in NAME_PATTERNS.items() if not re.fullmatch(pattern, name))


def refusals(schema: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield what providers refuse in a tool's input schema, but for a missing `type` or `properties`."""
    yield from _root_refusals(schema)
    parts = list(subschemas(schema))
    for providers, what, fix, offends in _EVERYWHERE:
        places = tuple(pointer_text(pointer) or "/" for pointer, part in parts if offends(part))
        if places:
            yield Refusal(providers, what, fix, places)
    yield from _refused_properties(parts)


def subschemas(schema: Any) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """Yield each object that is a schema, the whole one first, with its place; values such as `enum` are none."""
    pending: list[tuple[Pointer, Any]] = [((), schema)]
    while pending:
        pointer, part = pending.pop()
        if isinstance(part, Mapping):
            yield pointer, part
            pending += reversed([((*pointer, *step), inner) for step, inner in _children(part)])


def _children(schema: Mapping[str, Any]) -> Iterator[tuple[Pointer, Any]]:
    for key in _NAMED:
        members = schema.get(key)
        if isinstance(members, Mapping):
            yield from (((key, name), member) for name, member in members.items())
    for key in _SINGLE:
        yield (key,), schema.get(key)
    for key in _LISTS:
        members = schema.get(key)
        if isinstance(members, list):
            yield from (((key, index), member) for index, member in enumerate(members))


def _root_refusals(schema: Mapping[str, Any]) -> Iterator[Refusal]:
    if schema.get("type", "object") != "object":
        what = f"the type {cut(str(schema['type']), 60)!r} at the top"
        yield Refusal((OPENAI, ANTHROPIC, GEMINI), what, "Make it an object whose properties are the arguments.")
    composed = [key for key in _COMPOSITIONS if key in schema]
    if composed:
        what = f"{' and '.join(map(repr, composed))} at the top"
        fix = "List every argument under 'properties', and say in the description which go together."
        yield Refusal((OPENAI, ANTHROPIC), what, fix)
    restricted = [key for key in ("enum", "not") if key in schema]
    if restricted:
        what = f"{' and '.join(map(repr, restricted))} at the top"
        yield Refusal((OPENAI,), what, "Restrict the single arguments instead.")
    if "$schema" in schema and not _is_2020_12(schema):
        what = "a schema that breaks draft 2020-12, whatever its '$schema' says"
        fix = "Write it in draft 2020-12: 'prefixItems' for a list of 'items', numbers for the exclusive bounds."
        yield Refusal((OPENAI, ANTHROPIC), what, fix)


def _is_2020_12(schema: Mapping[str, Any]) -> bool:
    import jsonschema_rs

    bare = {key: value for key, value in schema.items() if key != "$schema"}
    try:
        return bool(jsonschema_rs.meta.is_valid(bare))
    except (ValueError, OverflowError, RecursionError):
        return False


def _refused_properties(parts: list[tuple[Pointer, Mapping[str, Any]]]) -> Iterator[Refusal]:
    refused = [
        pointer_text((*pointer, "properties", name))
        for pointer, part in parts
        if isinstance(part.get("properties"), Mapping)
        for name in part["properties"]
        if not re.fullmatch(PROPERTY_PATTERN, name)
    ]
    if refused:
        what = f"names of parameters that do not match {PROPERTY_PATTERN}"
        fix = "Rename them with letters, digits, '_', '.' and '-', at most 64 characters."
        yield Refusal((ANTHROPIC,), what, fix, tuple(refused))


def _is_bare_list(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in part


def _has_odd_values(part: Mapping[str, Any]) -> bool:
    values = part.get("enum")
    return isinstance(values, list) and not all(isinstance(value, str) for value in values)


_EVERYWHERE: tuple[tuple[tuple[str, ...], str, str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ((OPENAI, GEMINI), "a list without 'items'", 'Say what it holds: "items": {"type": "string"}.', _is_bare_list),
    (
        (GEMINI,),
        "'$ref'",
        "Write the schema that it refers to in its place.",
        lambda part: isinstance(part.get("$ref"), str),
    ),
    (
        (GEMINI,),
        "several types in one 'type'",
        "Name one type, and leave what may be null out of 'required'.",
        lambda part: isinstance(part.get("type"), list),
    ),
    (
        (GEMINI,),
        "an 'enum' of anything but texts",
        "List texts, or say in the description which are right.",
        _has_odd_values,
    ),
)
