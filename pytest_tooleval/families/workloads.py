"""Token economy, result cache and performance: what one workload costs on the reference broker."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, NamedTuple

from pytest_tooleval.broker.broker import Broker
from pytest_tooleval.broker.cache import CachedBroker, CacheEvent
from pytest_tooleval.broker.envelope import error_type, json_text
from pytest_tooleval.broker.example import example_arguments
from pytest_tooleval.broker.fusion import reciprocal_rank_fusion
from pytest_tooleval.broker.search import SemanticLeg, ToolSearch
from pytest_tooleval.broker.surface import CALL, DESCRIBE, FIND, OPERATIONS, answer_text
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.gold import CacheWorkload, PerformanceWorkload, Request, TokensWorkload
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.measures.token_estimates import TokenEstimator

_OPERATION = {"find": FIND, "describe": DESCRIBE, "call": CALL}
_FUSED = 10


def arguments_of(catalog: Catalog, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a call's arguments, made from the tool's schema where the workload gives none."""
    if arguments is not None:
        return dict(arguments)
    return example_arguments(catalog.by_ref[ref].input_schema) or {}


def startup_tokens(definitions: Sequence[Mapping[str, Any]], estimator: TokenEstimator) -> int:
    """Return the tokens that a model reads before its first turn: each tool's name, description and schema."""
    return sum(estimator.count(json_text(dict(definition))) for definition in definitions)


class Exchange(NamedTuple):
    """A request to the broker and its answer, in tokens.

    Attributes:
        request_tokens: what the model writes.
        response_tokens: what it reads.
        error: the answer's error type, or None.

    """

    request_tokens: int
    response_tokens: int
    error: str | None

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.request_tokens + self.response_tokens


