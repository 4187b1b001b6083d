"""What stands between a model and the tools: what it is offered, and what comes of its calls."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol, TypeAlias

from pytest_tooleval.agent.tool_runner import ToolRunner
from pytest_tooleval.measures.text import shorten
from pytest_tooleval.providers.provider import ToolSpec
from pytest_tooleval.tools.arguments import without_refused_nulls
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.transcript import BrokerCall, Outcome, ToolCall, TraceEntry

_MOST_LISTED = 40


class Desk(Protocol):
    """Takes the calls of one run."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""
        ...

    @property
    def names(self) -> Collection[str]:
        """What a call can mean; a namespace before one of these names is no part of it."""
        ...

    @property
    def replies_for_one(self) -> int:
        """How many replies it may take to come to what one reply does where all tools are offered at once."""
        ...

    def answer(self, turn: int, call: ToolCall) -> TraceEntry | BrokerCall:
        """Do what a call asks for, and say what came of it.

        Args:
            turn: 1-based number of the reply that holds the call.
            call: the call, whatever it names.

        Raises:
            InfrastructureError: a tool could not be tried.
            RunEndedError: the run is over.

        """
        ...


OpenDesk: TypeAlias = Callable[[Offer, ToolRunner], Desk]
"""Opens the desk of one run."""


class DirectDesk:
    """Offers every tool by its own name.

    Args:
        offer: the tools.
        runner: runs them.

    """

    def __init__(self, offer: Offer, runner: ToolRunner) -> None:
        self._offer = offer
        self._runner = runner
        self.specs = tuple(
            ToolSpec(tool.name, tool.description, tool.parameters) for tool in offer.offered.values()
        )
        self.names: Collection[str] = (*offer.offered, *offer.denied)
        self.replies_for_one = 1

    def answer(self, turn: int, call: ToolCall) -> TraceEntry:
        """Run the tool that a call names."""
        tool = self._offer.offered.get(call.name)
        if tool is None:
            outcome, text = self._refusal(call)
            return TraceEntry(turn, call, outcome, self._runner.bounded(text))
        if call.arguments is None:
            text = f"the arguments are not a JSON object: {shorten(call.raw_arguments, 200)}"
            return TraceEntry(turn, call, "invalid_arguments", self._runner.bounded(text))
        call = replace(call, arguments=without_refused_nulls(tool, call.arguments))
        return TraceEntry(turn, call, *self._runner.run(tool, call.arguments or {}))

    def _refusal(self, call: ToolCall) -> tuple[Outcome, str]:
        offered = _listed(self._offer.offered)
        reason = self._offer.denied.get(call.name)
        if reason is not None:
            return "denied", f"the tool {call.name} is not allowed here: {reason}; allowed tools: {offered}"
        return "unknown_tool", f"there is no tool {call.name!r}; the tools are: {offered}"


def _listed(names: Collection[str]) -> str:
    """Return names for a model that has them all before it anyhow."""
    return (", ".join(names) or "none") if len(names) <= _MOST_LISTED else f"the {len(names)} that were offered"
