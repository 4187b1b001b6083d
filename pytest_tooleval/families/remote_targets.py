"""What is measured on a tool broker behind MCP: what its mapping says that it offers, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.broker.answers import BUDGET_BYTES, DECISIONS, has_disposition, is_clear_error, is_instructive
from pytest_tooleval.broker.broker import DEFAULT_LIMIT
from pytest_tooleval.broker.mapping import at, found_refs, is_there, results_hint
from pytest_tooleval.broker.ranking_reader import EngineAnswer, RankingReader
from pytest_tooleval.cases.gold import ErgonomicsCase, InvocationScenario
from pytest_tooleval.errors import InfrastructureError
from pytest_tooleval.families.ergonomics import ergonomics_record
from pytest_tooleval.families.invocation import FAILED, OFFLINE, CallOutcome, invocation_record
from pytest_tooleval.families.remote_broker import RemoteAnswer, RemoteBroker
from pytest_tooleval.families.target import Target
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.measures.text import cut

AUTH = "AUTH_UNAVAILABLE"
_STATUS_OF = {OFFLINE: "offline", AUTH: "auth_required"}
_SELECTING = ("use", "ambiguous")


class RemoteEngine:
    """The search of a broker behind MCP."""

    def __init__(self, broker: RemoteBroker) -> None:
        self._broker = broker
        self._reader = RankingReader("broker", broker.name, broker.catalog)

    def search(self, query: str, limit: int) -> EngineAnswer:
        """Ask for a query's tools; without a decision an empty list is a refusal.

        Raises:
            InfrastructureError: the broker failed, or its answer is not what the mapping says.

        """
        broker, find = self._broker, self._broker.mapping.find
        answer = broker.find(query, limit)
        if broker.is_error(answer):
            return self._of_error(answer)
        entries = self._entries(answer)
        read = self._reader.read(entries, limit)
        decision, notes = self._decision(answer, read)
        misfits = self._misfits(answer.value, named=len(entries), known=len(read.refs))
        notes = (*notes, *misfits)
        confidence = at(answer.value, find.confidence)
        is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
        return EngineAnswer(read.refs, read.scores, decision, confidence if is_number else None, notes)

    def _of_error(self, answer: RemoteAnswer) -> EngineAnswer:
        """Return the decision that an error stands for, where the mapping says so."""
        error = at(answer.value, self._broker.mapping.error.type)
        decision = self._broker.mapping.find.decisions.get(error) if isinstance(error, str) else None
        if decision is None:
            told = self._broker.message(answer)
            raise InfrastructureError(f"the broker {self._broker.name!r} answered with an error: {told}")
        return EngineAnswer((), None, decision)

    def _entries(self, answer: RemoteAnswer) -> list[Any]:
        """Return refs of the catalog, with scores where all have one; what the catalog lacks stays as it is."""
        try:
            found = list(found_refs(self._broker.mapping.find, answer.value))
        except ValueError as error:
            raise InfrastructureError(f"the broker {self._broker.name!r}: {error}") from None
        refs = [self._broker.refs.get(ref, ref) if isinstance(ref, str) else ref for ref, _ in found]
        scores = [score for _, score in found]
        has_scores = self._broker.mapping.find.score is not None and all(map(_is_number, scores))
        return list(zip(refs, scores, strict=True)) if has_scores else refs

    def _misfits(self, value: Any, *, named: int, known: int) -> Iterator[str]:
        """Yield what speaks for a mapping that does not fit the answer."""
        mapping = self._broker.mapping
        if named and not known:
            refs = f"'refs' of the mapping, {mapping.refs!r}, says how the broker writes names"
            yield f"nothing that the broker found is a tool of the catalog; {refs}"
        if not any(is_there(value, place) for place in mapping.find.results):
            places = ", ".join(map(repr, mapping.find.results))
            yield f"there is nothing at {places} of the broker's answer{results_hint(value)}"

    def _decision(self, answer: RemoteAnswer, read: EngineAnswer) -> tuple[str, tuple[str, ...]]:
        find = self._broker.mapping.find
        if find.decision is None:
            return read.decision, read.notes
        word = at(answer.value, find.decision)
        decision = find.decisions.get(word, word) if isinstance(word, str) else None
        if decision in DECISIONS:
            return decision, read.notes
        shown = cut(repr(word), 60)
        note = f"the broker's decision {shown} is none that is known: name it under 'decisions' of its mapping"
        return read.decision, (*read.notes, note)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class RemoteInvocationTarget:
    """Calls through a broker behind MCP, whose servers are its own."""

    broker: RemoteBroker

    @property
    def name(self) -> str:
        """How the broker is called."""
        return self.broker.name

    def cannot_run(self, scenario: InvocationScenario) -> str | None:
        """Return why a scenario cannot be staged on servers that are not ours, or judged, or None."""
        mapping, expected = self.broker.mapping, scenario.expected_error
        if mapping.call is None:
            return "the broker offers no call: its mapping has no 'call'"
        if scenario.live_schema is not None:
            return "the broker's servers are its own: they cannot be given another schema"
        if expected and mapping.error.type is None:
            return "the broker's errors have no type: its mapping has no 'type' under 'error'"
        if expected == FAILED:
            return "the broker's servers are its own: they cannot be made to fail"
        status = _STATUS_OF.get(expected)
        if status is not None and status != self._catalogued_status(scenario.tool_ref):
            return f"the broker's servers are its own: the catalog does not say that this one is {status}"
        return None

    def measure(self, scenario: InvocationScenario, _trial: int = 1) -> CaseOutcome:
        """Make the scenario's call, and for a repair the corrected one.

        Raises:
            InfrastructureError: the broker gave no answer.

        """
        ref, corrected = scenario.tool_ref, scenario.corrected
        first = self._outcome(self.broker.call(ref, scenario.arguments))
        second = None if corrected is None else self._outcome(self.broker.call(ref, corrected))
        record = invocation_record(self.broker.catalog, scenario, first, second)
        return CaseOutcome(record["pass"], record)

    def close(self) -> None:
        """Do nothing: the session serves other targets too."""

    def _outcome(self, answer: RemoteAnswer) -> CallOutcome:
        broker = self.broker
        error = broker.error_type(answer)
        if error is None:
            return CallOutcome()
        places = broker.mapping.error
        is_told = places.type is not None and places.instruction is not None
        is_clear = is_clear_error(_envelope(broker, answer)) if is_told else None
        return CallOutcome(error, is_clear, broker.message(answer))

    def _catalogued_status(self, ref: str) -> str:
        tool = self.broker.catalog.by_ref.get(ref)
        statuses = {server.id: server.status for server in self.broker.catalog.servers}
        return "" if tool is None else statuses.get(tool.server_id, "online")


@dataclass(frozen=True, slots=True)
class RemoteErgonomicsTarget:
    """Requests to a broker behind MCP: one surface, so that nothing is compared."""

    broker: RemoteBroker

    @property
    def name(self) -> str:
        """How the broker is called."""
        return self.broker.name

    def cannot_run(self, case: ErgonomicsCase) -> str | None:
        """Return the reason when the broker has no such operation, or None."""
        mapping = self.broker.mapping
        operations = {"find": mapping.find, "describe": mapping.describe, "call": mapping.call}
        if operations[case.kind] is None:
            return f"the broker offers no {case.kind}: its mapping has no {case.kind!r}"
        return None

    def measure(self, case: ErgonomicsCase, _trial: int = 1) -> CaseOutcome:
        """Ask once, and judge what the mapping says that an answer holds.

        Raises:
            InfrastructureError: the broker gave no answer.

        """
        answer = self._asked(case)
        error = self.broker.error_type(answer)
        size = len(answer.text.encode("utf-8", "surrogatepass"))
        demands = {
            "decisionKnown": self._decision_known(case, answer, error),
            "instructive": self._instructive(case, answer, error),
            "errorDisposed": self._disposed(answer, error),
            "withinBudget": size <= BUDGET_BYTES[case.kind],
            "parity": None,
        }
        told = {
            "decision": self._decision(answer) if case.kind == "find" and error is None else None,
            "errorType": error or None,
            "toolRef": self._selected(case, answer, error),
            "bytes": size,
        }
        record = ergonomics_record(case, demands, told)
        return CaseOutcome(record["pass"], record)

    def close(self) -> None:
        """Do nothing: the session serves other targets too."""

    def _asked(self, case: ErgonomicsCase) -> RemoteAnswer:
        match case.kind:
            case "find":
                return self.broker.find(case.query, DEFAULT_LIMIT)
            case "describe":
                return self.broker.describe(case.tool_ref)
            case _:
                return self.broker.call(case.tool_ref, case.arguments)

    def _decision(self, answer: RemoteAnswer) -> str | None:
        find = self.broker.mapping.find
        word = at(answer.value, find.decision)
        return find.decisions.get(word, word) if isinstance(word, str) else None

    def _decision_known(self, case: ErgonomicsCase, answer: RemoteAnswer, error: str | None) -> bool | None:
        mapping = self.broker.mapping
        if error is not None:
            return None if mapping.error.type is None else bool(error)
        if case.kind != "find":
            return True
        return None if mapping.find.decision is None else self._decision(answer) in DECISIONS

    def _instructive(self, case: ErgonomicsCase, answer: RemoteAnswer, error: str | None) -> bool | None:
        mapping = self.broker.mapping
        if error is not None:
            return None if mapping.error.instruction is None else is_instructive(_envelope(self.broker, answer))
        operation = {"find": mapping.find, "describe": mapping.describe, "call": mapping.call}[case.kind]
        place = None if operation is None else operation.next_action
        if place is None:
            return None
        step = at(answer.value, place)
        return is_instructive({"nextActions": step} if isinstance(step, list) else {"nextAction": step})

    def _disposed(self, answer: RemoteAnswer, error: str | None) -> bool | None:
        places = self.broker.mapping.error
        if error is None or places.type is None or places.retryable is None:
            return None
        return has_disposition(_envelope(self.broker, answer))

    def _selected(self, case: ErgonomicsCase, answer: RemoteAnswer, error: str | None) -> str | None:
        if case.kind != "find":
            return case.tool_ref
        find = self.broker.mapping.find
        if error is not None or (find.decision is not None and self._decision(answer) not in _SELECTING):
            return None
        try:
            first = next((ref for ref, _ in found_refs(find, answer.value)), None)
        except ValueError:
            return None
        return self.broker.refs.get(first, first) if isinstance(first, str) else None


@dataclass(frozen=True, slots=True)
class UnmeasuredTarget:
    """A family that is measured on the reference broker only."""

    name: str

    def cannot_run(self, _: Any) -> str:
        """Return the reason why no case is run."""
        return "measured on the reference broker only: leave --tooleval-broker out"

    def measure(self, _: Any, _trial: int = 1) -> CaseOutcome:
        """Skip the case."""
        return CaseOutcome(passed=False, skipped=self.cannot_run(None))

    def close(self) -> None:
        """Do nothing."""


def remote_target(family: str, broker: RemoteBroker) -> Target:
    """Return the target of a family's cases, discovery left out."""
    match family:
        case "invocation":
            return RemoteInvocationTarget(broker)
        case "ergonomics":
            return RemoteErgonomicsTarget(broker)
        case _:
            return UnmeasuredTarget(broker.name)


def _envelope(broker: RemoteBroker, answer: RemoteAnswer) -> Mapping[str, Any]:
    """Return an error in the words of the reference broker."""
    places = broker.mapping.error
    error = {
        "type": broker.error_type(answer),
        "retryable": at(answer.value, places.retryable),
        "agentInstruction": at(answer.value, places.instruction),
    }
    return {"ok": False, "error": error}
