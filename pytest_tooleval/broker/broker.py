"""The reference broker: three operations over a catalog, each answered with a JSON dict that fits its budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from pytest_tooleval.broker import drift
from pytest_tooleval.broker.argument_check import BrokenSchemaError, Checker, checker_of
from pytest_tooleval.broker.call_answer import call_answer, error_text
from pytest_tooleval.broker.describe_answer import DescribeAnswer
from pytest_tooleval.broker.downstream import (
    AUTH_REQUIRED,
    OFFLINE,
    ONLINE,
    CallResult,
    Downstream,
    DownstreamAuthError,
    DownstreamOfflineError,
    InProcessDownstream,
    NotConfiguredError,
    ToolGoneError,
)
from pytest_tooleval.broker.envelope import (
    ErrorType,
    failure,
    is_deep,
    json_text,
)
from pytest_tooleval.broker.find_answer import FindAnswer
from pytest_tooleval.broker.search import Found, ToolSearch
from pytest_tooleval.broker.unknown_tool import unknown_tool
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ToolevalError
from pytest_tooleval.measures.text import clean_text, cut

DEFAULT_LIMIT = 5
MOST_LIMIT = 25
_ONCE_MORE = (
    "The tool only reads, so this call may be sent once more, after a pause. If it fails again, do not repeat it: "
    "tell the user that the tool failed and with which message."
)


class Search(Protocol):
    """What ranks the catalog's tools for a query."""

    def decide(self, query: str, limit: int) -> Found:
        """Return the decision and the best tools, at most `limit`."""
        ...


class _RefusedError(ToolevalError):
    """A call cannot be made, or failed.

    Attributes:
        envelope: what the caller is told.

    """

    def __init__(self, envelope: dict[str, Any]) -> None:
        super().__init__(envelope["error"]["message"])
        self.envelope = envelope


