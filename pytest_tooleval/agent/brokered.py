"""The tools of a run behind the reference broker: a model finds and calls them, and the trace tells which.

The broker's `callTool` runs the very tool that the model would have been offered, in the same folder and within the
same bounds. What the model sees is the broker's own answer; what the run is judged by is the tool's call.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_tooleval.agent.desk import Desk
from pytest_tooleval.agent.time_limit import RunEndedError
from pytest_tooleval.agent.tool_runner import ToolRunner
from pytest_tooleval.broker.broker import Broker
from pytest_tooleval.broker.downstream import ONLINE, CallResult
from pytest_tooleval.broker.envelope import encodable, error_type, failure, json_text
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.broker.surface import CALL, DESCRIBE, FIND, OPERATIONS, perform
from pytest_tooleval.cases.case import Category, ToolUseCase
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.errors import InfrastructureError, ToolUnavailableError
from pytest_tooleval.measures.text import shorten
from pytest_tooleval.providers.provider import ChatRequest, Provider, ToolSpec
from pytest_tooleval.providers.wire import decode_arguments, offered_name
from pytest_tooleval.tools.arguments import without_refused_nulls
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool
from pytest_tooleval.transcript import AssistantMessage, BrokerCall, Outcome, ToolCall, TraceEntry

SERVER = "suite"
"""The server that a case's own tools stand under: `suite.file_read`."""

REPLIES_FOR_ONE = 3
"""Replies that one call may take: find, describe, call."""

_PREFIX = f"{SERVER}."
_MOST_CATALOGS = 64
_READING: frozenset[Category] = frozenset({"read", "list", "web"})
_SPECS = tuple(ToolSpec(each["name"], each["description"], each["inputSchema"]) for each in OPERATIONS.values())
_NO_OBJECT = "Send the arguments of this tool as one JSON object."


@dataclass(frozen=True, slots=True)
class SearchedCatalog:
    """A catalog and its search; safe to share among threads.

    Attributes:
        catalog: the tools.
        search: over them.

    """

    catalog: Catalog
    search: ToolSearch


class BrokerCatalogs:
    """Opens the desks of brokered runs; a catalog and its search are made once for each set of tools.

    Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._made: dict[Any, SearchedCatalog] = {}
        self._guard = threading.Lock()

    def open_desk(self, offer: Offer, runner: ToolRunner) -> Desk:
        """Return the desk of one run."""
        return BrokeredDesk(offer, runner, self.of(offer))

    def of(self, offer: Offer) -> SearchedCatalog:
        """Return the catalog of a case's tools."""
        key = _key(offer)
        with self._guard:
            if key not in self._made:
                if len(self._made) >= _MOST_CATALOGS:
                    del self._made[next(iter(self._made))]
                catalog = catalog_of(offer)
                self._made[key] = SearchedCatalog(catalog, ToolSearch(catalog))
            return self._made[key]


def catalog_of(offer: Offer) -> Catalog:
    """Return the catalog of a case's tools, its own under the server `suite`, distractors under theirs."""
    tools = tuple(_listed(offer, tool) for tool in offer.offered.values())
    servers = dict.fromkeys([SERVER, *(tool.server_id for tool in tools)])
    return Catalog(tuple(map(CatalogServer, servers)), tools)


def ref_of(offer: Offer, name: str) -> str:
    """Return what the broker calls a tool, or would call one that is not there."""
    distractor = offer.distractors.get(name)
    return f"{_PREFIX}{name}" if distractor is None else distractor.ref


def _key(offer: Offer) -> tuple[Any, ...]:
    """Return what tells sets of tools apart: of distractors the names say enough, the pool gives each but once."""
    own = (tool for name, tool in offer.offered.items() if name not in offer.distractors)
    texts = ((tool.name, tool.description, json.dumps(tool.parameters), tool.category) for tool in own)
    return (*texts, tuple(tool.ref for tool in offer.distractors.values()))


def _listed(offer: Offer, tool: Tool) -> CatalogTool:
    if tool.name in offer.distractors:
        return offer.distractors[tool.name]
    schema = dict(tool.parameters)
    read_only = tool.category in _READING
    return CatalogTool(
        f"{_PREFIX}{tool.name}", SERVER, tool.name, "", tool.description, schema, read_only=read_only
    )


