"""Example arguments made from a tool's JSON Schema: small, deterministic, and valid against it."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pytest_tooleval.broker.argument_check import BrokenSchemaError, Checker, checker_of
from pytest_tooleval.broker.envelope import canonical_json
from pytest_tooleval.broker.example_text import texts
from pytest_tooleval.errors import ToolevalError

_MOST_DEPTH = 10
_MOST_SHOWN_DEPTH = 3
_MOST_TRIES = 3000
_MOST_ROUNDS = 4
_MOST_ITEMS = 50
_MOST_VARIANTS = 60
_MOST_OPTIONAL = 20
_REQUIRING = frozenset({"dependencies", "dependentRequired", "required"})
_SIGNS = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": (),
}


class _NoExampleError(ToolevalError):
    """No valid value could be made."""


def example_arguments(schema: Any) -> dict[str, Any] | None:
    """Return arguments that are valid against a tool's input schema: the required ones and what else it asks for.

    Defaults, examples and enumerated values of the schema are used where there are some; a text that the caller has
    to choose is its argument's name in angle brackets where the schema allows that.

    Returns:
        The arguments, or None when the schema is broken, takes no object, or is too hard to satisfy.

    """
    try:
        text = _example_text(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return None
    return None if text is None else json.loads(text)


@functools.lru_cache(maxsize=4096)
def _example_text(schema_text: str) -> str | None:
    schema = json.loads(schema_text)
    try:
        made = _Maker(checker_of(schema)).arguments()
    except (BrokenSchemaError, _NoExampleError, RecursionError):
        return None
    return json.dumps(made)


class _Maker:
    """Makes values for one schema and its parts; gives up after a bounded number of tries."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._root = checker.validator.schema
        self._resolver = checker.validator._resolver  # noqa: SLF001 - resolves references without fetching
        self._tries = 0

    def arguments(self) -> dict[str, Any]:
        if self._root is True:
            return {}
        for value in self._candidates(_as_object(self._root), "", 0):
            made = self._completed(value)
            if isinstance(made, dict) and self._checker.is_valid(made):
                return made
        raise _NoExampleError

    def _completed(self, value: Any) -> Any:
        """Return a value with the members that its own members make necessary (`if`, `dependentRequired`, …)."""
        for _ in range(_MOST_ROUNDS):
            missing = [error for error in self._checker.errors(value) if error.validator in _REQUIRING]
            for error in missing:
                self._fill(error)
            if not missing:
                break
        return value

    def _fill(self, error: Any) -> None:
        """Add to the instance of an error, in place, the members that its message says are missing."""
        limit = error.validator_value
        names = limit if isinstance(limit, list) else [name for wanted in limit.values() for name in wanted]
        properties = {**self._root.get("properties", {}), **error.schema.get("properties", {})}
        for name in names:
            if isinstance(name, str) and name not in error.instance and error.message.startswith(repr(name)):
                error.instance[name] = self._value(properties.get(name, {}), name, 1)

    def _value(self, schema: Any, name: str, depth: int) -> Any:
        for value in self._values(schema, name, depth):
            return value
        raise _NoExampleError

    def _values(self, schema: Any, name: str, depth: int) -> Iterator[Any]:
        """Yield distinct values that are valid against a part of the schema, the most telling first."""
        validator = self._checker.validator.evolve(schema=schema)
        seen: set[str] = set()
        for value in self._candidates(schema, name, depth):
            self._tries += 1
            if self._tries > _MOST_TRIES:
                raise _NoExampleError
            key = canonical_json(value)
            if key not in seen and Checker(schema, validator).is_valid(value):
                seen.add(key)
                yield value

    def _candidates(self, schema: Any, name: str, depth: int) -> Iterator[Any]:
        if schema is False or depth > _MOST_DEPTH:
            return
        plain = self._flattened(schema if isinstance(schema, dict) else {}, depth)
        yield from _given_values(plain)
        for branch in _branches(plain):
            yield from self._candidates(branch, name, depth + 1)
        for kind in _kinds(plain):
            yield from self._of_kind(kind, plain, name, depth)

    def _flattened(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        """Return a schema with its references and `allOf` parts drawn in."""
        parts = list(schema.get("allOf", ()))
        if isinstance(schema.get("$ref"), str):
            parts.append(self._resolver.lookup(schema["$ref"]).contents)
        flat = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
        drawn: Mapping[str, Any] = {}
        for part in parts if depth <= _MOST_DEPTH else ():
            if isinstance(part, dict):
                drawn = _merged(drawn, self._flattened(part, depth + 1))
        return _merged(drawn, flat)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], name: str, depth: int) -> Iterator[Any]:
        match kind:
            case "object":
                yield from self._objects(schema, depth)
            case "array":
                yield from self._arrays(schema, name, depth)
            case "string":
                yield from texts(schema, name)
            case "integer" | "number":
                yield from _numbers(schema, whole=kind == "integer")
            case "boolean":
                yield from (False, True)
            case "null":
                yield None

    def _objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
        """Yield the required members, then the same with ever more of the optional ones."""
        properties = schema.get("properties", {})
        rest = schema.get("additionalProperties", {})
        made = {}
        for name in schema.get("required", ()):
            made[name] = self._value(properties.get(name, rest), name, depth + 1)
        yield dict(made)
        optional = [name for name in properties if name not in made]
        for name in optional[:_MOST_OPTIONAL]:
            for value in islice(self._values(properties[name], name, depth + 1), 1):
                made[name] = value
                yield dict(made)
        yield from self._open_objects(made, rest, schema, depth)

    def _open_objects(
        self, made: dict[str, Any], rest: Any, schema: Mapping[str, Any], depth: int
    ) -> Iterator[dict[str, Any]]:
        """Yield an object filled up with members that the schema does not name."""
        missing = schema.get("minProperties", 0) - len(made)
        names = islice(self._values(schema.get("propertyNames", {}), "key", depth + 1), min(missing, _MOST_ITEMS))
        if missing > 0:
            yield {**made, **{str(name): self._value(rest, str(name), depth + 1) for name in names}}

    def _arrays(self, schema: Mapping[str, Any], name: str, depth: int) -> Iterator[list[Any]]:
        least = schema.get("minItems", 0)
        if least > _MOST_ITEMS:
            return
        items = schema.get("items", {})
        first = schema.get("prefixItems", items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", {}) if isinstance(items, list) else items
        count = max(math.ceil(least), 1, len(first))
        if not least and depth > _MOST_SHOWN_DEPTH:
            yield []
        try:
            head = [self._value(one, name, depth + 1) for one in first]
            yield head + self._items(rest, name, count - len(head), depth)
            if "contains" in schema:
                yield [*head, *self._items(schema["contains"], name, count, depth)]
        except _NoExampleError:
            if self._tries > _MOST_TRIES:
                raise
        yield []

    def _items(self, schema: Any, name: str, count: int, depth: int) -> list[Any]:
        """Return as many distinct items as can be made, repeated to the count."""
        singular = name[:-1] if name.endswith("s") and len(name) > 3 else name
        distinct = list(islice(self._values(schema, singular, depth + 1), count))
        if count and not distinct:
            raise _NoExampleError
        return [distinct[index % len(distinct)] for index in range(count)]


def _as_object(schema: Any) -> Any:
    has_kind = not isinstance(schema, dict) or not {"type", "$ref", "allOf", "anyOf", "oneOf"}.isdisjoint(schema)
    return schema if has_kind else {**schema, "type": "object"}


def _given_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values that the schema itself names."""
    yield from (schema[key] for key in ("const", "default") if key in schema)
    for key in ("examples", "enum"):
        values = schema.get(key)
        if isinstance(values, list):
            yield from values


def _branches(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schema with each of its alternatives drawn in; one that takes only null comes last."""
    alternatives = schema.get("anyOf", schema.get("oneOf", ()))
    base = {key: value for key, value in schema.items() if key not in {"anyOf", "oneOf"}}
    usable = [one for one in alternatives if isinstance(one, dict)]
    for one in sorted(usable, key=lambda one: one.get("type") == "null"):
        yield _merged(base, one)


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two schemas as one: arguments and requirements of both, the second's word on all else."""
    merged = {**base, **more}
    if "properties" in base and "properties" in more:
        merged["properties"] = {**base["properties"], **more["properties"]}
    if isinstance(base.get("required"), list) and isinstance(more.get("required"), list):
        merged["required"] = list(dict.fromkeys([*base["required"], *more["required"]]))
    return merged


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("type")
    if given is None:
        signs = [kind for kind, keys in _SIGNS.items() if any(key in schema for key in keys)]
        return [*signs, "string", "object", "integer", "array", "boolean", "null"]
    kinds = [given] if isinstance(given, str) else list(given)
    return sorted(kinds, key=lambda kind: kind == "null")


def _numbers(schema: Mapping[str, Any], *, whole: bool) -> Iterator[float]:
    """Yield numbers at and beside the bounds, 1 first."""
    step = schema.get("multipleOf", 1)
    bounds = [schema.get(key) for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
    yield from (1, 0, step)
    for bound in bounds:
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            yield from _beside(bound, step, whole=whole)
    if not whole:
        yield from _middle(schema)
    yield from (index * step for index in range(2, _MOST_VARIANTS))


def _beside(bound: float, step: float, *, whole: bool) -> Iterator[float]:
    below, above = math.floor(bound / step) * step, math.ceil(bound / step) * step
    near = (bound, above, above + step, below, below - step)
    yield from (int(number) if whole or float(number).is_integer() else number for number in near)


def _middle(schema: Mapping[str, Any]) -> Iterator[float]:
    low = schema.get("exclusiveMinimum", schema.get("minimum"))
    high = schema.get("exclusiveMaximum", schema.get("maximum"))
    if isinstance(low, int | float) and isinstance(high, int | float):
        yield (low + high) / 2