@dataclass(frozen=True, slots=True)
class TokensTarget:
    """All tools at once against the broker's three, in tokens."""

    name: str
    broker: Broker
    estimator: TokenEstimator

    def cannot_run(self, _: TokensWorkload) -> None:
        """Every workload can be run."""

    def measure(self, workload: TokensWorkload, _trial: int = 1) -> CaseOutcome:
        """Count both ways to do the representative task."""
        direct, brokered = self._direct_startup(), startup_tokens(list(OPERATIONS.values()), self.estimator)
        arguments = arguments_of(self.broker.catalog, workload.tool_ref, workload.arguments)
        exchanges = list(self._exchanges(workload, arguments))
        call = exchanges[-1]
        succeeded = call.error is None
        record = {
            "pass": True,
            "estimator": self.estimator.name,
            "directStartupTokens": direct,
            "brokerStartupTokens": brokered,
            "startupReductionRatio": 1 - brokered / direct if direct else None,
            "directTokensToSuccess": direct + call.tokens if succeeded else None,
            "brokerTokensToSuccess": brokered + sum(step.tokens for step in exchanges) if succeeded else None,
            "largestPayloadTokens": max(step.response_tokens for step in exchanges),
            "brokerCalls": len(exchanges),
        }
        if not succeeded:
            record["notes"] = [
                f"the call of {workload.tool_ref} failed with {call.error}: there is no success to count to"
            ]
        return CaseOutcome(passed=True, record=record)

    def close(self) -> None:
        """Do nothing."""

    def _direct_startup(self) -> int:
        definitions = [
            {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
            for tool in self.broker.catalog.tools
        ]
        return startup_tokens(definitions, self.estimator)

    def _exchanges(self, workload: TokensWorkload, arguments: dict[str, Any]) -> Iterator[Exchange]:
        """Make the requests of each step: find, describe, call."""
        for operation, request in (
            (FIND, {"query": workload.query}),
            (DESCRIBE, {"toolRef": workload.tool_ref}),
            (CALL, {"toolRef": workload.tool_ref, "arguments": arguments}),
        ):
            text = answer_text(self.broker, operation, request)
            count = self.estimator.count
            yield Exchange(count(json_text(request)), count(text), error_type(json.loads(text)))


@dataclass(frozen=True, slots=True)
class CacheTarget:
    """The broker behind its result cache."""

    name: str
    broker: Broker
    estimator: TokenEstimator

    def cannot_run(self, _: CacheWorkload) -> None:
        """Every workload can be run."""

    def measure(self, workload: CacheWorkload, _trial: int = 1) -> CaseOutcome:
        """Make the workload's requests, the cache empty at the start."""
        events: list[CacheEvent] = []
        cached = CachedBroker(self.broker, on_event=events.append)
        for request in workload.requests:
            answer_text(cached, _OPERATION[request.operation], self._arguments(request))
        return CaseOutcome(passed=True, record=self._record(events))

    def close(self) -> None:
        """Do nothing."""

    def _arguments(self, request: Request) -> dict[str, Any]:
        if request.operation == "find":
            return {"query": request.query}
        if request.operation == "describe":
            return {"toolRef": request.tool_ref}
        arguments = arguments_of(self.broker.catalog, request.tool_ref, request.arguments)
        return {"toolRef": request.tool_ref, "arguments": arguments}

    def _record(self, events: Sequence[CacheEvent]) -> dict[str, Any]:
        tokens = [(self.estimator.count(event.text), event.served) for event in events]
        cacheable = sum(event.cacheable for event in events)
        served = sum(event.served for event in events)
        executed = sum(count for count, was_served in tokens if not was_served)
        total = sum(count for count, _ in tokens)
        return {
            "pass": True,
            "estimator": self.estimator.name,
            "operations": len(events),
            "cacheableOps": cacheable,
            "servedFromCache": served,
            "delegatedOps": len(events) - served,
            "redundantCallReduction": served / cacheable if cacheable else None,
            "workloadResponseTokens": total,
            "executedResponseTokens": executed,
            "tokensAvoided": total - executed,
        }


@dataclass(frozen=True, slots=True)
class PerformanceTarget:
    """The paths of a query, timed.

    Attributes:
        name: how the target is called.
        broker: the whole path.
        lexical: the lexical leg alone.
        semantic: the semantic leg alone, or None when it does not run.
        refusal: why nothing can be timed here, else None.

    """

    name: str
    broker: Broker
    lexical: ToolSearch
    semantic: SemanticLeg | None = None
    refusal: str | None = None

    def cannot_run(self, _: PerformanceWorkload) -> str | None:
        """Return the reason when other processes would be timed too."""
        return self.refusal

    def measure(self, workload: PerformanceWorkload, _trial: int = 1) -> CaseOutcome:
        """Time each path."""
        record: dict[str, Any] = {"pass": True}
        for name, path in self._paths().items():
            queries = list(islice(cycle(workload.queries), workload.iterations))
            record[name] = timings([_seconds(path, query) for query in queries])
        return CaseOutcome(passed=True, record=record)

    def close(self) -> None:
        """Do nothing."""

    def _paths(self) -> dict[str, Callable[[str], object]]:
        rankings = [[tool.ref for tool in self.broker.catalog.tools[:_FUSED]]] * 2
        paths: dict[str, Callable[[str], object]] = {
            "lexical": lambda query: self.lexical.rank(query, _FUSED),
            "fusion": lambda _: reciprocal_rank_fusion(rankings),
            "endToEnd": self.broker.find_tool,
        }
        semantic = self.semantic
        if semantic is not None:
            paths["semantic"] = lambda query: semantic.rank(query, _FUSED)
        return paths


def _seconds(path: Callable[[str], object], query: str) -> float:
    started = time.perf_counter()
    path(query)
    return time.perf_counter() - started


def timings(seconds: Sequence[float]) -> dict[str, Any]:
    """Return n, nearest-rank 50th and 95th percentile in microseconds, and operations a second."""
    ordered = sorted(seconds)
    total = sum(ordered)
    return {
        "n": len(ordered),
        "p50Micros": _percentile(ordered, 0.50) * 1e6,
        "p95Micros": _percentile(ordered, 0.95) * 1e6,
        "opsPerSec": len(ordered) / total if total else None,
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else 0.0