class Broker:
    """Finds, describes and calls the tools of a catalog; safe to share among threads when its parts are.

    Attributes:
        catalog: the tools.

    """

    def __init__(self, catalog: Catalog, search: Search, downstream: Downstream) -> None:
        self.catalog = catalog
        self._search = search
        self._downstream = downstream
        self._catalogued_statuses = {server.id: server.status for server in catalog.servers}

    def find_tool(self, query: str, limit: int = DEFAULT_LIMIT) -> dict[str, Any]:
        """Return the tool for a task: decision, selected tool, alternatives, next step.

        Args:
            query: what is to be done, in words.
            limit: most tools in the answer, from 1 to 25.

        """
        query = clean_text(query)
        try:
            found = self._search.decide(query, min(max(limit, 1), MOST_LIMIT))
        except ToolevalError as error:
            return failure("SEMANTIC_SEARCH_UNAVAILABLE", f"the search failed: {error}")
        return FindAnswer(self.catalog, query, found, self._status).envelope()

    def describe_tool(self, ref: str, part: str | None = None) -> dict[str, Any]:
        """Return a tool's exact schema, hints, an example call and the next step.

        Args:
            ref: the tool.
            part: JSON pointer to the part of the schema that is wanted, for one too large for an answer.

        """
        tool = self.catalog.by_ref.get(ref)
        if tool is None:
            return unknown_tool(self.catalog, ref, is_call=False)
        live = self._live_schema_or_none(tool)
        changes = drift.changes(tool.input_schema, live) if self._has_drifted(tool, live) else []
        schema = live if changes else tool.input_schema
        answer = DescribeAnswer(tool, schema, self._status(tool.server_id), tuple(changes))
        return answer.whole() if part is None else answer.part(part)

    def call_tool(self, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Call a tool and return its result, or say why not and what to do instead.

        Args:
            ref: the tool.
            arguments: a JSON object; None is an empty one.

        """
        tool = self.catalog.by_ref.get(ref)
        if tool is None:
            return unknown_tool(self.catalog, ref, is_call=True)
        try:
            given = _json_arguments(tool, {} if arguments is None else arguments)
            notices = self._permit(tool, given)
            return _answer(tool, self._call(tool, given), notices)
        except _RefusedError as refused:
            return refused.envelope

    def _status(self, server_id: str) -> str:
        """Return a server's status now; one that is not even catalogued as online is not asked."""
        catalogued = self._catalogued_statuses.get(server_id, ONLINE)
        return catalogued if catalogued != ONLINE else self._downstream.server_status(server_id)

    def _permit(self, tool: CatalogTool, arguments: Mapping[str, Any]) -> list[str]:
        """Return what the caller should know of a call that can be made.

        Raises:
            _RefusedError: it cannot.

        """
        self._require_server(tool)
        catalogued = _catalogued_checker(tool)
        with _mapped_failures(tool, is_call=False):
            live = self._downstream.live_schema(tool.ref)
        if not self._has_drifted(tool, live):
            _require_valid(tool, catalogued, arguments)
            return []
        changes = "; ".join(drift.changes(tool.input_schema, live))
        if touched := drift.drift_of_call(tool.input_schema, live, arguments):
            message = f"the schema changed since the catalog was made: {changes}. This call: {'; '.join(touched)}"
            _refuse(tool, "TOOL_SCHEMA_CHANGED", message)
        return [
            cut(f"the schema changed since the catalog was made, in what this call does not use: {changes}", 500)
        ]

    def _require_server(self, tool: CatalogTool) -> None:
        with _mapped_failures(tool, is_call=False):
            status = self._status(tool.server_id)
        if status == OFFLINE:
            _refuse(tool, "DOWNSTREAM_SERVER_OFFLINE", f"the server {tool.server_id} is offline")
        if status == AUTH_REQUIRED:
            _refuse(tool, "AUTH_UNAVAILABLE", f"the server {tool.server_id} has no credentials")

    def _call(self, tool: CatalogTool, arguments: dict[str, Any]) -> CallResult:
        with _mapped_failures(tool, is_call=True):
            result = self._downstream.call(tool.ref, arguments)
        if result.is_error:
            _refuse(tool, "DOWNSTREAM_CALL_FAILED", f"the tool reports: {error_text(result.content)}")
        return result

    def _live_schema_or_none(self, tool: CatalogTool) -> Any:
        try:
            with _mapped_failures(tool, is_call=False):
                return self._downstream.live_schema(tool.ref)
        except _RefusedError:
            return None

    def _has_drifted(self, tool: CatalogTool, live: Any) -> bool:
        return live is not None and drift.differs(tool.input_schema, live)


def reference_broker(catalog: Catalog, downstream: Downstream | None = None) -> Broker:
    """Return a broker with lexical search, over servers that are simulated unless others are given."""
    return Broker(catalog, ToolSearch(catalog), downstream or InProcessDownstream(catalog))


@contextmanager
def _mapped_failures(tool: CatalogTool, *, is_call: bool) -> Iterator[None]:
    """Turn whatever a downstream raises into a refusal."""
    try:
        yield
    except DownstreamOfflineError as error:
        _refuse(tool, "DOWNSTREAM_SERVER_OFFLINE", f"the server {tool.server_id} cannot be reached: {error}")
    except DownstreamAuthError as error:
        _refuse(tool, "AUTH_UNAVAILABLE", f"the server {tool.server_id} refused the credentials: {error}")
    except NotConfiguredError as error:
        _refuse(tool, "CONFIG_ERROR", f"the server {tool.server_id} is not configured: {error}")
    except ToolGoneError as error:
        _refuse(tool, "TOOL_NOT_FOUND", f"the server {tool.server_id} no longer offers this tool: {error}")
    except Exception as error:  # noqa: BLE001 - a downstream that a user wrote may raise anything, and the agent is told
        message = f"the call failed: {type(error).__name__}: {error}"
        if is_call and not tool.read_only:
            _refuse(tool, "DOWNSTREAM_CALL_FAILED", message)
        _refuse(tool, "DOWNSTREAM_CALL_FAILED", message, instruction=_ONCE_MORE, retryable=True)


def _refuse(tool: CatalogTool, kind: ErrorType, message: str, **more: Any) -> NoReturn:
    raise _RefusedError(failure(kind, message, ref=tool.ref, server=tool.server_id, **more)) from None


def _json_arguments(tool: CatalogTool, arguments: Any) -> dict[str, Any]:
    """Return arguments that are a JSON object.

    Raises:
        _RefusedError: they are something else.

    """
    if isinstance(arguments, str):
        message = "'arguments' is a text; expected a JSON object: pass the object itself, not its JSON text"
        _refuse(tool, "ARGUMENT_VALIDATION_FAILED", message)
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        _refuse(tool, "ARGUMENT_VALIDATION_FAILED", f"'arguments' is of type {kind}; expected a JSON object")
    try:
        return _detached(arguments)
    except UnicodeEncodeError:
        message = "a text in the arguments holds half of a surrogate pair (\\ud800 to \\udfff)"
    except (TypeError, ValueError) as error:
        message = f"the arguments are not JSON: {error}"
    except RecursionError:
        message = "the arguments are nested too deeply"
    _refuse(tool, "ARGUMENT_VALIDATION_FAILED", message)


def _detached(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON reads them back, so that nobody else holds on to them."""
    text = json_text(dict(arguments))
    text.encode()
    given: dict[str, Any] = json.loads(text)
    if is_deep(given):
        raise RecursionError
    return given


def _catalogued_checker(tool: CatalogTool) -> Checker:
    try:
        return checker_of(tool.input_schema)
    except BrokenSchemaError as error:
        _refuse_broken(tool, str(error))


def _require_valid(tool: CatalogTool, checker: Checker, arguments: Mapping[str, Any]) -> None:
    try:
        faults = checker.faults(arguments)
    except BrokenSchemaError as error:
        _refuse_broken(tool, str(error))
    if faults:
        _refuse(tool, "ARGUMENT_VALIDATION_FAILED", "; ".join(faults))


def _refuse_broken(tool: CatalogTool, problem: str) -> NoReturn:
    _refuse(tool, "CONFIG_ERROR", f"the catalogued schema of {tool.ref} is not a JSON Schema: {problem}")


def _answer(tool: CatalogTool, result: CallResult, notices: list[str]) -> dict[str, Any]:
    try:
        return call_answer(tool, result.content, notices)
    except ValueError as error:
        _refuse(tool, "DOWNSTREAM_CALL_FAILED", f"the call was made, but its result is not JSON: {error}")
