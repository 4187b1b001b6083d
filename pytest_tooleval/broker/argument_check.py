"""A call's arguments against a tool's JSON Schema: what is wrong, worded for the agent that has to mend it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import regex

from pytest_tooleval.cases.jsontext import pointer_text
from pytest_tooleval.cases.schema import describe
from pytest_tooleval.errors import ToolevalError, nearest
from pytest_tooleval.measures.text import cut, shorten

PATTERN_SECONDS = 1.0
_MOST_FAULTS = 6
_MOST_NAMES = 12
_DRAFTS = {
    "draft-03": "Draft3Validator",
    "draft-04": "Draft4Validator",
    "draft-06": "Draft6Validator",
    "draft-07": "Draft7Validator",
    "2019-09": "Draft201909Validator",
    "2020-12": "Draft202012Validator",
}
_VALUE_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class BrokenSchemaError(ToolevalError):
    """A tool's input schema is not a JSON Schema, or refers to what is not in it."""


@dataclass(frozen=True, slots=True)
class Checker:
    """A compiled schema.

    Attributes:
        schema: the schema as it was given.
        validator: a jsonschema validator of its draft, which fetches nothing.

    """

    schema: Any
    validator: Any

    def is_valid(self, value: Any) -> bool:
        """Whether a JSON value keeps the schema.

        Raises:
            BrokenSchemaError: the schema cannot be applied to this value.

        """
        return next(self.errors(value), None) is None

    def faults(self, value: Any) -> list[str]:
        """Return what is wrong with a JSON value, at most a handful, each with its path; empty when nothing is.

        Raises:
            BrokenSchemaError: the schema cannot be applied to this value.

        """
        errors = sorted(self.errors(value), key=lambda error: len(error.absolute_path))
        texts = list(dict.fromkeys(text for error in errors for text in _fault_texts(error)))
        more = len(texts) - _MOST_FAULTS
        return [*texts[:_MOST_FAULTS], f"and {more} more"] if more > 0 else texts

    def errors(self, value: Any) -> Iterator[Any]:
        """Yield jsonschema's own errors.

        Raises:
            BrokenSchemaError: the schema cannot be applied to this value.

        """
        import re

        from referencing.exceptions import Unresolvable

        try:
            yield from self.validator.iter_errors(value)
        except Unresolvable as error:
            raise BrokenSchemaError(f"the reference {cut(str(error.ref), 100)!r} leads nowhere") from None
        except RecursionError:
            raise BrokenSchemaError("its references go round in a circle") from None
        except (TimeoutError, re.error, OverflowError) as error:
            raise BrokenSchemaError(f"a pattern of it cannot be applied: {error}") from None


def checker_of(schema: Any) -> Checker:
    """Return the checker of a tool's input schema, compiled once for equal schemas.

    Raises:
        BrokenSchemaError: it is not a JSON Schema of its draft (`$schema`, else 2020-12).

    """
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise BrokenSchemaError(f"it is not JSON: {error}") from None
    compiled = _compiled(text)
    if isinstance(compiled, str):
        raise BrokenSchemaError(compiled)
    return compiled


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> Checker | str:
    """Return the checker of a schema's JSON text, or what is wrong with the schema."""
    schema = json.loads(text)
    if not isinstance(schema, dict | bool):
        return f"it is {describe(schema)}; expected a JSON Schema, which is an object"
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    bare = _without_dialects(schema)
    validator_class = _validator_class(dialect)
    return _schema_fault(validator_class, bare) or Checker(schema, _validator(validator_class, bare))


def _schema_fault(validator_class: Any, schema: Any) -> str | None:
    from jsonschema.exceptions import SchemaError

    try:
        validator_class.check_schema(schema, format_checker=None)
    except SchemaError as error:
        where = pointer_text(tuple(error.absolute_path)) or "its top"
        return f"at {cut(where, 120)}: {cut(error.message, 300)}"
    except RecursionError:
        return "it is nested too deeply"
    return next(_dead_ends(schema, _validator(validator_class, schema)), None)


def _dead_ends(schema: Any, validator: Any) -> Iterator[str]:
    """Yield what the metaschema does not see: references that lead nowhere and patterns that cannot be read."""
    from referencing.exceptions import Unresolvable

    nested = list(_subschemas(schema))
    relocated = any(isinstance(node.get(key), str) for node in nested[1:] for key in ("$id", "id"))
    for node in nested:
        reference, pattern = node.get("$ref"), node.get("pattern")
        if isinstance(reference, str) and not relocated:
            try:
                validator._resolver.lookup(reference)  # noqa: SLF001 - the only way to ask before there is a value
            except Unresolvable:
                yield f"the reference {cut(reference, 100)!r} leads nowhere (nothing is fetched from elsewhere)"
        if isinstance(pattern, str):
            yield from _pattern_faults(pattern)


def _pattern_faults(pattern: str) -> Iterator[str]:
    try:
        regex.compile(pattern)
    except regex.error as error:
        yield f"the pattern {cut(pattern, 100)!r} cannot be read: {error}"


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside a schema that is not plainly a value."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending += [member for key, member in node.items() if key not in _VALUE_KEYWORDS]
        elif isinstance(node, list):
            pending += node


