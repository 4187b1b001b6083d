"""What of a tool is searched: its texts, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_tooleval.cases.catalog import CatalogTool

_SUBSCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SUBSCHEMAS = ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems")


class ToolText(NamedTuple):
    """The texts of one tool; a text that it lacks is empty."""

    server: str
    name: str
    title: str
    description: str
    parameter_names: str
    parameter_descriptions: str


def text_of(tool: CatalogTool) -> ToolText:
    """Return a tool's texts; parameters are those of its input schema, nested ones included."""
    names: list[str] = []
    descriptions: list[str] = []
    for name, description in _parameters(tool.input_schema):
        names.append(name)
        descriptions.append(description)
    return ToolText(
        tool.server_id,
        tool.name,
        tool.title,
        tool.description,
        " ".join(names),
        "\n".join(filter(None, descriptions)),
    )


def _parameters(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each property in a schema, whatever its shape."""
    if isinstance(schema, list):
        for member in schema:
            yield from _parameters(member)
    elif isinstance(schema, Mapping):
        for key in _SUBSCHEMA_MAPS:
            yield from _named(schema.get(key), is_parameters=key == "properties")
        for key in _SUBSCHEMAS:
            yield from _parameters(schema.get(key))


def _named(members: Any, *, is_parameters: bool) -> Iterator[tuple[str, str]]:
    if not isinstance(members, Mapping):
        return
    for name, schema in members.items():
        if is_parameters:
            description = schema.get("description") if isinstance(schema, Mapping) else None
            yield name, description if isinstance(description, str) else ""
        yield from _parameters(schema)
