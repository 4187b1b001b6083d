"""What `describeTool` says: the exact schema, hints, an example call, and the next step; within its budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of
from pytest_tooleval.broker.budget import first_fitting
from pytest_tooleval.broker.envelope import DESCRIBE_BUDGET, encodable, failure, json_size, next_action, success
from pytest_tooleval.broker.example import example_arguments
from pytest_tooleval.cases.catalog import CatalogTool
from pytest_tooleval.cases.jsontext import pointer_text
from pytest_tooleval.errors import nearest
from pytest_tooleval.measures.text import cut, shorten

_WHOLE_NAMES = ("properties", "$defs", "definitions", "patternProperties")
_MOST_PARTS = (200, 60, 20, 5)


@dataclass(frozen=True, slots=True)
class DescribeAnswer:
    """The answer to one request.

    Attributes:
        tool: the tool that was asked for.
        schema: its input schema now.
        status: the status of its server now.
        changes: what changed in the schema since the catalog was made; empty when nothing that matters.

    """

    tool: CatalogTool
    schema: Any
    status: str
    changes: tuple[str, ...] = ()

    def whole(self) -> dict[str, Any]:
        """Return the tool with its whole schema, or with a list of the schema's parts when that is too large."""
        variants = [
            partial(self._with_schema, 4000, with_example=True),
            partial(self._with_schema, 1000, with_example=True),
            partial(self._with_schema, 300, with_example=False),
            *(partial(self._with_parts, most) for most in _MOST_PARTS),
        ]
        return self._fitting(variants)

    def part(self, pointer: str) -> dict[str, Any]:
        """Return one part of the schema.

        Args:
            pointer: JSON pointer (RFC 6901) into the schema; a leading `#` is allowed.

        """
        found, problem = _at(self.schema, pointer)
        if problem:
            return failure(
                "ARGUMENT_VALIDATION_FAILED",
                f"at /part: {problem}",
                ref=self.tool.ref,
                server=self.tool.server_id,
                instruction=f"Call describeTool for {cut(self.tool.ref, 200)} without 'part' to see its parts.",
            )
        pointer = pointer.removeprefix("#")
        variants = [
            partial(self._part, pointer, schemaPart=found),
            *(partial(self._part, pointer, **_parts_fields(found, pointer, most)) for most in _MOST_PARTS),
        ]
        return self._fitting(variants)

    def _fitting(self, variants: list[partial[dict[str, Any]]]) -> dict[str, Any]:
        answer = first_fitting(variants, DESCRIBE_BUDGET)
        if answer is None:
            return failure("CONFIG_ERROR", "the names in this tool are too long for any answer", ref=self.tool.ref)
        return answer

    def _with_schema(self, description: int, *, with_example: bool) -> dict[str, Any]:
        problem = _problem_of(self.schema)
        example = example_arguments(self.schema) if with_example and not problem else None
        call = None if example is None else {"toolRef": self.tool.ref, "arguments": example}
        notices = [*self._notices(problem), *([] if with_example else ["the example call was left out to fit"])]
        fields = {"inputSchema": self.schema, "exampleCall": call}
        return self._told(description, fields, self._next_action(problem, call), notices)

    def _with_parts(self, most: int) -> dict[str, Any]:
        fields = _parts_fields(self.schema, "", most)
        notice = (
            f"The schema has {json_size(self.schema)} bytes and does not fit into an answer, so it is not shown. "
            "'parts' lists what it consists of: call describeTool with 'part' set to a pointer for the exact text."
        )
        largest = max(fields["parts"], key=lambda part: part["bytes"], default=None)
        arguments = {"toolRef": self.tool.ref, "part": largest["part"] if largest else ""}
        action = next_action(
            f"Call describeTool for {self.tool.ref} with 'part' for each argument you need, required ones first.",
            "describeTool",
            arguments,
        )
        return self._told(300, fields, action, [*self._notices(_problem_of(self.schema)), notice])

    def _told(
        self, description: int, fields: Mapping[str, Any], action: Mapping[str, Any], notices: list[str]
    ) -> dict[str, Any]:
        tool = self.tool
        answer = success(
            toolRef=tool.ref,
            serverId=tool.server_id,
            name=tool.name,
            title=shorten(tool.title, 200) or None,
            description=cut(tool.description, description),
            hints={"readOnly": tool.read_only, "effect": _effect(tool)},
            serverStatus=self.status,
            schemaSource="live" if self.changes else "catalog",
            **fields,
            nextAction=action,
            notices=notices or None,
        )
        return encodable(answer)

    def _part(self, pointer: str, **fields: Any) -> dict[str, Any]:
        action = next_action(
            f"Call callTool for {self.tool.ref} once you have seen the parts that you need.",
            "callTool",
            {"toolRef": self.tool.ref},
        )
        notices = None
        if "parts" in fields:
            notices = ["this part does not fit into an answer: 'parts' lists what it consists of"]
        return encodable(success(toolRef=self.tool.ref, part=pointer, **fields, nextAction=action, notices=notices))

    def _notices(self, problem: str) -> list[str]:
        notices = []
        if self.changes:
            notices.append(f"This is the live schema; the catalog's is older: {'; '.join(self.changes)}.")
        if problem:
            notices.append(
                f"The schema is not a valid JSON Schema: {problem}. Calls are refused until it is mended."
            )
        return [cut(notice, 1000) for notice in notices]

    def _next_action(self, problem: str, call: Mapping[str, Any] | None) -> dict[str, Any]:
        tool = self.tool
        if problem:
            return next_action(
                "Do not call this tool; call findTool to look for another one that does the job.", "findTool"
            )
        if self.status != "online":
            return next_action(
                f"The server {tool.server_id} is {self.status}: do not call the tool now. Call findTool to look "
                "for one on another server, or tell the user.",
                "findTool",
            )
        care = "" if tool.read_only else " It may change things: be sure that the user wants that."
        like = " as in exampleCall, with the values of your task" if call else " that fit inputSchema"
        instruction = f"Call callTool for {tool.ref} with arguments{like}.{care}"
        return next_action(instruction, "callTool", {"toolRef": tool.ref})


