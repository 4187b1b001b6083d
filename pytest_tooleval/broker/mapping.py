"""How any tool broker behind MCP is asked, and where its answers say what: a mapping file, checked and typed.

What a mapping does not name, the broker does not offer: it is not measured. Places in answers are JSON pointers
(RFC 6901).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_tooleval.broker.broker import MOST_LIMIT
from pytest_tooleval.broker.surface import CALL, DESCRIBE, FIND
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.cases.jsontext import pointer_text, read_document
from pytest_tooleval.cases.schema import Schema
from pytest_tooleval.errors import CaseError, ConfigError, Problem
from pytest_tooleval.measures.text import cut

MAPPING_SCHEMA = Schema("broker-mapping")
DEFAULT_REFS = "{server}.{name}"
_NOTHING = object()
_MOST_PLACES = 5
_MOST_DEPTH = 2


@dataclass(frozen=True, slots=True)
class FindMapping:
    """How a broker is asked for tools.

    Attributes:
        tool: the name of the MCP tool.
        query: its argument for the query.
        limit: its argument for the most tools in the answer, empty when it has none.
        most_results: the most that it may be asked for.
        constants: arguments that are always passed.
        results: where the found tools are, best first: each a list, or one of them, or null for none, or, without a
            `ref`, a text with one ref a line.
        ref: where in a found tool its ref is.
        score: where in a found tool its score is, None when there is none.
        decision: where the decision is; without one an empty list is a refusal, and any other says `use`.
        decisions: the broker's words for decisions that have another name here.
        confidence: where the confidence is.
        next_action: where the next step is.

    """

    tool: str
    query: str
    limit: str = ""
    most_results: int = MOST_LIMIT
    constants: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[str, ...] = ("",)
    ref: str = ""
    score: str | None = None
    decision: str | None = None
    decisions: Mapping[str, str] = field(default_factory=dict)
    confidence: str | None = None
    next_action: str | None = None

    def request(self, query: str, limit: int) -> dict[str, Any]:
        """Return the arguments that ask for a query's tools."""
        asked = {self.limit: min(limit, self.most_results)} if self.limit else {}
        return {**self.constants, **asked, self.query: query}


@dataclass(frozen=True, slots=True)
class DescribeMapping:
    """How a broker is asked for a tool's schema.

    Attributes:
        tool: the name of the MCP tool.
        ref: its argument for the tool that is meant.
        constants: arguments that are always passed.
        next_action: where in the answer the next step is.

    """

    tool: str
    ref: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    next_action: str | None = None

    def request(self, ref: str) -> dict[str, Any]:
        """Return the arguments that ask for a tool."""
        return {**self.constants, self.ref: ref}


