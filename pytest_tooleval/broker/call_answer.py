"""What `callTool` says of a call that was made: the result, cut where it must be, and the next steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tooleval.broker.budget import cut_value
from pytest_tooleval.broker.envelope import (
    CALL_BUDGET,
    encodable,
    json_size,
    json_text,
    next_action,
    plain_json,
    success,
)
from pytest_tooleval.cases.catalog import CatalogTool
from pytest_tooleval.measures.text import cut

_ROOM_FOR_NOTICE = 300
_LEAST_ROOM = 100
_MOST_NAMED = 5
_NARROWING = re.compile(
    r"(?i:(^|_|-)(limit|offset|page|cursor|count|top|first|max|size|fields|columns|filter|query))"
    r"|Limit|Page|Size|Results"
)


def error_text(content: Any) -> str:
    """Return what a tool said of its own failure: MCP's text blocks, a text, or JSON."""
    try:
        plain, _ = plain_json(content)
    except ValueError as error:
        return f"an error that is not JSON: {error}"
    blocks = plain.get("content") if isinstance(plain, dict) else plain
    if isinstance(blocks, list):
        texts = [
            block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        if texts:
            return "\n".join(texts)
    return plain if isinstance(plain, str) else json_text(plain)


def call_answer(tool: CatalogTool, content: Any, notices: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answer to a call that went well.

    Args:
        tool: the tool that was called.
        content: what came back; it need not be JSON.
        notices: what else the caller should know.

    Raises:
        ValueError: the result refers to itself or is nested too deeply, so that no JSON can be made of it.

    """
    plain, is_replaced = plain_json(content)
    told = list(notices)
    if is_replaced:
        told.append("what is not JSON in the result was replaced: NaN by null, other values by their text")
    frame = _framed(tool, None, told, _next_actions(tool, is_cut=True))
    shown, cutting = cut_value(plain, max(CALL_BUDGET - json_size(frame) - _ROOM_FOR_NOTICE, _LEAST_ROOM))
    if cutting:
        told.append(f"the result was cut to fit into an answer: {cutting}")
    return encodable(_framed(tool, shown, told, _next_actions(tool, is_cut=bool(cutting))))


def _framed(
    tool: CatalogTool, result: Any, notices: Sequence[str], actions: list[dict[str, Any]]
) -> dict[str, Any]:
    return success(
        toolRef=tool.ref, serverId=tool.server_id, result=result, notices=list(notices) or None, nextActions=actions
    )


def _next_actions(tool: CatalogTool, *, is_cut: bool) -> list[dict[str, Any]]:
    if tool.read_only:
        first = "Go on with 'result'; the same call would give the same again."
    else:
        first = "The call is done: do not repeat it; go on with 'result' or report it to the user."
    return [next_action(first), *([_narrow(tool)] if is_cut else [])]


def _narrow(tool: CatalogTool) -> dict[str, Any]:
    properties = tool.input_schema.get("properties", {}) if isinstance(tool.input_schema, Mapping) else {}
    names = [cut(name, 40) for name in properties if _NARROWING.search(name)][:_MOST_NAMED]
    how = f"with narrower arguments ({', '.join(names)})" if names else "with arguments that ask for less"
    if not tool.read_only:
        instruction = f"For what was cut, look for a reading tool with findTool; {tool.ref} may change things."
        return next_action(instruction, "findTool")
    return next_action(f"For what was cut, call callTool for {tool.ref} {how}.", "callTool", {"toolRef": tool.ref})