class BrokeredDesk:
    """Offers the broker's three tools, and runs what is called through them.

    The trace gets the calls that name a tool by its ref, and those that name what does not exist. A search, a look
    at a schema, and a call of a real tool in a way that the broker does not take reach no tool: they are broker
    calls.

    Args:
        offer: the tools.
        runner: runs them.
        searched: their catalog.

    """

    def __init__(self, offer: Offer, runner: ToolRunner, searched: SearchedCatalog) -> None:
        self._offer = offer
        self._names = {ref_of(offer, name): name for name in offer.offered}
        self._downstream = _Worktree({ref: offer.offered[name] for ref, name in self._names.items()}, runner)
        self._broker = Broker(searched.catalog, searched.search, self._downstream)
        self.specs = _SPECS
        self.names: Collection[str] = tuple(OPERATIONS)
        self.replies_for_one = REPLIES_FOR_ONE

    def answer(self, turn: int, call: ToolCall) -> TraceEntry | BrokerCall:
        """Answer a call as the broker does."""
        if call.arguments is None:
            return self._unreadable(turn, call)
        ref = call.arguments.get("toolRef")
        if call.name == CALL and isinstance(ref, str):
            return self._called(turn, call, ref, call.arguments)
        answer = perform(self._broker, call.name, call.arguments)
        if call.name in OPERATIONS or self._is_real(call.name):
            return self._asked(turn, call, answer)
        return TraceEntry(turn, call, "unknown_tool", _text(answer))

    def _is_real(self, name: str) -> bool:
        return name in self._offer.offered or name in self._offer.denied

    def _unreadable(self, turn: int, call: ToolCall) -> BrokerCall:
        message = f"the arguments are not a JSON object: {shorten(call.raw_arguments, 200)}"
        return self._asked(turn, call, failure("ARGUMENT_VALIDATION_FAILED", message, instruction=_NO_OBJECT))

    def _asked(self, turn: int, call: ToolCall, answer: Mapping[str, Any]) -> BrokerCall:
        refs = _shown_refs(answer) if call.name in {FIND, DESCRIBE} else ()
        shown = dict.fromkeys(self._names[ref] for ref in refs if ref in self._names)
        return BrokerCall(turn, call, _text(answer), error_type(answer) or "", tuple(shown))

    def _called(self, turn: int, call: ToolCall, ref: str, request: Mapping[str, Any]) -> TraceEntry | BrokerCall:
        given = request.get("arguments", {})
        decoded = decode_arguments(given)[0] if isinstance(given, str) else given
        tool = self._downstream.tools.get(ref)
        if tool is not None and isinstance(decoded, dict):
            decoded = without_refused_nulls(tool, decoded)
        answer = self._answer_of({**request, "arguments": given if decoded is None else decoded})
        name, outcome = self._unknown(ref) if tool is None else (tool.name, self._outcome(tool, answer))
        if outcome is None:
            return self._asked(turn, call, answer)
        raw = given if isinstance(given, str) else call.raw_arguments
        meant = ToolCall(call.id, name, decoded if isinstance(decoded, dict) else None, raw, name)
        return TraceEntry(turn, meant, outcome, _text(answer))

    def _answer_of(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the broker's answer to `callTool`, unless the tool raised what ends the run."""
        self._downstream.outcome = self._downstream.ended = None
        answer = perform(self._broker, CALL, request)
        if self._downstream.ended is not None:
            raise self._downstream.ended
        return answer

    def _outcome(self, tool: Tool, answer: Mapping[str, Any]) -> Outcome:
        """Return what came of a call of a tool that is there."""
        if self._downstream.outcome is not None:
            return self._downstream.outcome
        if error_type(answer) == "ARGUMENT_VALIDATION_FAILED":
            return "invalid_arguments"
        if tool.name in self._offer.distractors:
            return "error"
        raise ToolUnavailableError(answer["error"]["message"])

    def _unknown(self, ref: str) -> tuple[str, Outcome | None]:
        """Return what is meant by a ref that the catalog lacks, and the outcome, None for no call of a tool."""
        name = ref.removeprefix(_PREFIX)
        if ref == name and self._is_real(name):
            return name, None
        return name, "denied" if name in self._offer.denied else "unknown_tool"


class _Worktree:
    """What lies behind the broker in one run: the tools of the case.

    Attributes:
        tools: by their refs.
        outcome: what came of the call that was made last, None where none was.
        ended: what that call raised to end the run, or None.

    """

    def __init__(self, tools: Mapping[str, Tool], runner: ToolRunner) -> None:
        self.tools = tools
        self.outcome: Outcome | None = None
        self.ended: InfrastructureError | RunEndedError | None = None
        self._runner = runner

    def server_status(self, _server_id: str) -> str:
        """Return that every server is there: whether a tool can be used shows when it is called."""
        return ONLINE

    def live_schema(self, _ref: str) -> None:
        """Return nothing: the schemas are those of the catalog."""

    def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
        """Run a tool."""
        try:
            self.outcome, text = self._runner.run(self.tools[ref], arguments)
        except (InfrastructureError, RunEndedError) as error:
            self.ended = error
            raise
        return CallResult(text, is_error=self.outcome != "ok")


class ScriptThroughBroker:
    """Plays a script's calls of tools as calls of the broker's `callTool`, so that it need not be written anew.

    Args:
        script: replies with calls of the case's tools; those of the broker's own tools stay as they are.
        offer: the tools.

    """

    def __init__(self, script: Provider, offer: Offer) -> None:
        self._script = script
        self._offer = offer

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the script's reason to skip the case, or None."""
        return self._script.cannot_run(case)

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        """Return the script's reply."""
        reply = self._script.reply(case, request)
        return replace(reply, calls=tuple(map(self._through, reply.calls)))

    def close(self) -> None:
        """Do nothing: the script belongs to whoever opened it."""

    def _through(self, call: ToolCall) -> ToolCall:
        if call.name in OPERATIONS:
            return call
        name = offered_name(call.name, (*self._offer.offered, *self._offer.denied))
        arguments = call.raw_arguments if call.arguments is None else call.arguments
        request = {"toolRef": ref_of(self._offer, name), "arguments": arguments}
        return replace(
            call, name=CALL, arguments=request, raw_arguments=json.dumps(request, ensure_ascii=False), raw_name=CALL
        )


def _shown_refs(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the refs of the tools that an answer to `findTool` or `describeTool` shows, best first."""
    found = [answer.get("selectedToolRef"), answer.get("toolRef")]
    found += [each.get("toolRef") for each in answer.get("alternatives", ())]
    yield from (ref for ref in found if isinstance(ref, str))


def _text(answer: Mapping[str, Any]) -> str:
    return json_text(encodable(dict(answer)))