def _without_dialects(schema: Any) -> Any:
    """Return a schema less its `$schema` keys: the draft is chosen once, for the whole."""
    if isinstance(schema, list):
        return [_without_dialects(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: member if key in _VALUE_KEYWORDS else _without_dialects(member)
        for key, member in schema.items()
        if not (key == "$schema" and isinstance(member, str))
    }


def _validator_class(dialect: Any) -> Any:
    import jsonschema

    found = [name for mark, name in _DRAFTS.items() if isinstance(dialect, str) and f"/{mark}/" in dialect]
    stock = getattr(jsonschema, found[0] if found else "Draft202012Validator")
    return _with_bounded_patterns(stock)


@functools.lru_cache(maxsize=len(_DRAFTS))
def _with_bounded_patterns(stock: Any) -> Any:
    from jsonschema import validators

    extend: Any = validators.extend
    return extend(stock, {"pattern": _keeps_pattern})


def _keeps_pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and not regex.search(pattern, value, timeout=PATTERN_SECONDS):
        yield ValidationError(f"does not match {pattern!r}")


def _validator(validator_class: Any, schema: Any) -> Any:
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return validator_class(schema, registry=REGISTRY)


def _fault_texts(error: Any) -> Iterator[str]:
    """Yield the faults of one error: several for an object with several unknown keys."""
    path = tuple(error.absolute_path)
    place = f"at {cut(pointer_text(path), 120)}: " if path else ""
    match error.validator:
        case "additionalProperties" if error.validator_value is False:
            for name in _unknown_names(error):
                yield f"{place}{_unknown_name(name, error.schema)}"
        case "anyOf" | "oneOf" if error.context:
            yield f"{place}{_fault(error)}; nearest: {next(_fault_texts(_deepest(error)))}"
        case _:
            yield place + _fault(error)


def _unknown_names(error: Any) -> list[str]:
    from itertools import islice

    known = error.schema.get("properties", {})
    patterns = error.schema.get("patternProperties", {})
    unknown = (
        name for name in error.instance if name not in known and not any(regex.search(p, name) for p in patterns)
    )
    return list(islice(unknown, _MOST_FAULTS + 1))


def _unknown_name(name: str, schema: Mapping[str, Any]) -> str:
    known = schema.get("properties", {})
    return f"there is no argument {cut(name, 80)!r}{nearest(name, known, cutoff=0.5) or _known_names(known)}"


def _known_names(known: Mapping[str, Any]) -> str:
    names = list(known)[:_MOST_NAMES]
    return f"; known are: {', '.join(names)}" if names else "; none is taken"


def _deepest(error: Any) -> Any:
    return max(error.context, key=lambda inner: (len(inner.absolute_path), inner.validator != "type"))


def _fault(error: Any) -> str:
    limit, found = error.validator_value, describe(error.instance)
    match error.validator:
        case None:
            return f"found {found}; expected nothing here"
        case "required":
            return _missing(error)
        case "type":
            return f"found {found}; expected {_type_words(limit)}{_items_words(error.schema)}"
        case "enum":
            listed = cut(json.dumps(limit, ensure_ascii=False), 300)
            return f"found {found}; expected one of {listed}{_nearest_choice(error.instance, limit)}"
        case "const":
            return f"found {found}; expected exactly {describe(limit)}"
        case "anyOf" | "oneOf":
            return (
                f"found {found}; fits {'none' if error.context else 'more than one'} of {len(limit)} alternatives"
            )
        case "pattern":
            return f"found {found}; expected text that matches {cut(limit, 200)}"
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "multipleOf":
            return f"found {found}; expected a number with {error.validator} {limit}"
        case "minLength" | "maxLength" | "minItems" | "maxItems":
            return f"found {found}, of length {len(error.instance)}; expected {error.validator} {limit}"
        case _:
            return f"found {found}; {cut(str(error.message), 200)}"


def _nearest_choice(found: Any, choices: list[Any]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    return nearest(found, texts) if isinstance(found, str) else ""


def _missing(error: Any) -> str:
    """Name the missing argument: jsonschema reports each by itself, with its name first in the message."""
    name = next(
        (name for name in error.validator_value if error.message.startswith(repr(name))), error.validator_value
    )
    properties = error.schema.get("properties", {})
    hint = _argument_hint(properties.get(name)) if isinstance(name, str) else ""
    return f"the required argument {name!r} is missing{hint}"


def _argument_hint(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    kind = _type_words(schema["type"]) + _items_words(schema) if "type" in schema else ""
    purpose = shorten(str(schema.get("description", "")), 120)
    words = ": ".join(part for part in (kind, purpose) if part)
    return f" ({words})" if words else ""


def _type_words(types: Any) -> str:
    names = [types] if isinstance(types, str) else types
    return " or ".join(_TYPES.get(name, str(name)) for name in names)


def _items_words(schema: Mapping[str, Any]) -> str:
    items = schema.get("items")
    kind = items.get("type") if isinstance(items, Mapping) else None
    return f" of {kind}s" if schema.get("type") == "array" and isinstance(kind, str) else ""
