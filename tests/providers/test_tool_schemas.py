from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import TEXT, json_values

from pytest_tooleval.providers.gemini import TOOL_RULES as GEMINI_RULES
from pytest_tooleval.providers.tool_schemas import MOST_LOSSES, MOST_PARTS, SchemaRules, adapted_schema

FULL = SchemaRules()
GEMINI = GEMINI_RULES.schemas
EMPTY = {"type": "object", "properties": {}}


def sent(schema: Any, rules: SchemaRules = FULL) -> dict[str, Any]:
    before = copy.deepcopy(schema)
    adapted = adapted_schema(schema, rules)
    assert schema == before
    return adapted.schema


def sent_property(schema: Any, rules: SchemaRules = FULL, **root: Any) -> Any:
    return sent({"type": "object", "properties": {"x": schema}, **root}, rules)["properties"]["x"]


# --- the top


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, EMPTY),
        (None, EMPTY),
        ([], EMPTY),
        ({"type": "object"}, EMPTY),
        ({"type": None, "properties": None}, EMPTY),
        ({"type": "object", "properties": []}, EMPTY),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, EMPTY),
        (
            {"properties": {"a": {}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        ),
        ({"additionalProperties": False}, {**EMPTY, "additionalProperties": False}),
        ({"description": "What to read."}, {**EMPTY, "description": "What to read."}),
    ],
)
def test_the_top_is_an_object_with_properties(schema: Any, expected: dict[str, Any]) -> None:
    assert sent(schema) == expected


def test_alternatives_at_the_top_become_one_object() -> None:
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string"}, "km": {"type": "number"}, "depth": {"type": "integer"}},
        "required": ["depth"],
        "anyOf": [{"required": ["place", "km"]}, {"required": ["km"]}],
    }
    adapted = adapted_schema(schema, FULL)
    assert adapted.schema == {
        "type": "object",
        "properties": schema["properties"],
        "required": ["depth", "km"],
    }
    assert adapted.losses == ("/anyOf: not sent, every alternative's properties are offered",)


def test_the_properties_of_every_alternative_are_offered() -> None:
    by_id = {"properties": {"kind": {"const": "id"}, "id": {"type": "integer"}}, "required": ["kind", "id"]}
    by_name = {"properties": {"kind": {"const": "name"}, "name": {"type": "string"}}, "required": ["kind", "name"]}
    schema = {"oneOf": [by_id, {"$ref": "#/$defs/Name"}], "$defs": {"Name": by_name}}
    assert sent(schema) == {
        "type": "object",
        "properties": {
            "kind": {"anyOf": [{"const": "id"}, {"const": "name"}]},
            "id": {"type": "integer"},
            "name": {"type": "string"},
        },
        "required": ["kind"],
        "$defs": {"Name": by_name},
    }


def test_what_holds_together_at_the_top_is_joined() -> None:
    schema = {
        "allOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}, "a": {"minLength": 1}}, "required": ["b"]},
        ],
        "properties": {"c": {}},
        "required": ["c"],
    }
    adapted = adapted_schema(schema, FULL)
    assert adapted.schema == {
        "type": "object",
        "properties": {
            "a": {"allOf": [{"type": "string"}, {"minLength": 1}]},
            "b": {"type": "string"},
            "c": {},
        },
        "required": ["c", "a", "b"],
    }
    assert adapted.losses == ()


@pytest.mark.parametrize("key", ["not", "if", "then", "else", "enum", "const"])
def test_what_apis_refuse_at_the_top_is_left_out_and_told(key: str) -> None:
    adapted = adapted_schema({**EMPTY, key: {"required": ["a"]}}, FULL)
    assert adapted.schema == EMPTY
    assert [loss.partition(":")[0] for loss in adapted.losses] == [f"/{key}"]


def test_a_reference_at_the_top_is_followed() -> None:
    args = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert sent({"$ref": "#/$defs/Args", "$defs": {"Args": args}}, GEMINI) == args


def test_a_schema_that_is_not_json_is_left_out_and_told() -> None:
    adapted = adapted_schema({"properties": {"x": {"enum": {"a"}}}}, FULL)
    assert adapted.schema == EMPTY
    assert adapted.losses[0].startswith("/: left out, the schema is not JSON: ")


# --- references


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node", "description": "where it begins"}},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        }
    },
}


def test_references_to_definitions_are_kept_where_they_are_taken() -> None:
    assert sent(TREE) == TREE


