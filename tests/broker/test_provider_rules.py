from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from json_values import json_values

from pytest_tooleval.broker.provider_rules import ANTHROPIC, GEMINI, OPENAI, refusals, refusing_name, subschemas

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("name", "providers"),
    [
        ("search_pages", ()),
        ("search-pages", ()),
        ("_x", ()),
        ("x" * 64, ()),
        ("x" * 65, (OPENAI, GEMINI)),
        ("x" * 129, (OPENAI, ANTHROPIC, GEMINI)),
        ("1-click", (GEMINI,)),
        ("-x", (GEMINI,)),
        ("caldav.create", (OPENAI, ANTHROPIC)),
        ("a:b", (OPENAI, ANTHROPIC)),
        ("a/b", (OPENAI, ANTHROPIC, GEMINI)),
        ("a b", (OPENAI, ANTHROPIC, GEMINI)),
        ("größe", (OPENAI, ANTHROPIC, GEMINI)),
        ("x\n", (OPENAI, ANTHROPIC, GEMINI)),
    ],
)
def test_who_refuses_a_name(name: str, providers: tuple[str, ...]) -> None:
    assert refusing_name(name) == providers


def test_a_plain_schema_is_taken() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["a", "b"]},
            "items": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "anyOf": {"type": "string", "const": 1},
        },
        "required": ["type"],
        "additionalProperties": False,
    }
    assert list(refusals(schema)) == []


@pytest.mark.parametrize(
    ("schema", "providers", "what", "places"),
    [
        ({**OBJECT, "anyOf": [{"required": ["a"]}]}, (OPENAI, ANTHROPIC), "'anyOf' at the top", ()),
        (
            {**OBJECT, "oneOf": [{}], "allOf": [{}]},
            (OPENAI, ANTHROPIC),
            "'oneOf' and 'allOf' at the top",
            (),
        ),
        ({**OBJECT, "not": {"required": ["a"]}}, (OPENAI,), "'not' at the top", ()),
        ({**OBJECT, "type": "string"}, (OPENAI, ANTHROPIC, GEMINI), "the type 'string' at the top", ()),
        (
            {**OBJECT, "properties": {"a": {"type": "array"}}},
            (OPENAI, GEMINI),
            "a list without 'items'",
            ("/properties/a",),
        ),
        (
            {**OBJECT, "properties": {"a": {"items": {"type": "array"}, "type": "array"}}},
            (OPENAI, GEMINI),
            "a list without 'items'",
            ("/properties/a/items",),
        ),
        (
            {**OBJECT, "properties": {"a/b~": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}},
            (GEMINI,),
            "'$ref'",
            ("/properties/a~1b~0",),
        ),
        (
            {**OBJECT, "properties": {"a": {"anyOf": [{"type": ["string", "null"]}]}}},
            (GEMINI,),
            "several types in one 'type'",
            ("/properties/a/anyOf/0",),
        ),
        (
            {**OBJECT, "properties": {"a": {"type": "integer", "enum": [1, 2]}}},
            (GEMINI,),
            "an 'enum' of anything but texts",
            ("/properties/a",),
        ),
        (
            {**OBJECT, "properties": {"a": {"type": "object", "properties": {"b c": {}, "d": {}, "e" * 65: {}}}}},
            (ANTHROPIC,),
            "names of parameters that do not match ^[a-zA-Z0-9_.-]{1,64}$",
            ("/properties/a/properties/b c", "/properties/a/properties/" + "e" * 65),
        ),
        (
            {
                **OBJECT,
                "$schema": "http://json-schema.org/draft-04/schema#",
                "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
            },
            (OPENAI, ANTHROPIC),
            "a schema that breaks draft 2020-12, whatever its '$schema' says",
            (),
        ),
    ],
)
def test_what_is_refused(
    schema: dict[str, Any], providers: tuple[str, ...], what: str, places: tuple[str, ...]
) -> None:
    found = [refusal for refusal in refusals(schema) if refusal.what == what]
    assert [(refusal.providers, refusal.places) for refusal in found] == [(providers, places)]
    (refusal,) = found
    assert refusal.message.startswith(" and ".join(providers))
    assert refusal.fix.endswith(".")


def test_of_many_places_the_first_are_named() -> None:
    schema = {**OBJECT, "properties": {f"p{number}": {"type": "array"} for number in range(5)}}
    (refusal,) = refusals(schema)
    assert refusal.message == (
        "OpenAI and Gemini refuse a list without 'items' "
        "(at /properties/p0, /properties/p1, /properties/p2 and 2 more places)"
    )


def test_values_are_no_schemas() -> None:
    schema = {**OBJECT, "properties": {"a": {"default": {"type": "array"}, "enum": [{"$ref": "#"}], "const": {}}}}
    assert [pointer for pointer, _ in subschemas(schema)] == [(), ("properties", "a")]


@given(json_values())
def test_whatever_stands_in_a_schema_is_no_crash(value: Any) -> None:
    schema = value if isinstance(value, dict) else {"properties": value, "items": value, "type": value}
    for refusal in refusals(schema):
        assert refusal.message
