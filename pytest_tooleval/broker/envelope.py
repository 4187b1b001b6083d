"""The shape of a broker's answers: plain JSON dicts, an error envelope, and their size on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_args

from pytest_tooleval.cases.jsontext import MOST_DEPTH
from pytest_tooleval.measures.text import clean_text, cut

ErrorType = Literal[
    "TOOL_NOT_FOUND",
    "DOWNSTREAM_SERVER_OFFLINE",
    "ARGUMENT_VALIDATION_FAILED",
    "TOOL_SCHEMA_CHANGED",
    "DOWNSTREAM_CALL_FAILED",
    "AUTH_UNAVAILABLE",
    "SEMANTIC_SEARCH_UNAVAILABLE",
    "CONFIG_ERROR",
]
ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)

Json = TypeVar("Json")

FIND_BUDGET = 6000
DESCRIBE_BUDGET = 20_000
CALL_BUDGET = 8000
"""Bytes of JSON text, in UTF-8, that an answer may have."""

NULLABLE = frozenset({"result", "selectedToolRef"})
"""Fields whose null says something."""

_MOST_MESSAGE = 1200
_MOST_INSTRUCTION = 700
_MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class Disposition:
    """What an agent is told to do about an error.

    Attributes:
        retryable: whether the same call, sent once more with nothing else changed, may succeed.
        instruction: the next step; `{ref}` and `{server}` stand for the tool and its server.

    """

    retryable: bool
    instruction: str


DISPOSITIONS: Mapping[ErrorType, Disposition] = {
    "TOOL_NOT_FOUND": Disposition(
        False, "Do not guess refs: call findTool with what you want to do and use the toolRef it selects."
    ),
    "DOWNSTREAM_SERVER_OFFLINE": Disposition(
        False,
        "Do not send this call again while the server {server} is offline. Call findTool with your goal to look "
        "for a tool on another server; if there is none, tell the user that {server} is offline.",
    ),
    "ARGUMENT_VALIDATION_FAILED": Disposition(
        False,
        "Correct the arguments that the message names, then call callTool for {ref} with the corrected ones; "
        "describeTool shows the exact schema.",
    ),
    "TOOL_SCHEMA_CHANGED": Disposition(
        False,
        "Do not send these arguments again. Call describeTool for {ref}, which shows the live schema, and build "
        "new arguments from it.",
    ),
    "DOWNSTREAM_CALL_FAILED": Disposition(
        False,
        "Do not repeat the call unchanged: it may have taken effect. Read the message; change the arguments if it "
        "blames them, else tell the user that {ref} failed and with which message.",
    ),
    "AUTH_UNAVAILABLE": Disposition(
        False,
        "Do not call tools of the server {server} until its credentials are set. Tell the user which server needs "
        "them; meanwhile call findTool to look for a tool on another server.",
    ),
    "SEMANTIC_SEARCH_UNAVAILABLE": Disposition(
        False,
        "Search by meaning does not work now. Tell the user, or name a tool that you know: describeTool and "
        "callTool work without the search.",
    ),
    "CONFIG_ERROR": Disposition(
        False,
        "No call can mend this. Tell the user what the message says has to be set right; meanwhile call findTool "
        "to look for another tool that does the job.",
    ),
}


def failure(
    kind: ErrorType,
    message: str,
    *,
    ref: str = "",
    server: str = "",
    instruction: str = "",
    retryable: bool | None = None,
) -> dict[str, Any]:
    """Return an error envelope, bounded in size whatever the texts are.

    Args:
        kind: the error's type.
        message: what went wrong and where.
        ref: the tool that was asked for, or empty.
        server: its server, or empty.
        instruction: the next step, in place of the type's own.
        retryable: in place of the type's own.

    """
    disposition = DISPOSITIONS[kind]
    shown_ref, shown_server = _shown(ref, _MOST_NAME), _shown(server, _MOST_NAME)
    if not instruction:
        names = {"ref": shown_ref or "the tool", "server": shown_server or "of that tool"}
        instruction = disposition.instruction.format(**names)
    error = {
        "type": kind,
        "toolRef": shown_ref or None,
        "serverId": shown_server or None,
        "retryable": disposition.retryable if retryable is None else retryable,
        "message": _shown(message, _MOST_MESSAGE),
        "agentInstruction": _shown(instruction, _MOST_INSTRUCTION),
    }
    return {"ok": False, "error": error}


def success(**fields: Any) -> dict[str, Any]:
    """Return the envelope of an answer that is no error: `ok` and the fields.

    Fields that are None are left out, but for those in `NULLABLE`.
    """
    return {"ok": True, **{name: value for name, value in fields.items() if value is not None or name in NULLABLE}}


def next_action(
    instruction: str, tool: str | None = None, arguments: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a next step: words, and where there is one the call to make (`tool` is one of the broker's three)."""
    action: dict[str, Any] = {} if tool is None else {"tool": tool}
    if arguments is not None:
        action["arguments"] = dict(arguments)
    return {**action, "instruction": instruction}


def error_type(answer: Mapping[str, Any]) -> str | None:
    """Return the type of an error envelope, None for any other answer."""
    error = answer.get("error")
    return error.get("type") if isinstance(error, Mapping) else None


def json_text(answer: Any) -> str:
    """Return an answer as every surface sends it: compact JSON, other scripts as they are."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_size(answer: Any) -> int:
    """Return the bytes of an answer's JSON text in UTF-8."""
    return len(json_text(answer).encode("utf-8", "surrogatepass"))


def canonical_json(value: Any) -> str:
    """Return one text for all spellings of a JSON value: keys sorted, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def encodable(value: Json) -> Json:
    """Return a JSON value in which halves of surrogate pairs are replaced; the value itself when there are none."""
    try:
        json_text(value).encode()
    except UnicodeEncodeError:
        return cast(Json, _cleaned(value))
    return value


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_cleaned(member) for member in value]
    return value


def is_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than anything here, which recurses, should have to walk through."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        members = (
            member for parent in level for member in (parent.values() if isinstance(parent, dict) else parent)
        )
        level = [member for member in members if isinstance(member, dict | list)]
    return bool(level)


def plain_json(value: Any) -> tuple[Any, bool]:
    """Return what JSON makes of a Python value, and whether something had to be replaced.

    NaN and infinities become null, what JSON does not know becomes its text, halves of surrogate pairs U+FFFD.

    Raises:
        ValueError: it refers to itself, or is nested too deeply.

    """
    replaced: list[object] = []

    def as_text(member: object) -> str:
        replaced.append(member)
        return str(member)

    def as_null(name: str) -> None:
        replaced.append(name)

    try:
        plain = json.loads(json.dumps(value, default=as_text), parse_constant=as_null)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except TypeError as error:
        raise ValueError(str(error)) from None
    if is_deep(plain):
        raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
    clean = encodable(plain)
    return clean, bool(replaced) or clean is not plain


def _shown(text: str, most: int) -> str:
    return cut(clean_text(text), most)
