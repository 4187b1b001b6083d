"""The agent loop: ask the model, run its calls, and so on until it answers. Whatever happens is data."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pytest_tooleval.agent.desk import DirectDesk, OpenDesk
from pytest_tooleval.agent.hints import unparsed_call_hint
from pytest_tooleval.agent.time_limit import MODEL, RunEndedError, TimeLimit
from pytest_tooleval.agent.tool_runner import ToolRunner
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import InfrastructureError, ProviderError
from pytest_tooleval.measures.text import LINE_CHARS, cut
from pytest_tooleval.providers.provider import ChatRequest, Provider, Sampling, TimeLimitError
from pytest_tooleval.providers.reply_check import reply_fault
from pytest_tooleval.providers.wire import offered_name
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import ToolContext
from pytest_tooleval.transcript import (
    AssistantMessage,
    BrokerCall,
    Message,
    Run,
    Status,
    ToolCall,
    ToolMessage,
    TraceEntry,
    Usage,
    UserMessage,
)

DEFAULT_MAX_TURNS = 10
DEFAULT_SYSTEM_PROMPT = (
    "You work on a task in a folder of files. Paths are relative to that folder. "
    "Use the tools you are offered where the task needs them, and no others. "
    "When the task is done, answer in a few words."
)
_CUT_OFF = "not run: the reply was cut off by the output limit before this call was complete"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What holds for every case of a target."""

    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    sampling: Sampling = field(default_factory=Sampling)
    max_turns: int = DEFAULT_MAX_TURNS


class Agent:
    """Works on one case, once.

    Args:
        case: the task.
        provider: answers for the model.
        offer: the tools.
        context: where and within which bounds the tools work.
        settings: what holds for every case.
        time_limit: when the run has to be over, and whether it was ended from outside.
        open_desk: puts the tools before the model; by default it is offered all of them at once.

    """

    def __init__(
        self,
        case: ToolUseCase,
        provider: Provider,
        offer: Offer,
        context: ToolContext,
        settings: AgentSettings,
        time_limit: TimeLimit | None = None,
        *,
        open_desk: OpenDesk = DirectDesk,
    ) -> None:
        self._case = case
        self._provider = provider
        self._settings = settings
        self._time_limit = time_limit or TimeLimit()
        self._notes: list[str] = []
        self._desk = open_desk(offer, ToolRunner(context, self._time_limit, self._notes))
        self._max_turns = (case.max_turns or settings.max_turns) * self._desk.replies_for_one
        self._messages: list[Message] = [UserMessage(case.task)]
        self._replies: list[AssistantMessage] = []
        self._attempts = 0
        self._trace: list[TraceEntry] = []
        self._broker_calls: list[BrokerCall] = []

    def run(self) -> Run:
        """Work until the model answers, a limit is reached or the infrastructure fails."""
        started = time.perf_counter()
        try:
            status, detail = self._work()
        except InfrastructureError as error:
            status, detail = "error", str(error)
        except RunEndedError as ended:
            status, detail = ended.status, str(ended)
        return Run(
            status=status,
            messages=tuple(self._messages),
            trace=tuple(self._trace),
            answer=self._replies[-1].text if status == "ok" else "",
            usage=self._usage(),
            seconds=time.perf_counter() - started,
            turns=len(self._replies),
            attempts=self._attempts,
            detail=detail,
            notes=tuple(dict.fromkeys(self._notes)),
            broker_calls=tuple(self._broker_calls),
        )

    def _work(self) -> tuple[Status, str]:
        for _ in range(self._max_turns):
            reply = self._ask()
            if not reply.calls:
                return self._finish(reply)
            self._messages.extend(self._run_calls(reply))
        return "truncated", f"the turn limit of {self._max_turns} was reached"

    def _ask(self) -> AssistantMessage:
        request = ChatRequest(
            self._settings.system_prompt,
            tuple(self._messages),
            self._desk.specs,
            self._settings.sampling,
            self._time_limit.until,
        )
        try:
            with self._time_limit.spent_on(MODEL):
                reply = self._reply_to(request)
        except TimeLimitError as error:
            self._attempts += error.attempts
            raise self._time_limit.over() from None
        except ProviderError as error:
            self._attempts += error.attempts
            raise
        self._attempts += reply.attempts
        self._notes += [note for note in reply.notes if note not in self._notes]
        reply = replace(reply, calls=tuple(map(self._with_offered_name, reply.calls)))
        self._messages.append(reply)
        self._replies.append(reply)
        return reply

    def _reply_to(self, request: ChatRequest) -> AssistantMessage:
        try:
            reply = self._provider.reply(self._case, request)
        except InfrastructureError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a provider that a user registered may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename}:{frame.lineno}"
            said = cut(str(error), LINE_CHARS)
            raise ProviderError(f"the provider raised {type(error).__name__}: {said} ({place})") from None
        if not isinstance(reply, AssistantMessage):
            raise ProviderError(f"the provider returned {type(reply).__name__}; expected an AssistantMessage")
        fault = reply_fault(reply)
        if fault:
            raise ProviderError(f"the provider returned a reply that is none: {fault}")
        return reply

    def _with_offered_name(self, call: ToolCall) -> ToolCall:
        name = offered_name(call.name, self._desk.names)
        raw_name = call.raw_name or call.name
        if name != raw_name:
            self._notes.append(f"the model called {raw_name!r}, which was read as {name!r}")
        return replace(call, name=name, raw_name=raw_name)

    def _finish(self, reply: AssistantMessage) -> tuple[Status, str]:
        if reply.finish == "length":
            return "truncated", "the reply was cut off by the output limit"
        hint = unparsed_call_hint(reply.text, [spec.name for spec in self._desk.specs])
        if hint:
            self._notes.append(hint)
        return "ok", ""

    def _run_calls(self, reply: AssistantMessage) -> Iterator[ToolMessage]:
        """Run a reply's calls one after the other, in the model's order, so that effects follow it too."""
        complete = reply.calls[:-1] if reply.finish == "length" else reply.calls
        for call in complete:
            entry = self._desk.answer(len(self._replies), call)
            if isinstance(entry, BrokerCall):
                self._broker_calls.append(entry)
            else:
                self._trace.append(entry)
            yield ToolMessage(call.id, call.name, entry.result, is_error=entry.failed)
        for call in reply.calls[len(complete) :]:
            self._notes.append(f"a call of {call.name} was {_CUT_OFF}")
            yield ToolMessage(call.id, call.name, _CUT_OFF, is_error=True)

    def _usage(self) -> Usage | None:
        usages = [reply.usage for reply in self._replies]
        known = [usage for usage in usages if usage is not None]
        return sum(known[1:], known[0]) if known and len(known) == len(usages) else None
