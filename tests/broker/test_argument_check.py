"""Arguments against a tool's schema: drafts, references, broken schemas, and the words for what is wrong."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
NODE = {"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}}}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            {"required": ["a"], "properties": {"a": {"type": "string"}}},
            {},
            "the required argument 'a' is missing (a string)",
        ),
        (
            {"required": ["a"], "properties": {"a": {"type": "string", "description": "Who"}}},
            {},
            "the required argument 'a' is missing (a string: Who)",
        ),
        (
            {"properties": {"to": {"type": "array", "items": {"type": "string"}}}},
            {"to": "x"},
            'at /to: found "x"; expected a list of strings',
        ),
        (
            {"properties": {"n": {"type": ["integer", "null"]}}},
            {"n": "1"},
            'at /n: found "1"; expected a whole number or null',
        ),
        ({"properties": {"n": {"type": "integer"}}}, {"n": True}, "at /n: found true; expected a whole number"),
        (
            {"properties": {"color": {"enum": ["red", "green"]}}},
            {"color": "gren"},
            'at /color: found "gren"; expected one of ["red", "green"] (did you mean \'green\'?)',
        ),
        (
            {"properties": {"query": {}}, "additionalProperties": False},
            {"qury": 1},
            "there is no argument 'qury' (did you mean 'query'?)",
        ),
        ({"additionalProperties": False}, {"x": 1}, "there is no argument 'x'; none is taken"),
        ({"properties": {"a/b": {"type": "null"}}}, {"a/b": 1}, "at /a~1b: found 1; expected null"),
        ({"properties": {"n": {"minimum": 3}}}, {"n": 1}, "at /n: found 1; expected a number with minimum 3"),
        (
            {"properties": {"s": {"maxLength": 2}}},
            {"s": "abc"},
            'at /s: found "abc", of length 3; expected maxLength 2',
        ),
        (
            {"properties": {"s": {"pattern": r"^\p{L}+$"}}},
            {"s": "1"},
            r'at /s: found "1"; expected text that matches ^\p{L}+$',
        ),
        ({"properties": {"s": {"const": "x"}}}, {"s": "y"}, 'at /s: found "y"; expected exactly "x"'),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "found an object ({}); fits none of 2 alternatives; nearest: the required argument 'a' is missing",
        ),
        ({"oneOf": [{}, {}]}, {}, "found an object ({}); fits more than one of 2 alternatives"),
        ({"properties": {"s": False}}, {"s": 1}, "found 1; expected nothing here"),
        (
            {"$ref": "#/$defs/node", **NODE},
            {"next": {"next": {"v": "x"}}},
            'at /next/next/v: found "x"; expected a whole number',
        ),
    ],
)
def test_one_fault(schema: Any, value: Any, expected: str) -> None:
    assert checker_of(schema).faults(value) == [expected]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"anything": 1}),
        (True, {}),
        ({"properties": {"n": {"type": "integer"}}}, {"n": 5.0}),
        ({"properties": {"d": {"format": "date"}}}, {"d": "no date"}),
        ({"properties": {"s": {"pattern": "b"}}}, {"s": "abc"}),
        (
            {
                "$schema": DRAFT_7,
                "definitions": {"t": {"type": "string"}},
                "properties": {"s": {"$ref": "#/definitions/t"}},
            },
            {"s": "x"},
        ),
        (
            {"$schema": "https://example.com/of-its-own", "properties": {"$schema": {"type": "string"}}},
            {"$schema": "x"},
        ),
        ({"properties": {"s": {"$ref": DRAFT_7}}}, {"s": {"type": "string"}}),
    ],
)
def test_valid(schema: Any, value: Any) -> None:
    assert checker_of(schema).is_valid(value)
    assert checker_of(schema).faults(value) == []


def test_the_draft_is_the_one_that_the_schema_names() -> None:
    property_schema = {"n": {"minimum": 1, "exclusiveMinimum": True}}

    assert checker_of({"$schema": DRAFT_4, "properties": property_schema}).faults({"n": 1})
    with pytest.raises(BrokenSchemaError, match="exclusiveMinimum"):
        checker_of({"properties": property_schema})


def test_2020_12_is_the_draft_where_none_is_named() -> None:
    checker = checker_of({"properties": {"p": {"prefixItems": [{"type": "integer"}]}}})

    assert checker.faults({"p": ["x"]})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("text", "expected a JSON Schema"),
        ([], "expected a JSON Schema"),
        ({"type": "nonsense"}, "at /type"),
        ({"properties": {"a": {"required": "a"}}}, "at /properties/a/required"),
        ({"$ref": "#/$defs/missing"}, "'#/$defs/missing' leads nowhere"),
        ({"properties": {"a": {"$ref": "https://example.com/x.json"}}}, "nothing is fetched"),
        ({"properties": {"a": {"pattern": "["}}}, "the pattern '\\[' cannot be read"),
        ({"default": {1, 2}}, "not JSON"),
    ],
)
def test_a_schema_that_is_none(schema: Any, expected: str) -> None:
    for _ in range(2):
        with pytest.raises(BrokenSchemaError, match=expected.replace("$", r"\$")):
            checker_of(schema)


def test_references_inside_values_are_no_references() -> None:
    assert checker_of({"properties": {"a": {"default": {"$ref": "#/nowhere"}}}}).is_valid({})


def test_a_schema_that_only_refers_to_itself_is_broken() -> None:
    with pytest.raises(BrokenSchemaError, match="circle"):
        checker_of({"$ref": "#"}).faults({})


def test_no_connection_is_made_for_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    with pytest.raises(BrokenSchemaError, match="leads nowhere"):
        checker_of({"$ref": "http://127.0.0.1:9/schema.json"})


def test_a_catastrophic_pattern_ends_in_time() -> None:
    checker = checker_of({"properties": {"s": {"pattern": "^(a|aa)+$"}}})

    with pytest.raises(BrokenSchemaError, match="timed out"):
        checker.faults({"s": "a" * 60 + "b"})


def test_many_faults_are_few_lines_and_short() -> None:
    schema = {"required": [f"a{i}" for i in range(50)], "additionalProperties": False}

    faults = checker_of(schema).faults({f"b{i}" * 1000: "x" * 100_000 for i in range(50)})

    assert len(faults) == 7
    assert faults[-1].startswith("and ")
    assert all(len(fault) < 600 for fault in faults)