def test_else_they_are_written_out_and_what_leads_back_is_cut() -> None:
    adapted = adapted_schema(TREE, GEMINI)
    assert adapted.schema == {
        "type": "object",
        "properties": {
            "root": {
                "type": "object",
                "description": "where it begins",
                "properties": {"children": {"type": "array", "items": {"type": "object"}}},
            }
        },
    }
    (loss,) = adapted.losses
    assert loss == ("/properties/root/properties/children/items: '#/$defs/Node' leads back to itself and is cut")


def test_a_reference_to_anything_but_a_definition_is_always_written_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a/b": {"type": "string", "enum": ["x"]},
            "list": {"type": "array", "items": {"$ref": "#/properties/a~1b"}},
        },
    }
    for rules in (FULL, GEMINI):
        assert sent(schema, rules)["properties"]["list"]["items"] == {"type": "string", "enum": ["x"]}


def test_what_stands_beside_a_reference_is_joined_with_what_it_leads_to() -> None:
    closed = {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}
    beside = {"$ref": "#/properties/closed", "patternProperties": {"^y": {}}, "description": "d"}
    schema = {"properties": {"closed": closed, "x": beside}}
    assert sent(schema)["properties"]["x"] == {
        "patternProperties": {"^x": {"type": "integer"}, "^y": {}},
        "additionalProperties": False,
        "description": "d",
    }


def test_a_definition_in_the_old_place_is_found() -> None:
    schema = {"properties": {"n": {"$ref": "#/definitions/N"}}, "definitions": {"N": {"type": "integer"}}}
    assert sent(schema)["definitions"] == {"N": {"type": "integer"}}
    assert sent(schema, GEMINI) == {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize("rules", [FULL, GEMINI])
@pytest.mark.parametrize(
    "reference", ["https://example.org/schema.json", "#/$defs/Gone", "#/required/7", "#anchor", "other.json", 7]
)
def test_a_reference_that_leads_nowhere_is_told_and_nothing_is_fetched(rules: SchemaRules, reference: Any) -> None:
    schema = {"properties": {"n": {"$ref": reference, "description": "d"}}, "required": ["n"]}
    adapted = adapted_schema(schema, rules)
    assert adapted.schema["properties"] == {"n": {"description": "d"}}
    assert adapted.losses == (f"/properties/n: {reference!r} leads nowhere",)


def test_the_whole_schema_may_refer_to_itself() -> None:
    schema = {"type": "object", "properties": {"then": {"$ref": "#"}}}
    assert sent(schema) == schema
    assert sent(schema, GEMINI) == {"type": "object", "properties": {"then": {"type": "object"}}}


def test_definitions_that_double_each_time_stay_bounded() -> None:
    definitions: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(1, 40):
        below = {"$ref": f"#/$defs/L{level - 1}"}
        definitions[f"L{level}"] = {"type": "object", "properties": {"left": below, "right": below}}
    adapted = adapted_schema({"properties": {"x": {"$ref": "#/$defs/L39"}}, "$defs": definitions}, GEMINI)
    assert json.dumps(adapted.schema).count('"type"') <= MOST_PARTS
    assert len(adapted.losses) == MOST_LOSSES
    assert "too large or too deep" in adapted.losses[-1]


@pytest.mark.parametrize("rules", [FULL, GEMINI])
@pytest.mark.parametrize("wrap", ["items", "anyOf", "not", "root"])
def test_schemas_without_end_are_cut(rules: SchemaRules, wrap: str) -> None:
    schema: Any = {"type": "string"}
    for _ in range(900):
        schema = {"anyOf": [schema]} if wrap in ("anyOf", "root") else {wrap: schema}
    whole = schema if wrap == "root" else {"properties": {"x": schema}}
    adapted = adapted_schema(whole, rules)
    assert len(json.dumps(adapted.schema)) < 3000


# --- keywords


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        (False, {"not": {}}),
        (None, {}),
        ("string", {}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {"not": {}}},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}]},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {}},
        ),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"maximum": 3, "exclusiveMaximum": False}, {"maximum": 3}),
        ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"type": "string", "description": None, "default": None}, {"type": "string", "default": None}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"oneOf": [{"const": 1}, {"const": "a"}]}, {"oneOf": [{"const": 1}, {"const": "a"}]}),
        ({"enum": [1, None, "a"]}, {"enum": [1, None, "a"]}),
    ],
)
def test_a_schema_in_the_words_of_the_newest_draft(schema: Any, expected: Any) -> None:
    assert sent_property(schema) == expected
    assert jsonschema_rs.meta.is_valid(expected)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": 7}, {"enum": [7]}),
        ({"enum": ["a", 2]}, {"enum": ["a", 2]}),
        ({"type": "boolean", "enum": [True]}, {"type": "boolean", "description": "(enum: [true])"}),
        ({"enum": ["a", None]}, {"description": '(enum: ["a", null])'}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {"type": "string", "format": "uri", "description": "Where."},
            {"type": "string", "description": "Where. (format: uri)"},
        ),
        (
            {"type": "integer", "exclusiveMinimum": 0, "maximum": 9, "default": 1},
            {"type": "integer", "maximum": 9, "description": "(exclusiveMinimum: 0; default: 1)"},
        ),
        ({"oneOf": [{"type": "string"}, {"const": 2}]}, {"anyOf": [{"type": "string"}, {"enum": [2]}]}),
        (
            {"allOf": [{"$ref": "#/$defs/T"}, {"maxLength": 3}], "title": "T"},
            {"type": "string", "title": "T", "description": "(maxLength: 3)"},
        ),
        ({"allOf": [{"minimum": 5}, {"minimum": 3, "exclusiveMinimum": True}]}, {"minimum": 5}),
        (
            {"allOf": [{"prefixItems": [{}]}, {"prefixItems": [{}, {}], "items": False}]},
            {"prefixItems": [{}]},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        (
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"type": "object"},
        ),
        ({"type": "string", "$comment": "c", "examples": ["e"], "$id": "i"}, {"type": "string"}),
        (False, {}),
    ],
)
def test_a_schema_in_the_words_that_gemini_hears(schema: Any, expected: Any) -> None:
    assert sent_property(schema, GEMINI, **{"$defs": {"T": {"type": "string"}}}) == expected


