"""What `findTool` says: a decision, the tool it selects, the others, and the next step; within its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from string import punctuation
from typing import Any

from pytest_tooleval.broker.budget import first_fitting
from pytest_tooleval.broker.decision import Decision
from pytest_tooleval.broker.envelope import FIND_BUDGET, encodable, failure, json_size, next_action, success
from pytest_tooleval.broker.example import example_arguments
from pytest_tooleval.broker.search import Found
from pytest_tooleval.broker.tokens import index_terms, query_words
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.measures.text import cut, shorten

SMALL_SCHEMA_BYTES = 1500
_MOST_QUERY = 300
_MOST_REASON = 300
_MOST_SERVERS = 15
_MOST_MATCHED = 6
_MOST_READ = 2000


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much an answer tells.

    Attributes:
        whole_schema: whether a small schema is given whole.
        description: characters of the selected tool's description.
        arguments: arguments in the preview of its schema.
        alternatives: other tools.

    """

    whole_schema: bool
    description: int
    arguments: int
    alternatives: int


_DETAILS = (
    _Detail(whole_schema=True, description=600, arguments=20, alternatives=50),
    _Detail(whole_schema=True, description=300, arguments=20, alternatives=8),
    _Detail(whole_schema=False, description=300, arguments=12, alternatives=8),
    _Detail(whole_schema=False, description=200, arguments=8, alternatives=4),
    _Detail(whole_schema=False, description=100, arguments=4, alternatives=2),
    _Detail(whole_schema=False, description=40, arguments=0, alternatives=0),
)


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """The answer to one query.

    Attributes:
        catalog: the tools that were searched.
        query: what was asked.
        found: the search's decision and hits.
        status_of: a server's id to its status now.

    """

    catalog: Catalog
    query: str
    found: Found
    status_of: Callable[[str], str]

    def envelope(self) -> dict[str, Any]:
        """Return the answer in as much detail as the budget allows."""
        variants = (partial(self._told, detail, is_cut=index > 0) for index, detail in enumerate(_DETAILS))
        answer = first_fitting(variants, FIND_BUDGET)
        if answer is None:
            return failure("CONFIG_ERROR", "the name of a tool in the catalog is too long for any answer")
        return answer

    def _told(self, detail: _Detail, *, is_cut: bool) -> dict[str, Any]:
        tools = [self.catalog.by_ref[hit.ref] for hit in self.found.hits if hit.ref in self.catalog.by_ref]
        selected = tools[0] if tools and self.found.decision in {"use", "ambiguous"} else None
        others = tools[1:] if selected else tools
        shown = None if selected is None else self._selected(selected, detail)
        notice = "cut to fit: describeTool shows a tool in full" if is_cut else None
        answer = success(
            query=cut(self.query, _MOST_QUERY),
            decision=self.found.decision,
            selectedToolRef=selected.ref if selected else None,
            confidence=round(self.found.confidence, 3),
            reason=cut(self.found.reason, _MOST_REASON),
            selected=shown,
            alternatives=[self._alternative(tool) for tool in others[: detail.alternatives]],
            nextAction=self._next_action(selected, others, shown or {}),
            catalogStats=self._stats(),
            notices=[notice] if notice else None,
        )
        return encodable(answer)

    def _selected(self, tool: CatalogTool, detail: _Detail) -> dict[str, Any]:
        head = {
            "toolRef": tool.ref,
            "title": shorten(tool.title, 100) or None,
            "description": shorten(tool.description, detail.description),
            "readOnly": tool.read_only,
            "serverStatus": self.status_of(tool.server_id),
        }
        shown = {key: value for key, value in head.items() if value is not None}
        example = example_arguments(tool.input_schema) if detail.whole_schema else None
        if example is not None and json_size(tool.input_schema) <= SMALL_SCHEMA_BYTES:
            call = {"toolRef": tool.ref, "arguments": example}
            return {**shown, "inputSchema": tool.input_schema, "recommendedCall": call}
        return {**shown, "schemaPreview": schema_preview(tool.input_schema, detail.arguments)}

    def _alternative(self, tool: CatalogTool) -> dict[str, Any]:
        matched = matched_words(self.query, tool)
        reasons = [f"has {', '.join(matched)}" if matched else "related by its arguments or its meaning"]
        status = self.status_of(tool.server_id)
        if status != "online":
            reasons.append(f"its server is {status}")
        return {
            "toolRef": tool.ref,
            "description": shorten(tool.description, 120),
            "readOnly": tool.read_only,
            "reason": "; ".join(reasons),
        }

    def _stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = {"tools": len(self.catalog.tools), "servers": len(self.catalog.servers)}
        offline = [server.id for server in self.catalog.servers if server.status == "offline"]
        return (
            {**stats, "offlineServers": [cut(name, 60) for name in offline[:_MOST_SERVERS]]} if offline else stats
        )

    def _next_action(
        self, selected: CatalogTool | None, others: Sequence[CatalogTool], shown: Mapping[str, Any]
    ) -> dict[str, Any]:
        if selected is None:
            return _without_selection(self.found.decision, self.catalog)
        if self.status_of(selected.server_id) != "online":
            return self._around(selected, others)
        if self.found.decision == "ambiguous":
            return _choose(selected, others)
        if "recommendedCall" in shown:
            return _call(selected)
        instruction = f"Call describeTool for the exact schema of {selected.ref}, then callTool with its arguments."
        return next_action(instruction, "describeTool", {"toolRef": selected.ref})

    def _around(self, selected: CatalogTool, others: Sequence[CatalogTool]) -> dict[str, Any]:
        """Return the step when the server of the selected tool cannot be used."""
        status = self.status_of(selected.server_id)
        trouble = f"The server {selected.server_id} is {status}: do not call {selected.ref} now."
        usable = next((tool for tool in others if self.status_of(tool.server_id) == "online"), None)
        if usable is None:
            return next_action(f"{trouble} No alternative is online: tell the user.")
        instruction = f"{trouble} See with describeTool whether {usable.ref} does the job; if not, tell the user."
        return next_action(instruction, "describeTool", {"toolRef": usable.ref})