@dataclass(frozen=True, slots=True)
class CallMapping:
    """How a broker is asked to call a tool.

    Attributes:
        tool: the name of the MCP tool.
        ref: its argument for the tool that is meant.
        arguments: its argument for the arguments object.
        constants: arguments that are always passed.
        next_action: where in the answer the next step is.

    """

    tool: str
    ref: str
    arguments: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    next_action: str | None = None

    def request(self, ref: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that ask for a call."""
        return {**self.constants, self.ref: ref, self.arguments: dict(arguments)}


@dataclass(frozen=True, slots=True)
class ErrorMapping:
    """Where an error says what.

    Attributes:
        type: where its type is.
        types: the broker's words for types that have another name here.
        message: where its message is; the whole text without one.
        retryable: where it says whether the same call may be sent once more.
        instruction: where it says what to do now.

    """

    type: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    retryable: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerMapping:
    """How one broker is asked.

    Attributes:
        find: its search.
        describe: how a schema is had, None when it has no such operation.
        call: how a tool is called, None when it has no such operation.
        error: where errors say what.
        refs: what it calls a tool, with `{server}` and `{name}`.

    """

    find: FindMapping
    describe: DescribeMapping | None = None
    call: CallMapping | None = None
    error: ErrorMapping = field(default_factory=ErrorMapping)
    refs: str = DEFAULT_REFS

    def name_of(self, tool: CatalogTool) -> str:
        """Return what the broker calls a tool."""
        return self.refs.replace("{server}", tool.server_id).replace("{name}", tool.name)

    def names_of(self, catalog: Catalog) -> dict[str, str]:
        """Return the broker's name of each tool to its ref in the catalog.

        Raises:
            ConfigError: two tools have one name.

        """
        names: dict[str, str] = {}
        for tool in catalog.tools:
            name = self.name_of(tool)
            other = names.setdefault(name, tool.ref)
            if other != tool.ref:
                raise ConfigError(
                    f"the broker mapping's refs {self.refs!r} give {other} and {tool.ref} the same name, {name!r}: "
                    "rows could not say which is meant; use {server} as well"
                )
        return names


OWN_MAPPING = BrokerMapping(
    find=FindMapping(
        tool=FIND,
        query="query",
        limit="limit",
        results=("/selected", "/alternatives"),
        ref="/toolRef",
        decision="/decision",
        confidence="/confidence",
        next_action="/nextAction",
    ),
    describe=DescribeMapping(tool=DESCRIBE, ref="toolRef", next_action="/nextAction"),
    call=CallMapping(tool=CALL, ref="toolRef", arguments="arguments", next_action="/nextActions"),
    error=ErrorMapping(
        type="/error/type",
        message="/error/message",
        retryable="/error/retryable",
        instruction="/error/agentInstruction",
    ),
)
"""The mapping of the reference broker, and of every one that speaks as it does."""


def load_mapping(path: Path, shown: Path) -> BrokerMapping:
    """Load a mapping file.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        CaseError: with every fault of the file, each with line, JSON pointer and what would be right.

    """
    document = read_document(path, shown)
    value: Any = [e.value for e in document.elements] if document.is_list else document.elements[0].value
    faults = MAPPING_SCHEMA.faults(value)
    if faults:
        raise CaseError(
            [
                Problem(shown, fault.message, document.line_of(fault.path), pointer_text(fault.path) or None)
                for fault in faults
            ]
        )
    return _mapping(value)


def _mapping(value: Mapping[str, Any]) -> BrokerMapping:
    describe, call = value.get("describe"), value.get("call")
    return BrokerMapping(
        find=FindMapping(**_fields(value["find"])),
        describe=None if describe is None else DescribeMapping(**_fields(describe)),
        call=None if call is None else CallMapping(**_fields(call)),
        error=ErrorMapping(**_fields(value.get("error", {}))),
        refs=value.get("refs", DEFAULT_REFS),
    )


def _fields(part: Mapping[str, Any]) -> dict[str, Any]:
    fields = {_FIELDS.get(key, key): value for key, value in part.items() if not key.startswith("_")}
    results = fields.get("results")
    if results is not None:
        fields["results"] = (results,) if isinstance(results, str) else tuple(results)
    return fields


_FIELDS = {"mostResults": "most_results", "nextAction": "next_action"}


def at(value: Any, pointer: str | None) -> Any:
    """Return what a JSON pointer leads to, None when it leads nowhere or there is none."""
    if pointer is None:
        return None
    return _led_to(value, pointer, None)


def is_there(value: Any, pointer: str) -> bool:
    """Whether a JSON pointer leads to something, null included."""
    return _led_to(value, pointer, _NOTHING) is not _NOTHING


def _led_to(value: Any, pointer: str, nothing: Any) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return nothing
    return value


def found_refs(mapping: FindMapping, answer: Any) -> Iterator[tuple[Any, Any]]:
    """Yield ref and score of each found tool, as the broker gives them.

    Raises:
        ValueError: what should be the found tools is neither a list nor an object nor null, nor a name a line.

    """
    for pointer in mapping.results:
        results = _listed(at(answer, pointer), mapping.ref)
        if results is None:
            place = repr(pointer) if pointer else "the top"
            raise ValueError(
                f"at {place} of the answer stands {cut(repr(at(answer, pointer)), 80)}; expected a list of tools"
                f"{results_hint(answer)}"
            )
        for result in results:
            yield at(result, mapping.ref), at(result, mapping.score)


def results_hint(answer: Any) -> str:
    """Return how a mapping would name the lists that an answer holds."""
    what = "'results' under 'find' of the mapping"
    places = list(islice(_lists(answer), _MOST_PLACES))
    return f"; lists stand at {', '.join(places)}: name the right one as {what}" if places else f"; see {what}"


def _lists(value: Any, place: str = "", depth: int = _MOST_DEPTH) -> Iterator[str]:
    if isinstance(value, list):
        yield repr(place)
    elif isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            step = cut(str(key), 60).replace("~", "~0").replace("/", "~1")
            yield from _lists(inner, f"{place}/{step}", depth - 1)


def _listed(results: Any, ref: str) -> Sequence[Any] | None:
    """Return the found tools, None for what holds none."""
    if results is None:
        return ()
    if isinstance(results, list):
        return results
    if isinstance(results, Mapping) and ref:
        return (results,)
    if isinstance(results, str) and not ref:
        names = [line.strip() for line in results.splitlines() if line.strip()]
        return names if all(len(name.split()) == 1 for name in names) else None
    return None
