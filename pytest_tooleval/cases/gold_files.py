"""Gold-set files to rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.gold import (
    CacheWorkload,
    DiscoveryRow,
    ErgonomicsCase,
    GoldCase,
    InvocationScenario,
    PerformanceWorkload,
    Request,
    TokensWorkload,
)
from pytest_tooleval.cases.jsontext import Document, Element, pointer_text, read_document, read_json_lines
from pytest_tooleval.cases.schema import Fault, Schema, describe
from pytest_tooleval.errors import CaseError, Problem, nearest

DISCOVERY_SCHEMA = Schema("discovery")
INVOCATION_SCHEMA = Schema("invocation")
ERGONOMICS_SCHEMA = Schema("ergonomics")
WORKLOADS_SCHEMA = Schema("workloads")
DEFAULT_ITERATIONS = 100
_SLUG_CHARS = 60
_MENDABLE = ("ARGUMENT_VALIDATION_FAILED", "TOOL_SCHEMA_CHANGED")
_NOT_IN_SLUG = re.compile(r"[^\w]+")
_Case = TypeVar("_Case", bound=GoldCase)


def load_discovery(path: Path, shown: Path, refs: Collection[str]) -> list[DiscoveryRow]:
    """Load the rows of one `discovery/*.jsonl` file, in file order.

    Args:
        path: the file.
        shown: its name in messages.
        refs: the refs of the corpus's catalog.

    Raises:
        CaseError: with every fault of the file, each with line, field and what would be right.

    """
    elements, problems = read_json_lines(path, shown)
    for element in elements:
        for fault in _value_faults(element.value, DISCOVERY_SCHEMA, "a row", _row_faults, refs):
            problems.append(Problem(shown, fault.message, element.line, pointer_text(fault.path) or None))
    if not problems:
        problems += _repeated(shown, [(element.value.get("id"), element.line) for element in elements])
    if problems:
        raise CaseError(problems)
    ids = _row_ids(element.value for element in elements)
    return [_row(element, path, index, next(ids)) for index, element in enumerate(elements)]


def load_invocation(path: Path, shown: Path, refs: Collection[str]) -> list[InvocationScenario]:
    """Load the scenarios of one `invocation/*.json` file.

    Raises:
        CaseError: as `load_discovery`.

    """
    document = _checked(path, shown, INVOCATION_SCHEMA, "scenarios", _scenario_faults, refs)
    return [
        InvocationScenario(
            id=element.value["name"],
            tool_ref=element.value["toolRef"],
            arguments=element.value["arguments"],
            expected_outcome=element.value["expectedOutcome"],
            rationale=element.value["rationale"],
            source=Source(path, element.line, index),
            expected_error=element.value.get("expectedError", ""),
            corrected=element.value.get("corrected"),
            live_schema=element.value.get("liveSchema"),
        )
        for index, element in enumerate(document.list_at("scenarios"))
    ]


def load_ergonomics(path: Path, shown: Path, refs: Collection[str]) -> list[ErgonomicsCase]:
    """Load the cases of one `ergonomics/*.json` file; a tool that is not catalogued may be asked for on purpose.

    Raises:
        CaseError: as `load_discovery`.

    """
    document = _checked(path, shown, ERGONOMICS_SCHEMA, "cases", _ergonomics_faults, refs)
    return [
        ErgonomicsCase(
            id=element.value["name"],
            kind=element.value["kind"],
            rationale=element.value["rationale"],
            source=Source(path, element.line, index),
            query=element.value.get("query", ""),
            tool_ref=element.value.get("toolRef", ""),
            arguments=element.value.get("arguments", {}),
            expect_decision=element.value.get("expectDecision", ""),
            expect_error_type=element.value.get("expectErrorType", ""),
        )
        for index, element in enumerate(document.list_at("cases"))
    ]


def load_workloads(
    path: Path, shown: Path, refs: Collection[str]
) -> list[TokensWorkload | CacheWorkload | PerformanceWorkload]:
    """Load the workloads of one `workloads/*.json` file.

    Raises:
        CaseError: as `load_discovery`.

    """
    document = read_document(path, shown)
    value: Any = document.elements[0].value if document.elements else None
    faults = list(_document_faults(document, WORKLOADS_SCHEMA)) or list(_workload_faults(value, refs))
    if faults:
        raise CaseError([_problem(document, fault) for fault in faults])
    return list(_workloads(document, value, path))


def _checked(
    path: Path,
    shown: Path,
    schema: Schema,
    key: str,
    further: Callable[[Mapping[str, Any], Collection[str]], Iterator[Fault]],
    refs: Collection[str],
) -> Document:
    document = read_document(path, shown)
    faults = list(_document_faults(document, schema))
    if not faults:
        for index, value in enumerate(document.elements[0].value[key]):
            faults += [Fault((key, index, *fault.path), fault.message) for fault in further(value, refs)]
    problems = [_problem(document, fault) for fault in faults]
    if not problems:
        problems = _repeated(shown, [(element.value["name"], element.line) for element in document.list_at(key)])
    if problems:
        raise CaseError(problems)
    return document


def _document_faults(document: Document, schema: Schema) -> Iterator[Fault]:
    if document.is_list or not isinstance(document.elements[0].value, dict):
        found = "a list" if document.is_list else describe(document.elements[0].value)
        yield Fault((), f"found {found}; expected an object")
    elif not schema.is_valid(document.elements[0].value):
        yield from schema.faults(document.elements[0].value)


def _problem(document: Document, fault: Fault) -> Problem:
    return Problem(document.path, fault.message, document.line_of(fault.path), pointer_text(fault.path) or None)


def _value_faults(
    value: Any,
    schema: Schema,
    noun: str,
    further: Callable[[Mapping[str, Any], Collection[str]], Iterator[Fault]],
    refs: Collection[str],
) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault((), f"found {describe(value)}; expected {noun}, which is an object")
    elif not schema.is_valid(value):
        yield from schema.faults(value)
    else:
        yield from further(value, refs)


def _row_faults(row: Mapping[str, Any], refs: Collection[str]) -> Iterator[Fault]:
    if row["category"] == "no_match" and row["acceptable"]:
        yield Fault(("acceptable",), "a no_match row has no acceptable tool; expected []")
    if row["category"] != "no_match" and not row["acceptable"]:
        yield Fault(("acceptable",), f"is empty; a {row['category']} row names at least one tool")
    for index, ref in enumerate(row["acceptable"]):
        yield from _unknown_ref(ref, refs, ("acceptable", index))


def _unknown_ref(ref: str, refs: Collection[str], path: tuple[str | int, ...]) -> Iterator[Fault]:
    if ref not in refs:
        yield Fault(path, f"the catalog has no tool {ref!r}{nearest(ref, refs)}")


def _scenario_faults(scenario: Mapping[str, Any], refs: Collection[str]) -> Iterator[Fault]:
    outcome, error = scenario["expectedOutcome"], scenario.get("expectedError")
    if outcome != "error" or error != "TOOL_NOT_FOUND":
        yield from _unknown_ref(scenario["toolRef"], refs, ("toolRef",))
    if error == "TOOL_SCHEMA_CHANGED" and "liveSchema" not in scenario:
        yield Fault((), f"a scenario that expects {error!r} needs 'liveSchema', what the server has now")
    if outcome == "repair" and error not in {None, *_MENDABLE}:
        yield Fault(
            ("expectedError",), f"other arguments do not mend {error}; a repair is of {' or '.join(_MENDABLE)}"
        )
    if outcome == "success" and "expectedError" in scenario:
        yield Fault(("expectedError",), "a scenario that is to succeed expects no error")
    if outcome != "success" and "expectedError" not in scenario:
        yield Fault((), f"a scenario with the outcome {outcome!r} needs 'expectedError'")
    if outcome == "repair" and "corrected" not in scenario:
        yield Fault((), "a scenario with the outcome 'repair' needs 'corrected', the arguments of the second call")
    if outcome != "repair" and "corrected" in scenario:
        yield Fault(("corrected",), f"a scenario with the outcome {outcome!r} makes no second call")


def _ergonomics_faults(case: Mapping[str, Any], _: Collection[str]) -> Iterator[Fault]:
    yield from _operand_faults(case["kind"], case)


def _operand_faults(operation: str, request: Mapping[str, Any]) -> Iterator[Fault]:
    wanted, other = ("query", "toolRef") if operation == "find" else ("toolRef", "query")
    if wanted not in request:
        yield Fault((), f"a {operation!r} request needs {wanted!r}")
    if other in request:
        yield Fault((other,), f"a {operation!r} request has {wanted!r}, and no {other!r}")
    if operation != "call" and "arguments" in request:
        yield Fault(("arguments",), f"a {operation!r} request has no arguments")


def _workload_faults(value: Mapping[str, Any], refs: Collection[str]) -> Iterator[Fault]:
    if "tokens" in value:
        yield from _unknown_ref(value["tokens"]["toolRef"], refs, ("tokens", "toolRef"))
    for index, request in enumerate(value.get("cache", {}).get("calls", ())):
        here = ("cache", "calls", index)
        for fault in _operand_faults(request["operation"], request):
            yield Fault((*here, *fault.path), fault.message)
        if "toolRef" in request:
            yield from _unknown_ref(request["toolRef"], refs, (*here, "toolRef"))


def _workloads(
    document: Document, value: Mapping[str, Any], path: Path
) -> Iterator[TokensWorkload | CacheWorkload | PerformanceWorkload]:
    def source(key: str, index: int) -> Source:
        return Source(path, document.line_of((key,)), index)

    if "tokens" in value:
        task = value["tokens"]
        yield TokensWorkload(task["query"], task["toolRef"], task["arguments"], source("tokens", 0))
    if "cache" in value:
        yield CacheWorkload(tuple(map(_request, value["cache"]["calls"])), source("cache", 1))
    if "performance" in value:
        timed = value["performance"]
        iterations = int(timed.get("iterations", DEFAULT_ITERATIONS))
        yield PerformanceWorkload(tuple(timed["queries"]), iterations, source("performance", 2))


def _request(value: Mapping[str, Any]) -> Request:
    return Request(value["operation"], value.get("query", ""), value.get("toolRef", ""), value.get("arguments"))


def _repeated(shown: Path, named: Iterable[tuple[str | None, int]]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for name, line in named:
        if name in first:
            message = f"the name {name!r} is taken on line {first[name]}; give it another"
            problems.append(Problem(shown, message, line))
        elif name is not None:
            first[name] = line
    return problems


def _row_ids(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each row's id, or a slug of its intent; a slug that is taken gets the next free number."""
    listed = list(rows)
    taken = {row["id"] for row in listed if "id" in row}
    numbers = Counter[str]()
    for row in listed:
        yield row["id"] if "id" in row else _free(slug_of(row["intent"]), taken, numbers)


def _free(slug: str, taken: set[str], numbers: Counter[str]) -> str:
    while True:
        numbers[slug] += 1
        found = slug if numbers[slug] == 1 else f"{slug}-{numbers[slug]}"
        if found not in taken:
            taken.add(found)
            return found


def slug_of(text: str) -> str:
    """Return a readable id for a text: its words in lower case, joined by dashes, in any script."""
    slug = _NOT_IN_SLUG.sub("-", text.casefold()).strip("-_")
    if len(slug) > _SLUG_CHARS:
        slug = slug[:_SLUG_CHARS].rsplit("-", 1)[0] if "-" in slug[:_SLUG_CHARS] else slug[:_SLUG_CHARS]
    return slug or "row"


def _row(element: Element, path: Path, index: int, row_id: str) -> DiscoveryRow:
    value = element.value
    return DiscoveryRow(
        id=row_id,
        intent=value["intent"],
        category=value["category"],
        acceptable=tuple(value["acceptable"]),
        rationale=value["rationale"],
        source=Source(path, element.line, index),
        k=int(value.get("k", 1)),
    )