def _effect(tool: CatalogTool) -> str:
    return "changes nothing" if tool.read_only else "may change things; not known to be safe to repeat"


def _problem_of(schema: Any) -> str:
    """Return what is wrong with a schema, empty when nothing is."""
    try:
        checker_of(schema)
    except BrokenSchemaError as error:
        return str(error)
    return ""


def _parts_fields(value: Any, pointer: str, most: int) -> dict[str, Any]:
    parts = list(_parts(value, pointer))
    required = value.get("required") if isinstance(value, Mapping) else None
    fields: dict[str, Any] = {"parts": parts[:most]}
    if len(parts) > most:
        fields["omittedParts"] = len(parts) - most
    if isinstance(required, list):
        fields["required"] = [cut(str(name), 100) for name in required[:most]]
    return fields


def _parts(value: Any, pointer: str) -> Iterator[dict[str, Any]]:
    """Yield pointer, kind and size of what a value consists of; named subschemas one by one."""
    if isinstance(value, list):
        yield from (_entry(member, f"{pointer}/{index}") for index, member in enumerate(value))
    elif isinstance(value, Mapping):
        for key, member in value.items():
            inner = pointer + pointer_text((key,))
            if key in _WHOLE_NAMES and isinstance(member, Mapping):
                yield from (_entry(one, inner + pointer_text((name,))) for name, one in member.items())
            elif isinstance(member, Mapping | list) and key != "required":
                yield _entry(member, inner)


def _entry(value: Any, pointer: str) -> dict[str, Any]:
    kind = value.get("type") if isinstance(value, Mapping) else None
    entry = {"part": pointer, "bytes": json_size(value)}
    return {**entry, "type": kind} if isinstance(kind, str | list) else entry


def _at(value: Any, pointer: str) -> tuple[Any, str]:
    """Return the value that a pointer leads to, and what is wrong with the pointer, empty when nothing is."""
    text = pointer.removeprefix("#")
    if text and not text.startswith("/"):
        return None, f"{cut(pointer, 100)!r} is no JSON pointer; expected text as '/properties/name'"
    for step in text.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        children = _children(value)
        if name not in children:
            return None, f"the schema has nothing at {cut(pointer, 100)!r}{nearest(name, children, cutoff=0.5)}"
        value = children[name]
    return value, ""


def _children(value: Any) -> Mapping[str, Any]:
    if isinstance(value, list):
        return {str(index): member for index, member in enumerate(value)}
    return value if isinstance(value, Mapping) else {}
