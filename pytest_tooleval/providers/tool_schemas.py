"""JSON Schemas of tools as an API takes them: one object at the top, and no keyword that the API refuses."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

Schema: TypeAlias = dict[str, Any]

MOST_PARTS = 5_000
MOST_LEVELS = 50
MOST_LOSSES = 20

_DEFINITIONS = ("$defs", "definitions")
_MAPS = frozenset({*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SWITCHES = frozenset({"additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
_SINGLE = _SWITCHES | {"items", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else"}
_ALTERNATIVES = ("anyOf", "oneOf")
_LOST_AT_TOP = (*_ALTERNATIVES, "not", "if", "then", "else", "enum", "const")
_UNITS = (
    frozenset({"items", "prefixItems", "additionalItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
    frozenset({"minimum", "exclusiveMinimum"}),
    frozenset({"maximum", "exclusiveMaximum"}),
)
_EXCLUSIVE_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_MAY_BE_NULL = frozenset({"const", "default"})
_SILENT = frozenset({"$schema", "$id", "id", "$comment", "$anchor", "title", "examples", *_DEFINITIONS})
_LONGEST_HINT = 100


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What an API takes in the schema of a tool.

    Attributes:
        references: whether `$ref` to a definition is taken; else what it refers to is written in its place.
        keywords: the keywords that are taken, or None for all of JSON Schema.
        formats: the values of `format` that are taken, or None for all.
        plain_values: whether `enum` may hold texts and numbers only.

    """

    references: bool = True
    keywords: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    plain_values: bool = False

    def take(self, keyword: str) -> bool:
        """Whether a keyword can be sent."""
        return self.keywords is None or keyword in self.keywords


@dataclass(frozen=True, slots=True)
class AdaptedSchema:
    """A schema that can be sent.

    Attributes:
        schema: an object schema with `type` and `properties`.
        losses: what it does not say any more, each with the place; of many the first few.

    """

    schema: Schema
    losses: tuple[str, ...] = ()


def adapted_schema(schema: Any, rules: SchemaRules) -> AdaptedSchema:
    """Return the schema of a tool's arguments as an API takes it.

    Alternatives at the top become one object with the properties of all; apart from them no right argument
    becomes impossible. A constraint that has to go is told in the description, so that the model still reads it.
    """
    try:
        return _adapted_text(json.dumps(schema), rules)
    except (TypeError, ValueError) as error:
        return AdaptedSchema(_empty(), (f"/: left out, the schema is not JSON: {error}",))
    except RecursionError:
        return AdaptedSchema(_empty(), ("/: left out, the schema is too deep",))


def _empty() -> Schema:
    return {"type": "object", "properties": {}}


@functools.lru_cache(maxsize=4096)
def _adapted_text(text: str, rules: SchemaRules) -> AdaptedSchema:
    """Return an adapted schema; the same tools are sent with every request."""
    schema = json.loads(text)
    work = _Adaptation(schema if isinstance(schema, Mapping) else {}, rules)
    return AdaptedSchema(work.whole(), tuple(work.losses))


