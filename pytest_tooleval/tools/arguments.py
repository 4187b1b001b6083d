"""A call's arguments against its tool's JSON Schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.tool import Tool


def without_refused_nulls(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments less each null that stands for an optional argument left out.

    Models in a strict mode send null for what they do not want to say; a nullable argument keeps its null.
    """
    required = tool.parameters.get("required", ())
    refused = {name for name, value in arguments.items() if value is None and name not in required}
    if refused:
        with suppress(ValueError):  # they are nested too deep: `argument_faults` refuses them all
            paths = [error.instance_path for error in _validator_of(tool).iter_errors(arguments)]
            refused &= {path[0] for path in paths if path}
    return {name: value for name, value in arguments.items() if name not in refused}


def argument_faults(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a call's arguments, worded for the model; empty when nothing is.

    Raises:
        ToolUnavailableError: the tool's own schema is not one.

    """
    validator = _validator_of(tool)
    try:
        if validator.is_valid(arguments):
            return []
        return [
            ": ".join([*map(str, error.instance_path), str(error.message)])
            for error in validator.iter_errors(arguments)
        ]
    except ValueError:
        return ["they are nested too deep"]


def _validator_of(tool: Tool) -> Any:
    try:
        schema = json.dumps(tool.parameters)
    except (TypeError, ValueError) as error:
        raise ToolUnavailableError(f"the schema of tool {tool.name!r} is not JSON: {error}") from None
    return _validator(schema, tool.name)


@functools.lru_cache(maxsize=4096)
def _validator(schema: str, tool_name: str) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(json.loads(schema), retriever=_refuse_to_fetch)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise ToolUnavailableError(f"the schema of tool {tool_name!r} is not a JSON Schema: {error}") from None


def _refuse_to_fetch(url: str) -> None:
    raise ValueError(f"a schema may not refer to {url}: nothing is fetched")
