"""The published JSON Schemas: a fast yes or no, and words for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from pytest_tooleval.errors import ToolevalError, nearest

SCHEMA_NAMES = (
    "fixture",
    "mcp",
    "thresholds",
    "catalog",
    "discovery",
    "invocation",
    "ergonomics",
    "workloads",
    "broker-mapping",
    "result",
)
_SHOWN_CHARS = 60
_TYPE_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a value breaks a schema."""

    path: tuple[str | int, ...]
    message: str


def schema_text(name: str) -> str:
    """Return the text of a published schema.

    Raises:
        ToolevalError: there is no schema of this name.

    """
    if name not in SCHEMA_NAMES:
        known = ", ".join(SCHEMA_NAMES)
        raise ToolevalError(f"no schema {name!r}{nearest(name, SCHEMA_NAMES)}; there are: {known}")
    folder = resources.files("pytest_tooleval.cases") / "schemas"
    return (folder / f"{name}.schema.json").read_text(encoding="utf-8")


class Schema:
    """One published schema, or one of its definitions, compiled when it is first used."""

    def __init__(self, name: str, definition: str | None = None) -> None:
        self._name = name
        self._definition = definition

    @cached_property
    def _schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(schema_text(self._name))
        if self._definition is None:
            return schema
        return {
            "$schema": schema["$schema"],
            "$ref": f"#/$defs/{self._definition}",
            "$defs": schema["$defs"],
        }

    @cached_property
    def _fast(self) -> Any:
        import jsonschema_rs

        return jsonschema_rs.validator_for(self._schema)

    @cached_property
    def _thorough(self) -> Any:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(self._schema)

    def is_valid(self, value: Any) -> bool:
        """Whether a decoded JSON value keeps the schema."""
        try:
            return bool(self._fast.is_valid(value))
        except (ValueError, OverflowError, RecursionError):
            return bool(self._thorough.is_valid(value))

    def faults(self, value: Any) -> list[Fault]:
        """Return every fault of a decoded JSON value in the value's order, none when it is valid."""
        if self.is_valid(value):
            return []
        found = [fault for error in self._thorough.iter_errors(value) for fault in _faults_of(error)]
        return sorted(found, key=lambda fault: _place(value, fault.path))


def _place(value: Any, path: tuple[str | int, ...]) -> list[int]:
    """Return the position of each step of a path among its neighbours."""
    place = []
    for step in path:
        place.append(step if isinstance(step, int) else list(value).index(step))
        value = value[step]
    return place


def describe(value: Any) -> str:
    """Return a short text that says what a JSON value is, for messages."""
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return f"{_type_word(value)} ({shown})" if isinstance(value, dict | list) else shown


def _type_word(value: Any) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _faults_of(error: Any) -> Iterator[Fault]:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.validator_value, bool):
        yield from _unknown_keys(path, error.instance, error.schema)
    else:
        yield Fault(path, _message(error))


def _unknown_keys(
    path: tuple[str | int, ...], instance: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Fault]:
    known = schema["properties"]
    takes_notes = "^_" in schema.get("patternProperties", {})
    for key in instance:
        if key not in known and not (takes_notes and key.startswith("_")):
            hint = nearest(key, known, cutoff=0.5) or f"; known are: {', '.join(sorted(known))}"
            yield Fault((*path, key), f"unknown key {key!r}{hint}")


def _message(error: Any) -> str:
    found = describe(error.instance)
    limit = error.validator_value
    match error.validator:
        case "required":
            missing = next(key for key in limit if key not in error.instance)
            return f"the key {missing!r} is missing"
        case "type":
            return f"found {found}; expected {_expected_types(limit)}"
        case "enum":
            hint = nearest(error.instance, limit) if isinstance(error.instance, str) else ""
            return f"found {found}; expected one of: {', '.join(map(str, limit))}{hint}"
        case "minimum":
            return f"found {found}; expected at least {limit}"
        case "maximum":
            return f"found {found}; expected at most {limit}"
        case "minItems" | "minProperties" | "minLength":
            return f"is empty ({found}) and so says nothing: fill it or leave it out"
        case "uniqueItems":
            return f"found {found}; each name may stand only once"
        case _:
            description = error.schema.get("description") or error.message
            return f"found {found}; expected {description}"


def _expected_types(types: str | list[str]) -> str:
    names = [types] if isinstance(types, str) else types
    return " or ".join(_TYPE_WORDS[name] for name in names)
