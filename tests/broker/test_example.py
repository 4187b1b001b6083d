"""Example arguments: made from the schema, and always valid against it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tooleval.broker.example import example_arguments

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def _required(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema, "other": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "<a>"),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "default": None}, "<a>"),
        ({"type": "string", "examples": ["main"]}, "main"),
        ({"enum": ["red", "green"]}, "red"),
        ({"const": 7}, 7),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "null"}, None),
        ({"type": "boolean"}, False),
        ({"type": "string", "format": "date"}, "2025-01-31"),
        ({"type": "string", "format": "email"}, "someone@example.com"),
        ({"type": "string", "maxLength": 2}, "<a"),
        ({"type": "string", "minLength": 5}, "<a>xx"),
        ({"type": "string", "pattern": "^[0-9]{12}$"}, "000000000000"),
        ({"type": "string", "pattern": "^C[A-Z]{3,}-(x|y)$"}, "CAAA-x"),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": "integer", "multipleOf": 7, "minimum": 20}, 21),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, 0.25),
        ({"type": "array", "items": {"type": "string"}}, ["<a>"]),
        ({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True}, [1, 2, 3]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": False}, [1, None]),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "z"}}, ["z"]),
        ({"type": "array", "maxItems": 0}, []),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"oneOf": [{"type": "object", "required": ["b"], "properties": {"b": {"const": 1}}}]}, {"b": 1}),
        ({"allOf": [{"type": "object", "required": ["b"]}, {"properties": {"b": {"type": "integer"}}}]}, {"b": 1}),
        ({"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}}, {"<key>": 1}),
        ({"type": "object", "properties": {"b": {"type": "integer"}}, "minProperties": 1}, {"b": 1}),
    ],
)
def test_a_required_argument(schema: Any, expected: Any) -> None:
    assert example_arguments(_required(schema)) == {"a": expected}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        (True, {}),
        ({"properties": {"optional": {"type": "string"}}}, {}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"required": ["x"], "properties": {"x": {"const": 5}}}}}, {"x": 5}),
        (
            {
                "properties": {"tree": {"$ref": "#/$defs/node"}},
                "required": ["tree"],
                "$defs": {
                    "node": {
                        "type": "object",
                        "properties": {
                            "v": {"type": "integer"},
                            "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                        },
                        "required": ["v", "kids"],
                    }
                },
            },
            {"tree": {"v": 1, "kids": [{"v": 1, "kids": []}]}},
        ),
        (
            {
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a"],
                "dependentRequired": {"a": ["b"]},
            },
            {"a": "<a>", "b": "<b>"},
        ),
        (
            {
                "properties": {"kind": {"enum": ["x", "y"]}},
                "required": ["kind"],
                "if": {"properties": {"kind": {"const": "x"}}},
                "then": {"required": ["b"]},
            },
            {"kind": "x", "b": "<b>"},
        ),
        (
            {
                "$schema": DRAFT_4,
                "properties": {"a": {"type": "integer", "minimum": 3, "exclusiveMinimum": True}},
                "required": ["a"],
            },
            {"a": 4},
        ),
    ],
)
def test_a_whole_schema(schema: Any, expected: Any) -> None:
    assert example_arguments(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        False,
        "text",
        {"type": "string"},
        {"type": "nonsense"},
        {"default": {1, 2}},
        _required(False),
        _required({"type": "array", "minItems": 10**9}),
        _required({"type": "string", "minLength": 10**9}),
        _required({"type": "integer", "minimum": 2, "maximum": 1}),
        {
            "$ref": "#/$defs/n",
            "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
        },
    ],
)
def test_there_is_no_example_where_none_can_be_made(schema: Any) -> None:
    assert example_arguments(schema) is None


def test_the_caller_may_change_what_it_gets() -> None:
    schema = _required({"type": "array", "items": {"type": "string"}})
    first = example_arguments(schema)
    assert first is not None
    first["a"].append("mine")

    assert example_arguments(schema) == {"a": ["<a>"]}


_BOUND = st.integers(-5, 20)
_LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 9), "format": st.sampled_from(["date", "uri", "zip"])},
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])}, optional={"minimum": _BOUND, "exclusiveMaximum": _BOUND}
    ),
    st.fixed_dictionaries(
        {"enum": st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), min_size=1, max_size=3)}
    ),
    st.sampled_from([{}, True, {"type": ["null", "boolean"]}, {"default": 3, "type": "string"}]),
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 3), "uniqueItems": st.booleans()},
        ),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": sorted(properties)[:2]}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(_SCHEMAS)
def test_an_example_is_valid(schema: Any) -> None:
    whole = _required(schema)
    example = example_arguments(whole)

    assert example is None or jsonschema.Draft202012Validator(whole).is_valid(example)
