"""A model behind one HTTP dialect: what every dialect does alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.providers.http import JsonObject, JsonTransport
from pytest_tooleval.providers.http_errors import UnreadableReplyError
from pytest_tooleval.providers.provider import ChatRequest
from pytest_tooleval.providers.tool_adaptation import AdaptedTools, ToolRules
from pytest_tooleval.providers.wire import unreadable_call
from pytest_tooleval.transcript import AssistantMessage


class Dialect(Protocol):
    """How one API spells requests and replies: pure, so that it is tested without a server.

    The names and schemas of tools that it is given, in the offer and in the history, are ones that its API takes.
    """

    @property
    def url(self) -> str:
        """Where requests are posted."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The dialect's own headers, the key among them."""
        ...

    def build_request(self, request: ChatRequest) -> JsonObject:
        """Return the body of a request."""
        ...

    def parse_reply(self, body: JsonObject, request: ChatRequest) -> AssistantMessage:
        """Return the reply in an answer to `request`.

        Raises:
            ProviderError: the answer is an error or breaks the protocol (then it is transient).

        """
        ...


class DialectProvider:
    """A provider that posts a dialect's requests over a transport.

    Args:
        dialect: how requests and replies are spelled.
        transport: how they travel.
        rules: which names and schemas of tools the API takes; all others are sent as ones that it does take,
            and the replies get the real ones back.

    """

    def __init__(self, dialect: Dialect, transport: JsonTransport, rules: ToolRules | None = None) -> None:
        self._dialect = dialect
        self._transport = transport
        self._rules = rules or ToolRules()

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return None: a model can be asked about any case."""
        del case
        return None

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        """Ask the model once.

        Raises:
            TimeLimitError: `request.until` leaves no time for an answer.
            ProviderError: no usable answer came; retries for transient faults are already spent.

        """
        del case  # a real model knows only the request
        dialect = self._dialect
        tools = AdaptedTools(request, self._rules)
        try:
            answer = self._transport.post_json(
                dialect.url,
                dialect.headers,
                dialect.build_request(tools.request),
                lambda body: dialect.parse_reply(body, tools.request),
                until=request.until,
            )
        except UnreadableReplyError as error:
            call = unreadable_call(str(error), request.messages, [tool.name for tool in request.tools])
            return AssistantMessage(calls=(call,), attempts=error.attempts)
        return replace(
            tools.restored(answer.value), attempts=answer.attempts, notes=tuple(_notes(tools.losses, answer.faults))
        )

    def close(self) -> None:
        """Release connections."""
        self._transport.close()


def _notes(losses: Iterable[str], faults: Iterable[str]) -> Iterator[str]:
    for loss in losses:
        yield f"the API takes no such schema, so the model was told less: {loss}"
    for fault in faults:
        yield f"asked again: {fault}"
