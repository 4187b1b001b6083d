"""Labelled rows of a gold set: what a tool search or broker should do, checked and typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_tooleval.cases.case import Source

DiscoveryCategory: TypeAlias = Literal["lexical", "semantic", "no_match", "ambiguous", "wrong_server"]
ExpectedOutcome: TypeAlias = Literal["success", "repair", "error"]
Operation: TypeAlias = Literal["find", "describe", "call"]


@dataclass(frozen=True, slots=True)
class DiscoveryRow:
    """An intent, and the tools that a search may answer it with.

    Attributes:
        id: unique in its file.
        intent: what is searched for.
        category: what kind of row it is.
        acceptable: refs of the tools that fit; empty for `no_match`.
        rationale: why.
        k: an acceptable tool must be among the first k.
        source: where the row stands.

    """

    family: ClassVar[str] = "discovery"

    id: str
    intent: str
    category: DiscoveryCategory
    acceptable: tuple[str, ...]
    rationale: str
    source: Source
    k: int = 1

    @property
    def tags(self) -> tuple[str, ...]:
        """The category, for `-m` and for gates."""
        return (self.category,)


@dataclass(frozen=True, slots=True)
class InvocationScenario:
    """A call through the broker, and what has to come of it.

    Attributes:
        id: the scenario's name, unique in its corpus's scenarios.
        tool_ref: the tool.
        arguments: what is passed first.
        expected_outcome: `success`; `repair`, when a corrected call has to succeed after the first fails; `error`.
        expected_error: the error type of the first call, for `repair` and `error`.
        corrected: the arguments of the second call, for `repair`.
        live_schema: the schema that the server really has, when it differs from the catalogued one.
        rationale: why.
        source: where the scenario stands.

    """

    family: ClassVar[str] = "invocation"
    tags: ClassVar[tuple[str, ...]] = ()

    id: str
    tool_ref: str
    arguments: Mapping[str, Any]
    expected_outcome: ExpectedOutcome
    rationale: str
    source: Source
    expected_error: str = ""
    corrected: Mapping[str, Any] | None = None
    live_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ErgonomicsCase:
    """A request to the broker whose answer an agent has to be able to work with.

    Attributes:
        id: the case's name, unique in its corpus's ergonomics cases.
        kind: which operation.
        query: what is searched for, for `find`.
        tool_ref: the tool, for `describe` and `call`; it need not exist.
        arguments: the call's arguments.
        expect_decision: what the decision is meant to be; reported, in no rate.
        expect_error_type: likewise the error type.
        rationale: why.
        source: where the case stands.

    """

    family: ClassVar[str] = "ergonomics"
    tags: ClassVar[tuple[str, ...]] = ()

    id: str
    kind: Operation
    rationale: str
    source: Source
    query: str = ""
    tool_ref: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expect_decision: str = ""
    expect_error_type: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the broker in a workload.

    Attributes:
        operation: what is asked for.
        query: what is searched for, for `find`.
        tool_ref: the tool, for `describe` and `call`.
        arguments: the call's arguments; None stands for an example made from the tool's schema.

    """

    operation: Operation
    query: str = ""
    tool_ref: str = ""
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TokensWorkload:
    """The representative task of the token economy: find a tool, describe it, call it.

    Attributes:
        query: what is searched for.
        tool_ref: the tool that does it.
        arguments: its arguments; None stands for an example made from its schema.
        source: where the workload stands.

    """

    family: ClassVar[str] = "tokens"
    id: ClassVar[str] = "tokens"
    tags: ClassVar[tuple[str, ...]] = ()

    query: str
    tool_ref: str
    arguments: Mapping[str, Any] | None
    source: Source


@dataclass(frozen=True, slots=True)
class CacheWorkload:
    """The requests that an agent repeats.

    Attributes:
        requests: in the order in which they are made.
        source: where the workload stands.

    """

    family: ClassVar[str] = "cache"
    id: ClassVar[str] = "cache"
    tags: ClassVar[tuple[str, ...]] = ()

    requests: tuple[Request, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class PerformanceWorkload:
    """The queries that are timed.

    Attributes:
        queries: asked in turn.
        iterations: how many timings each path gets.
        source: where the workload stands.

    """

    family: ClassVar[str] = "performance"
    id: ClassVar[str] = "performance"
    tags: ClassVar[tuple[str, ...]] = ()

    queries: tuple[str, ...]
    iterations: int
    source: Source


GoldCase: TypeAlias = (
    DiscoveryRow | InvocationScenario | ErgonomicsCase | TokensWorkload | CacheWorkload | PerformanceWorkload
)
