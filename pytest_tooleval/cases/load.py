"""Fixture files to cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import (
    FileCheck,
    NameSequence,
    Page,
    ScriptedCall,
    ScriptedTurn,
    ServerUse,
    Source,
    TextCheck,
    ToolUseCase,
    Verifier,
)
from pytest_tooleval.cases.checks import fixture_faults
from pytest_tooleval.cases.jsontext import Document, Element, pointer_text, read_document
from pytest_tooleval.cases.schema import Fault, Schema, describe
from pytest_tooleval.errors import CaseError, Problem

FIXTURE_SCHEMA = Schema("fixture", "fixture")


def load_fixture_file(path: Path, shown: Path) -> list[ToolUseCase]:
    """Load the cases of one fixture file, in file order.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        CaseError: with the faults of every fixture, each with line, JSON pointer and what would be right.

    """
    return cases_of(read_document(path, shown), path)


def cases_of(document: Document, path: Path) -> list[ToolUseCase]:
    """Check a decoded fixture file and build its cases.

    Raises:
        CaseError: as `load_fixture_file`.

    """
    if not document.elements:
        raise CaseError([Problem(document.path, "is an empty list; expected at least one fixture", 1)])
    problems = list(_problems(document))
    if problems:
        raise CaseError(problems)
    default_id = path.stem
    cases = [
        _case(element, Source(path, element.line, index), default_id)
        for index, element in enumerate(document.elements)
    ]
    problems = [*_id_problems(document, default_id), *_repeated_ids(document.path, cases)]
    if problems:
        raise CaseError(problems)
    return cases


def _problems(document: Document) -> Iterator[Problem]:
    for index, element in enumerate(document.elements):
        prefix: tuple[str | int, ...] = (index,) if document.is_list else ()
        for fault in _element_faults(element):
            pointer = (*prefix, *fault.path)
            yield Problem(document.path, fault.message, document.line_of(pointer), pointer_text(pointer) or None)


def _element_faults(element: Element) -> Iterator[Fault]:
    value = element.value
    if not isinstance(value, dict):
        yield Fault((), f"found {describe(value)}; expected a fixture, which is an object with 'task'")
    else:
        yield from FIXTURE_SCHEMA.faults(value) or fixture_faults(value)


def _id_problems(document: Document, default_id: str) -> Iterator[Problem]:
    """Check the id that a fixture without one takes from its file's name."""
    without = [element for element in document.elements if "id" not in element.value]
    if len(without) > 1:
        message = f"{len(without)} fixtures of this list have no 'id'; give each one"
        yield Problem(document.path, message, without[1].line)
    elif without and not FIXTURE_SCHEMA.is_valid({"task": "x", "id": default_id}):
        message = f"the file's name {default_id!r} cannot be an id; give the fixture an 'id'"
        yield Problem(document.path, message, without[0].line)


def _repeated_ids(shown: Path, cases: Sequence[ToolUseCase]) -> Iterator[Problem]:
    first: dict[str, ToolUseCase] = {}
    for case in cases:
        earlier = first.setdefault(case.id, case)
        if earlier is not case:
            message = f"the id {case.id!r} is taken by the fixture on line {earlier.source.line}; give it another"
            yield Problem(shown, message, case.source.line)


def _case(element: Element, source: Source, default_id: str) -> ToolUseCase:
    value: Mapping[str, Any] = element.value
    return ToolUseCase(
        id=value.get("id", default_id),
        task=value["task"],
        source=source,
        description=value.get("description", ""),
        files=value.get("files", {}),
        git=value.get("git", False),
        expected=_sequences(value["expected"]) if "expected" in value else None,
        verifier=_verifier(value["verifier"]) if value.get("verifier") else None,
        tool_permission=({"mcp": "allow"} if "mcp" in value else {}) | value.get("tool_permission", {}),
        tools_deny=tuple(value.get("tools_deny", ())),
        mcp=tuple(map(_server_use, value.get("mcp", ()))),
        tags=tuple(value.get("tags", ())),
        max_turns=int(value["max_turns"]) if "max_turns" in value else None,
        timeout=float(value["timeout"]) if "timeout" in value else None,
        pages={url: _page(page) for url, page in value.get("pages", {}).items()},
        mock=tuple(map(_turn, value["mock"])) if "mock" in value else None,
    )


def _sequences(value: Sequence[Any]) -> tuple[NameSequence, ...]:
    if value and isinstance(value[0], list):
        return tuple(tuple(names) for names in value)
    return (tuple(value),)


def _server_use(value: str | Mapping[str, Any]) -> ServerUse:
    if isinstance(value, str):
        return ServerUse(value)
    return ServerUse(value["server"], tuple(value["tools"]) if "tools" in value else None)


def _verifier(value: Mapping[str, Any]) -> Verifier | None:
    if all(key.startswith("_") for key in value):
        return None
    return Verifier(
        exact=_sequences(value["exact"]) if "exact" in value else None,
        must_include=tuple(value.get("must_include", ())),
        avoid=tuple(value.get("avoid", ())),
        max_calls=int(value["max_calls"]) if "max_calls" in value else None,
        min_calls=int(value["min_calls"]) if "min_calls" in value else None,
        args=value.get("args", {}),
        args_exact=value.get("args_exact", {}),
        in_order=tuple(value.get("in_order", ())),
        any_order=tuple(value["any_order"]) if "any_order" in value else None,
        no_calls=value.get("no_calls", False),
        answer=_text_check(value["answer"]) if "answer" in value else None,
        files={path: _file_check(check) for path, check in value.get("files", {}).items()},
    )


def _text_check(value: Mapping[str, Any]) -> TextCheck:
    return TextCheck(_texts(value.get("contains", ())), _texts(value.get("not_contains", ())), value.get("regex"))


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _file_check(value: Mapping[str, Any]) -> FileCheck:
    return FileCheck(value.get("exists"), value.get("equals"), _text_check(value))


def _page(value: str | Mapping[str, Any]) -> Page:
    if isinstance(value, str):
        return Page(value)
    page = Page(**value)
    return replace(page, status=int(page.status))


def _turn(value: Mapping[str, Any]) -> ScriptedTurn:
    calls = (ScriptedCall(call["name"], call.get("arguments", {})) for call in value.get("calls", ()))
    return ScriptedTurn(value.get("text", ""), tuple(calls))