class _Adaptation:
    """One schema's way; a place is a JSON pointer into the result, a trail the references that led there."""

    def __init__(self, root: Mapping[str, Any], rules: SchemaRules) -> None:
        self._root = root
        self._rules = rules
        self._parts = 0
        self.losses: list[str] = []

    def whole(self) -> Schema:
        top = self._top(self._root, ("#",))
        if not isinstance(top.get("properties"), Mapping):
            top["properties"] = {}
        # `$schema` goes because `_modern` rewrites older drafts
        dropped = ("$schema", "type", *(() if self._rules.references else _DEFINITIONS))
        rest = {key: value for key, value in top.items() if key not in dropped}
        return {"type": "object"} | self._part(rest, "", ("#",))

    def _lose(self, place: str, what: str) -> None:
        if len(self.losses) < MOST_LOSSES:
            self.losses.append(f"{place or '/'}: {what}")

    def _is_spent(self, levels: int) -> bool:
        self._parts += 1
        return self._parts > MOST_PARTS or levels > MOST_LEVELS

    def _top(self, top: Mapping[str, Any], trail: tuple[str, ...]) -> Schema:
        """Return the top as one object that holds the properties of all its alternatives."""
        if self._is_spent(len(trail)):
            return {}
        if "$ref" in top:
            return self._top(self._followed(top, trail), (*trail, str(top["$ref"])))
        for key in _LOST_AT_TOP:
            if key in top:
                self._lose(f"/{key}", "not sent, every alternative's properties are offered")
        left_out = (*_LOST_AT_TOP, "allOf", "unevaluatedProperties")
        folded = {key: value for key, value in top.items() if key not in left_out}
        for branch in self._branches(top, "allOf", trail):
            folded = _both(folded, branch)
        for key in _ALTERNATIVES:
            folded = _with_alternatives(folded, list(self._branches(top, key, trail)))
        return folded

    def _branches(self, top: Mapping[str, Any], key: str, trail: tuple[str, ...]) -> Iterator[Schema]:
        return (self._top(branch, (*trail, key)) for branch in _mappings(top.get(key)))

    def _followed(self, part: Mapping[str, Any], trail: tuple[str, ...]) -> Schema:
        """Return a part with what its reference leads to, or without it where that leads nowhere new."""
        reference = part["$ref"]
        own = {key: value for key, value in part.items() if key != "$ref"}
        target = self._target(reference)
        return own if target is None or reference in trail else _both(own, target)

    def _part(self, part: Any, place: str, trail: tuple[str, ...]) -> Schema:
        if isinstance(part, bool):
            return {} if part or not self._rules.take("not") else {"not": {}}
        if not isinstance(part, Mapping):
            self._lose(place, "left out, it is no schema")
            return {}
        if self._is_spent(place.count("/") // 2 + len(trail)):
            self._lose(place, "left out, the schema is too large or too deep")
            return {}
        stated = {key: value for key, value in part.items() if value is not None or key in _MAY_BE_NULL}
        if "$ref" in stated and not self._is_kept(stated["$ref"]):
            return self._inlined(stated, place, trail)
        if "allOf" in stated and not self._rules.take("allOf"):
            return self._part(self._united(stated, trail), place, (*trail, "allOf"))
        return self._sendable(_modern(stated), place, trail)

    def _is_kept(self, reference: Any) -> bool:
        if not self._rules.references or not isinstance(reference, str):
            return False
        parent, _, _ = reference.rpartition("/")
        return reference == "#" or (
            parent in ("#/$defs", "#/definitions") and isinstance(self._target(reference), Mapping)
        )

    def _inlined(self, part: Schema, place: str, trail: tuple[str, ...]) -> Schema:
        reference = part["$ref"]
        target = self._target(reference)
        followed = self._followed(part, trail)
        if target is None:
            self._lose(place, f"{reference!r} leads nowhere")
        elif reference in trail:
            self._lose(place, f"{reference!r} leads back to itself and is cut")
            followed = {"type": target["type"], **followed} if "type" in target else followed
        return self._part(followed, place, (*trail, str(reference)))

    def _united(self, part: Schema, trail: tuple[str, ...]) -> Schema:
        """Return a part without `allOf`, saying itself what its branches say."""
        united = {key: value for key, value in part.items() if key != "allOf"}
        for branch in _mappings(part["allOf"]):
            united = _both(united, self._followed(branch, trail) if "$ref" in branch else branch)
        return united

    def _target(self, reference: Any) -> Mapping[str, Any] | None:
        """Return the schema of this document that a reference leads to; nothing is fetched."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        found: Any = self._root
        for step in unquote(reference).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
            else:
                found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def _sendable(self, part: Schema, place: str, trail: tuple[str, ...]) -> Schema:
        part = self._in_taken_words(part)
        refused = [key for key, value in part.items() if not self._is_taken(key, value) and key not in _SILENT]
        hints = {key: text for key in refused if (text := _hint(part[key])) is not None}
        for key in refused:
            if key not in hints:
                self._lose(f"{place}/{key}", "left out")
        sent = {
            key: self._value(key, value, f"{place}/{key}", trail)
            for key, value in part.items()
            if self._is_taken(key, value)
        }
        return _told(sent, hints)

    def _in_taken_words(self, part: Schema) -> Schema:
        if "const" in part and not self._rules.take("const"):
            part["enum"] = [part.pop("const")]
        if "oneOf" in part and "anyOf" not in part and not self._rules.take("oneOf"):
            part["anyOf"] = part.pop("oneOf")
        if "patternProperties" in part and not self._rules.take("patternProperties"):
            part.pop("additionalProperties", None)
        return part

    def _is_taken(self, key: str, value: Any) -> bool:
        if key == "format" and self._rules.formats is not None:
            return isinstance(value, str) and value in self._rules.formats
        if key == "enum" and self._rules.plain_values:
            return isinstance(value, list) and all(_is_plain(member) for member in value)
        return self._rules.take(key)

    def _value(self, key: str, value: Any, place: str, trail: tuple[str, ...]) -> Any:
        if key in _MAPS and isinstance(value, Mapping):
            return {name: self._part(inner, f"{place}/{_escaped(name)}", trail) for name, inner in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self._part(inner, f"{place}/{number}", trail) for number, inner in enumerate(value)]
        if key in _SINGLE and not (key in _SWITCHES and isinstance(value, bool)):
            return self._part(value, place, trail)
        return value


def _modern(part: Schema) -> Schema:
    """Return a schema in the words of draft 2020-12, which APIs check against; lists always say what they hold."""
    for exclusive, bound in _EXCLUSIVE_BOUNDS.items():
        if part.get(exclusive) is True and bound in part:
            part[exclusive] = part.pop(bound)
        elif isinstance(part.get(exclusive), bool):
            del part[exclusive]
    if isinstance(part.get("items"), list):
        part["prefixItems"] = part["items"]
        part["items"] = part.pop("additionalItems", {})
    if required := _required(part):
        part["required"] = required
    else:
        part.pop("required", None)
    if "array" in _types(part):
        part.setdefault("items", {})
    return part


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> Schema:
    """Return a schema that says what two say together; where that cannot be said only the first is heard."""
    spoken_for = {key for unit in _UNITS if unit & first.keys() for key in unit}
    merged = {key: value for key, value in second.items() if key not in spoken_for} | dict(first)
    for key in ("properties", "patternProperties"):
        own, other = _mapping(first, key), _mapping(second, key)
        shared = {name for name in own.keys() & other.keys() if own[name] != other[name]}
        if own and other:
            merged[key] = {**other, **own, **{name: {"allOf": [own[name], other[name]]} for name in shared}}
    if _required(first) and _required(second):
        merged["required"] = list(dict.fromkeys([*_required(first), *_required(second)]))
    return merged


def _with_alternatives(base: Schema, branches: Sequence[Schema]) -> Schema:
    """Return `base` with the properties of every branch, and what every branch requires."""
    if not branches:
        return base
    own = _mapping(base, "properties")
    found: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in _mapping(branch, "properties").items():
            choices = found.setdefault(name, [])
            choices += [] if schema in choices else [schema]
    added = {
        name: choices[0] if len(choices) == 1 else {"anyOf": choices}
        for name, choices in found.items()
        if name not in own
    }
    required = [key for key in _required(branches[0]) if all(key in _required(branch) for branch in branches)]
    needed = dict.fromkeys([*_required(base), *required])
    return {**base, "properties": {**own, **added}, **({"required": list(needed)} if needed else {})}


def _told(schema: Schema, hints: Mapping[str, str]) -> Schema:
    """Return a schema whose description tells what its keywords cannot."""
    if not hints:
        return schema
    description = schema.get("description")
    words = [description] if isinstance(description, str) and description else []
    told = "; ".join(f"{key}: {text}" for key, text in hints.items())
    return {**schema, "description": " ".join([*words, f"({told})"])}


def _hint(value: Any) -> str | None:
    """Return a keyword's value as a description can tell it, or None when that would be long."""
    members = value if isinstance(value, list) else [value]
    if any(isinstance(member, list | Mapping) for member in members):
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_HINT else None


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    return (member for member in (value if isinstance(value, list) else []) if isinstance(member, Mapping))


def _mapping(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    kinds = schema.get("type")
    return kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []


def _escaped(name: Any) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
