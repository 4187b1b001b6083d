"""The seam between the agent loop and a model API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.transcript import AssistantMessage, Message

ToolChoice: TypeAlias = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is offered it.

    Attributes:
        name: what the model calls.
        description: what the model reads.
        parameters: JSON Schema of the arguments object.

    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model is asked to generate; None leaves a setting to the provider's default."""

    tool_choice: ToolChoice = "auto"
    temperature: float | None = None
    max_output_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model, in no provider's dialect.

    Attributes:
        system: the system prompt.
        messages: the transcript so far.
        tools: what the model may call.
        sampling: how it is asked to generate.
        until: when the answer is of no use any more, as `time.monotonic` counts, or None.

    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    sampling: Sampling = field(default_factory=Sampling)
    until: float | None = None


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What one target tells its provider.

    Attributes:
        model: the model's name, empty when the provider needs none.
        url: base URL that replaces the provider's own, or None.
        timeout: most seconds that one attempt may take.
        retries: attempts after the first, for transient faults only.
        context_tokens: the context length to ask for where an API has such a setting (Ollama), None for
            the provider's default.

    """

    model: str = ""
    url: str | None = None
    timeout: float = 120.0
    retries: int = 4
    context_tokens: int | None = None


class TimeLimitError(ProviderError):
    """`ChatRequest.until` was reached before the answer was there, or would be reached by waiting."""


class Provider(Protocol):
    """An opened model API; one for each target in each process."""

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the reason why this case has to be skipped here, or None."""
        ...

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        """Ask the model once.

        Raises:
            TimeLimitError: `request.until` leaves no time for an answer.
            ProviderError: no usable answer came; retries for transient faults are already spent.

        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...