def test_what_is_too_long_to_be_told_is_a_loss() -> None:
    adapted = adapted_schema({"properties": {"x": {"type": "string", "pattern": "a" * 101}}}, GEMINI)
    assert adapted.schema["properties"] == {"x": {"type": "string"}}
    assert adapted.losses == ("/properties/x/pattern: left out",)


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "pattern": {"const": 1}}}
    assert sent(schema, GEMINI)["properties"] == {"$ref": {"type": "string"}, "pattern": {"enum": [1]}}


# --- properties of every schema


def keywords(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    yield from schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("prefixItems", ())]
    for part in (*inner, schema.get("items"), schema.get("additionalProperties")):
        yield from keywords(part)


LEAVES = st.sampled_from(
    [
        {},
        True,
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"minimum": 1},
        {"enum": ["p", None]},
        {"const": 2},
        {"pattern": "^p"},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
        {"maxItems": 1, "items": {"type": "string"}},
        {"required": ["b"]},
        {"$ref": "#/$defs/D"},
        {"$ref": "#/$defs/E"},
        {"$ref": "#", "minimum": 0},
    ]
)


def members(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        "patternProperties": st.just({"^a": {}}),
        "additionalProperties": inner | st.booleans(),
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minimum": st.just(1),
    }


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries({}, optional={**members(inner), "anyOf": some, "oneOf": some, "allOf": some})


PARTS = st.recursive(LEAVES, composed, max_leaves=6)
SCHEMAS = st.builds(
    lambda top, d, e: {**top, "type": "object", "$defs": {"D": d, "E": e}},
    st.fixed_dictionaries({}, optional=members(PARTS)),
    PARTS,
    composed(st.just({"$ref": "#/$defs/E"})),
)
VALUES = st.recursive(
    st.sampled_from([None, 1, 2, 3, "p", "q", True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(schema=SCHEMAS, arguments=st.lists(ARGUMENTS, min_size=1, max_size=5))
def test_no_right_argument_becomes_impossible(schema: dict[str, Any], arguments: list[dict[str, Any]]) -> None:
    is_right = jsonschema_rs.Draft202012Validator(schema).is_valid
    for rules in (FULL, GEMINI):
        is_still_right = jsonschema_rs.Draft202012Validator(sent(schema, rules)).is_valid
        assert [value for value in arguments if is_right(value) and not is_still_right(value)] == []


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    schema=json_values(
        st.sampled_from(
            ["type", "properties", "items", "anyOf", "allOf", "$ref", "required", "format", "enum", "$defs"]
        )
        | TEXT
    )
)
def test_junk_does_no_harm(schema: Any) -> None:
    for rules in (FULL, GEMINI):
        adapted = sent(schema, rules)
        assert adapted["type"] == "object"
        assert isinstance(adapted["properties"], dict)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(schema=SCHEMAS)
def test_gemini_is_sent_what_it_hears_and_nothing_else(schema: dict[str, Any]) -> None:
    adapted = sent(schema, GEMINI)
    assert GEMINI.keywords is not None
    assert set(keywords(adapted)) <= GEMINI.keywords
    jsonschema_rs.Draft202012Validator(adapted)
