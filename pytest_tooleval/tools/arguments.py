"""A call's arguments against its tool's JSON Schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.tool import Tool


def without_refused_nulls(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments less each null that stands for an optional argument left out.

    Models in a strict mode send null for what they do not want to say; a nullable argument keeps its null.
    """
    required = tool.parameters.get("required", ())
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name in required or _accepts_null(tool, name)
    }


def argument_faults(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a call's arguments, worded for the model; empty when nothing is.

    Raises:
        ToolUnavailableError: the tool's own schema is not one.

    """
    validator = _validator(json.dumps(tool.parameters), tool.name)
    if validator.is_valid(arguments):
        return []
    return [
        ": ".join([*map(str, error.instance_path), str(error.message)])
        for error in validator.iter_errors(arguments)
    ]


def _accepts_null(tool: Tool, name: str) -> bool:
    properties = tool.parameters.get("properties", {})
    if name not in properties:
        return True
    schema = {"$defs": tool.parameters.get("$defs", {}), "properties": {name: properties[name]}}
    return bool(_validator(json.dumps(schema), tool.name).is_valid({name: None}))


@functools.lru_cache(maxsize=4096)
def _validator(schema: str, tool_name: str) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(json.loads(schema))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise ToolUnavailableError(f"the schema of tool {tool_name!r} is not a JSON Schema: {error}") from None
