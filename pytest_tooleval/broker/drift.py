"""Whether a tool's live schema still is the one in the catalog, and whether that matters to a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of
from pytest_tooleval.broker.envelope import canonical_json
from pytest_tooleval.measures.text import cut

_ANNOTATIONS = frozenset(
    {
        "$comment",
        "$id",
        "$schema",
        "deprecated",
        "description",
        "example",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_VALUES = frozenset({"const", "default"})
_NO_CONSTRAINT: Mapping[str, Any] = {"additionalProperties": True, "properties": {}, "required": []}
_COMPOSED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "patternProperties"})
_MOST_CHANGES = 8


def differs(catalogued: Any, live: Any) -> bool:
    """Whether two schemas differ in more than wording, order and spelling."""
    return catalogued != live and canonical_schema(catalogued) != canonical_schema(live)


def canonical_schema(schema: Any) -> str:
    """Return one text for all schemas that differ in wording, order or spelling only."""
    return canonical_json(_canonical(schema))


def drift_of_call(catalogued: Any, live: Any, arguments: Mapping[str, Any]) -> list[str]:
    """Return why a call cannot be made as the catalog has it, given that the two schemas differ; empty when it can.

    A call is touched when the live schema refuses its arguments, or no longer knows one that the catalog has.
    """
    try:
        refused = checker_of(live).faults(dict(arguments))
    except BrokenSchemaError as error:
        return [f"the live schema is not a JSON Schema: {error}"]
    before, now = _known(catalogued), _known(live)
    if before is None or now is None:
        return refused
    gone = [name for name in arguments if name in before and name not in now]
    return [*refused, *(f"{cut(name, 80)!r} is no longer an argument" for name in gone)]


def changes(catalogued: Any, live: Any) -> list[str]:
    """Return what changed from the catalogued schema to the live one, at most a handful of short sentences."""
    found = [*_comings(catalogued, live), *_alterations(catalogued, live)]
    more = len(found) - _MOST_CHANGES
    if more > 0:
        return [*found[:_MOST_CHANGES], f"and {more} more changes"]
    return found or ["the schemas differ in details outside the list of arguments"]


def _canonical(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_canonical(member) for member in schema]
    if not isinstance(schema, dict):
        return {} if schema is True else schema
    plain = {key: _canonical_keyword(key, value) for key, value in schema.items() if key not in _ANNOTATIONS}
    return {key: value for key, value in plain.items() if key not in _NO_CONSTRAINT or value != _NO_CONSTRAINT[key]}


def _canonical_keyword(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _canonical(member) for name, member in value.items()}
    if key in {"required", "enum"} and isinstance(value, list):
        return sorted(value, key=canonical_json)
    if key == "type":
        return sorted(value) if isinstance(value, list) else [value]
    if key == "additionalProperties":
        return True if value in (True, {}) else _canonical(value)
    return value if key in _VALUES else _canonical(value)


def _known(schema: Any) -> frozenset[str] | None:
    """Return the arguments that a schema names at its top; None when they stand elsewhere too."""
    if not isinstance(schema, dict) or not _COMPOSED.isdisjoint(schema):
        return None
    return frozenset(_properties(schema))


def _properties(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _required(schema: Any) -> list[str]:
    found = schema.get("required") if isinstance(schema, dict) else None
    return [str(name) for name in found] if isinstance(found, list) else []


def _comings(catalogued: Any, live: Any) -> list[str]:
    """Return which arguments went and which came."""
    before, now, required = _properties(catalogued), _properties(live), _required(live)
    gone = [f"{cut(name, 80)!r} is no longer an argument" for name in before if name not in now]
    kinds = {name: "a new required argument" if name in required else "a new argument" for name in now}
    return [*gone, *(f"{cut(name, 80)!r} is {kind}" for name, kind in kinds.items() if name not in before)]


def _alterations(catalogued: Any, live: Any) -> Iterator[str]:
    """Yield what became of the arguments that both schemas have."""
    before, now = _properties(catalogued), _properties(live)
    was_required, is_required = _required(catalogued), _required(live)
    for name in before:
        if name not in now:
            continue
        if differs(before[name], now[name]):
            yield f"{cut(name, 80)!r} changed{_words(before[name], now[name])}"
        if (name in was_required) != (name in is_required):
            yield f"{cut(name, 80)!r} is {'now' if name in is_required else 'no longer'} required"


def _words(before: Any, now: Any) -> str:
    was, has_become = _type(before), _type(now)
    return "" if was == has_become else f" from type {was} to {has_become}"


def _type(schema: Any) -> str:
    kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