def schema_preview(schema: Any, most: int) -> dict[str, Any]:
    """Return the arguments of a schema as one line each, the required ones first, at most `most` of them."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return {"arguments": {}, "omitted": 0}
    required = schema.get("required")
    named = required if isinstance(required, list) else []
    wanted = [name for name in named if isinstance(name, str) and name in properties]
    ordered = [*wanted, *(name for name in properties if name not in wanted)]
    lines = {cut(name, 60): _line(properties[name], is_required=name in wanted) for name in ordered[:most]}
    return {"arguments": lines, "omitted": len(ordered) - len(lines)}


def matched_words(query: str, tool: CatalogTool) -> list[str]:
    """Return the words of a query that a tool's names or description hold, in its order, at most a handful."""
    held = {
        term for text in (tool.ref, tool.title, cut(tool.description, _MOST_READ)) for term in index_terms(text)
    }
    tokens = dict.fromkeys(cut(query, _MOST_READ).split())
    matched = (token for token in tokens if _is_held(token, held))
    return [repr(cut(token.strip(punctuation), 40)) for token in islice(matched, _MOST_MATCHED)]


def _is_held(token: str, held: set[str]) -> bool:
    return any(word.whole in held or not held.isdisjoint(word.parts) for word in query_words(token))


def _line(schema: Any, *, is_required: bool) -> str:
    if not isinstance(schema, Mapping):
        return "required" if is_required else "optional"
    kind = schema.get("type", "any")
    words = [" or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)]
    words += ["required"] if is_required else []
    purpose = schema.get("description")
    head = ", ".join(words)
    return f"{head}: {shorten(purpose, 80)}" if isinstance(purpose, str) and purpose else head


def _call(tool: CatalogTool) -> dict[str, Any]:
    care = "" if tool.read_only else " It may change things: be sure that the user wants that."
    instruction = (
        f"Call callTool for {tool.ref} with arguments as in recommendedCall, with the values of your task; "
        f"inputSchema is complete, so describeTool is not needed.{care}"
    )
    return next_action(instruction, "callTool", {"toolRef": tool.ref})


def _choose(selected: CatalogTool, others: Sequence[CatalogTool]) -> dict[str, Any]:
    rivals = ", ".join(tool.ref for tool in others[:2])
    instruction = (
        f"{selected.ref} fits hardly better than {rivals or 'others'}: choose by their descriptions, or ask the "
        "user; then call describeTool for the chosen one."
    )
    return next_action(instruction, "describeTool", {"toolRef": selected.ref})


def _without_selection(decision: Decision, catalog: Catalog) -> dict[str, Any]:
    match decision:
        case "catalog_empty":
            return next_action(
                "No tool is catalogued, so no query can find one: tell the user to add servers to the catalog."
            )
        case "empty_query":
            return next_action(
                "Call findTool with a query that names an action and its object, e.g. 'send a message'.", "findTool"
            )
        case _:
            return next_action(_refusal(catalog), "findTool")


def _refusal(catalog: Catalog) -> str:
    servers = ", ".join(_server_names(catalog))
    return (
        "Call findTool once more with other words for the action and its object, as a tool's description would put "
        f"it. There are tools of these servers: {servers}. If none of them can do it, tell the user that no tool "
        "does; do not use one that merely looks near."
    )


def _server_names(catalog: Catalog) -> Iterator[str]:
    names = [cut(server.id, 40) for server in catalog.servers]
    yield from names[:_MOST_SERVERS]
    if len(names) > _MOST_SERVERS:
        yield f"and {len(names) - _MOST_SERVERS} more"
