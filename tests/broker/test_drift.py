"""Live schemas against catalogued ones."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tooleval.broker.drift import changes, differs, drift_of_call

BASE: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What"}, "limit": {"type": "integer"}},
    "required": ["query"],
}


def _with(**changed: Any) -> dict[str, Any]:
    return {**BASE, **changed}


@pytest.mark.parametrize(
    "live",
    [
        dict(reversed(BASE.items())),
        _with(
            title="Search", description="Searches", **{"$schema": "https://json-schema.org/draft/2020-12/schema"}
        ),
        _with(type=["object"], additionalProperties=True),
        _with(
            properties={"limit": {"type": "integer"}, "query": {"type": "string", "title": "Q", "examples": ["x"]}}
        ),
    ],
)
def test_wording_order_and_spelling_do_not_matter(live: Any) -> None:
    assert not differs(BASE, live)


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (_with(required=["query", "limit"]), ["'limit' is now required"]),
        (_with(required=[]), ["'query' is no longer required"]),
        (_with(additionalProperties=False), ["the schemas differ in details outside the list of arguments"]),
        (
            _with(properties={"query": {"type": "string"}, "limit": {"type": "string"}}),
            ["'limit' changed from type integer to string"],
        ),
        (
            {"properties": {"cql": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["cql"]},
            ["'query' is no longer an argument", "'cql' is a new required argument"],
        ),
        (
            _with(properties={**BASE["properties"], "description": {"type": "string"}}),
            ["'description' is a new argument"],
        ),
    ],
)
def test_changes(live: Any, expected: list[str]) -> None:
    assert differs(BASE, live)
    assert changes(BASE, live) == expected


def test_many_changes_are_few_lines() -> None:
    live = {"properties": {f"p{i}": {} for i in range(100)}}

    assert len(changes(BASE, live)) == 9
    assert changes(BASE, live)[-1] == "and 94 more changes"


@pytest.mark.parametrize(
    ("live", "arguments", "expected"),
    [
        (
            _with(required=["query", "limit"]),
            {"query": "x"},
            ["the required argument 'limit' is missing (a whole number)"],
        ),
        (_with(required=["query", "limit"]), {"query": "x", "limit": 1}, []),
        ({"properties": {"cql": {}}}, {"query": "x"}, ["'query' is no longer an argument"]),
        ({"properties": {"cql": {}}, "required": ["cql"]}, {"cql": "x"}, []),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, {"query": "x"}, []),
        (
            {"type": "nonsense"},
            {"query": "x"},
            [
                "the live schema is not a JSON Schema: at /type: 'nonsense' is not valid under any of the given schemas"
            ],
        ),
    ],
)
def test_a_call_is_touched_when_it_cannot_be_made_any_more(live: Any, arguments: Any, expected: list[str]) -> None:
    assert drift_of_call(BASE, live, arguments) == expected
