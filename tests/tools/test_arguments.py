from __future__ import annotations

from typing import Any

import pytest

from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.arguments import argument_faults, without_refused_nulls
from pytest_tooleval.tools.tool import Tool


def tool(parameters: Any) -> Tool:
    return Tool("own", "d", parameters, "read", lambda arguments, context: "")


SEARCH = tool(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "note": {"type": ["string", "null"]},
            "sort": {"enum": ["up", "down"]},
            "where": {"$ref": "#/definitions/filter"},
            "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "any": {},
        },
        "definitions": {
            "filter": {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]}
        },
        "required": ["path"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({"path": "a", "limit": None}, {"path": "a"}),
        ({"path": "a", "sort": None, "where": None, "size": None}, {"path": "a"}),
        ({"path": "a", "note": None}, {"path": "a", "note": None}),
        ({"path": "a", "any": None}, {"path": "a", "any": None}),
        ({"path": None}, {"path": None}),
        ({"path": 5, "limit": None}, {"path": 5}),
        ({"path": "a", "limit": "x"}, {"path": "a", "limit": "x"}),
        ({"path": "a", "invented": None}, {"path": "a", "invented": None}),
        ({"path": "a", "where": {"field": None}}, {"path": "a", "where": {"field": None}}),
        ({}, {}),
    ],
)
def test_nulls_that_the_schema_refuses_are_left_out(arguments, left):
    before = dict(arguments)

    assert without_refused_nulls(SEARCH, arguments) == left
    assert arguments == before


def test_without_a_schema_every_null_stays():
    assert without_refused_nulls(tool({}), {"a": None}) == {"a": None}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"path": "a", "limit": 2.0, "where": {"field": "x"}, "size": "1"}, []),
        ({}, ['"path" is a required property']),
        ({"path": None}, ['path: null is not of type "string"']),
        ({"path": "a", "limit": "2"}, ['limit: "2" is not of type "integer"']),
        ({"path": "a", "limit": True}, ['limit: true is not of type "integer"']),
        ({"path": "a", "where": {}}, ['where: "field" is a required property']),
        ({"path": "a", "where": {"field": [1]}}, ['where: field: [1] is not of type "string"']),
        ({"path": "a", "lmit": 1}, ["Additional properties are not allowed ('lmit' was unexpected)"]),
        ({"path": "a", "limit": 10**400}, []),
    ],
)
def test_faults_are_worded_for_the_model(arguments, faults):
    assert argument_faults(SEARCH, arguments) == faults


def test_every_fault_is_told():
    assert sorted(argument_faults(SEARCH, {"limit": "x", "note": 5})) == [
        '"path" is a required property',
        'limit: "x" is not of type "integer"',
        'note: 5 is not of types "null", "string"',
    ]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"type": "objekt"}, "the schema of tool 'own' is not a JSON Schema: "),
        ({"$ref": "#/nowhere"}, "the schema of tool 'own' is not a JSON Schema: "),
        ({"enum": {1}}, "the schema of tool 'own' is not JSON: Object of type set is not JSON serializable"),
    ],
)
def test_a_schema_that_is_none(parameters, message):
    with pytest.raises(ToolUnavailableError) as caught:
        argument_faults(tool(parameters), {})
    assert str(caught.value).startswith(message)
