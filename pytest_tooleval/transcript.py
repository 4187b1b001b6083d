"""What was said and done in one run: messages, tool calls, their outcomes, token usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Finish: TypeAlias = Literal["stop", "length", "refusal"]
Outcome: TypeAlias = Literal["ok", "error", "denied", "unknown_tool", "invalid_arguments", "not_run"]
Status: TypeAlias = Literal["ok", "truncated", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls, each token counted once.

    Attributes:
        input: input tokens that were neither read from nor written to a cache.
        cache_read: input tokens read from the provider's cache.
        cache_write: input tokens written to the provider's cache.
        output: generated tokens, reasoning included.
        reasoning: the part of `output` that is reasoning.
        reported_total: the provider's own total, or None when it gives none.

    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    reported_total: int | None = None

    @property
    def total(self) -> int:
        """The provider's total where it gives one, else the sum of the parts."""
        if self.reported_total is not None:
            return self.reported_total
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            reported_total=self.total + other.total,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model asked for it.

    Attributes:
        id: pairs the call with its result; unique in one transcript.
        name: the tool's name, namespace prefixes such as `functions.` removed where the rest is offered.
        arguments: the decoded JSON object, or None when the model's text is not one.
        raw_arguments: the arguments as they came, for display.
        raw_name: the name as it came.
        extra: other keys of the provider's call object, to be sent back unchanged.

    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw_arguments: str = ""
    raw_name: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the task says to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of the model.

    Attributes:
        text: the visible text, empty when there is none.
        calls: the tool calls in the model's order.
        finish: why the reply ended; `length` when the output limit cut it off.
        usage: tokens of this reply, or None when the provider says nothing.
        opaque: reasoning and other parts to be sent back to the same provider unchanged.
        attempts: requests that were sent for it; those before the last one brought no answer.
        notes: what a reader of the result should know of how it was asked for and came.

    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None
    opaque: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one call, as the model sees it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One call that the model completed, with what came of it.

    Attributes:
        turn: 1-based number of the reply that holds the call.
        call: the call; `call.arguments` is what the tool got.
        outcome: what came of it; `not_run` is a call that could have been run where none is.
        result: the tool result that the model saw, or would have seen.

    """

    turn: int
    call: ToolCall
    outcome: Outcome
    result: str

    @property
    def failed(self) -> bool:
        """Whether the result is an error."""
        return self.outcome not in {"ok", "not_run"}


@dataclass(frozen=True, slots=True)
class BrokerCall:
    """A call that reached a broker and no tool: a search, a look at a schema, or what the broker could not place.

    Attributes:
        turn: 1-based number of the reply that holds the call.
        call: the call as the model made it.
        result: what the model was told.
        error: the type of the broker's error, empty when it answered.
        shown: the names of the tools in its answer, best first.

    """

    turn: int
    call: ToolCall
    result: str
    error: str = ""
    shown: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the result is an error."""
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class Run:
    """One case executed once. Whatever happened in it is data here, not an exception.

    Attributes:
        status: `ok`; `truncated` by the turn limit or the output limit; `error` of the infrastructure;
            `cancelled` from outside.
        messages: the transcript, system prompt left out.
        trace: the calls in the model's order.
        answer: the text of the last reply, empty when it has none or the run did not end by itself.
        usage: tokens of all replies, or None when a reply did not say.
        seconds: wall time of the run.
        turns: replies of the model.
        attempts: requests that were sent to the model's API, failed ones included.
        detail: why the status is not `ok`, else empty.
        notes: what a reader of the result should know, such as a tool call written as text.
        broker_calls: where tools were reached through a broker, what it was asked besides; not in the trace.

    """

    status: Status
    messages: tuple[Message, ...] = ()
    trace: tuple[TraceEntry, ...] = ()
    answer: str = ""
    usage: Usage | None = None
    seconds: float = 0.0
    turns: int = 0
    attempts: int = 0
    detail: str = ""
    notes: tuple[str, ...] = ()
    broker_calls: tuple[BrokerCall, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the called tools in the model's order."""
        return tuple(entry.call.name for entry in self.trace)
