"""The targets of a corpus's gold rows: searches for discovery, a broker for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of
from pytest_tooleval.broker.broker import Broker
from pytest_tooleval.broker.decision import Limits
from pytest_tooleval.broker.downstream import InProcessDownstream
from pytest_tooleval.broker.engine import Engine, EngineFactory, ReferenceEngine, UserEngine
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.broker.semantic import EmbeddingLeg
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.families.discovery import DiscoveryTarget
from pytest_tooleval.families.ergonomics import ErgonomicsTarget
from pytest_tooleval.families.invocation import InvocationTarget
from pytest_tooleval.families.late import Late, LateLeg, LateSearch
from pytest_tooleval.families.names import BROKER, LEXICAL, LEXICAL_ONLY
from pytest_tooleval.families.remote_broker import RemoteBroker
from pytest_tooleval.families.remote_session import MeasuredBroker
from pytest_tooleval.families.remote_targets import RemoteEngine, remote_target
from pytest_tooleval.families.target import Target
from pytest_tooleval.families.workloads import CacheTarget, PerformanceTarget, TokensTarget
from pytest_tooleval.measures.token_estimates import TokenEstimator


@dataclass(frozen=True, slots=True)
class GoldSettings:
    """What holds for the gold rows of every corpus.

    Attributes:
        engines: the searches to measure by name; None stands for a reference one.
        semantic_leg: makes the semantic leg for a catalog, or None where search is lexical.
        estimator: counts tokens.
        no_timing: why nothing can be timed in this process, else None.
        model: name of the model that embeds, or that there is none.
        broker: a broker behind MCP that is measured in place of the reference one, or None.

    """

    engines: Mapping[str, EngineFactory | None]
    semantic_leg: Callable[[Catalog], EmbeddingLeg] | None
    estimator: TokenEstimator
    no_timing: str | None = None
    model: str = LEXICAL_ONLY
    broker: MeasuredBroker | None = None


def broken_schemas(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the ref of each tool whose input schema is no JSON Schema, with what is wrong."""
    for tool in catalog.tools:
        if not _is_schema(tool.input_schema):
            try:
                checker_of(tool.input_schema)
            except BrokenSchemaError as error:
                yield tool.ref, str(error)


def _is_schema(schema: Mapping[str, Any]) -> bool:
    """Whether a schema surely keeps its meta-schema; a fast look, as most of them do."""
    import jsonschema_rs

    try:
        return jsonschema_rs.meta.is_valid(dict(schema))
    except (ValueError, OverflowError, RecursionError):
        return False


class CorpusTargets:
    """The targets over one catalog, each made when it is first asked for."""

    def __init__(self, catalog: Catalog, settings: GoldSettings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._made: dict[str, tuple[Target, ...]] = {}

    def of(self, family: str) -> tuple[Target, ...]:
        """Return the targets of a family's cases.

        Raises:
            ConfigError: an engine could not be made.

        """
        if family not in self._made:
            self._made[family] = tuple(self._make(family))
        return self._made[family]

    def close(self) -> None:
        """Release what was made."""
        for targets in self._made.values():
            for target in targets:
                target.close()
        if self._settings.broker is not None:
            self._settings.broker.close()

    def _make(self, family: str) -> Sequence[Target]:
        remote = self._remote
        if family == "discovery":
            found: list[tuple[str, Engine]] = [] if remote is None else [(remote.name, RemoteEngine(remote))]
            found += [(name, self._engine(name)) for name in self._settings.engines]
            return [DiscoveryTarget(name, self._catalog, engine, self._lexical) for name, engine in found]
        return [self._of_reference(family) if remote is None else remote_target(family, remote)]

    def _of_reference(self, family: str) -> Target:
        broker, estimator = self._broker, self._settings.estimator
        makers: Mapping[str, Callable[[], Target]] = {
            "invocation": lambda: InvocationTarget(BROKER, self._catalog, self._search),
            "ergonomics": lambda: ErgonomicsTarget(BROKER, broker),
            "tokens": lambda: TokensTarget(BROKER, broker, estimator),
            "cache": lambda: CacheTarget(BROKER, broker, estimator),
            "performance": lambda: PerformanceTarget(
                BROKER, broker, self._lexical, LateLeg(self._leg) if self._leg else None, self._settings.no_timing
            ),
        }
        return makers[family]()

    def _engine(self, name: str) -> Engine:
        factory = self._settings.engines[name]
        if factory is not None:
            return UserEngine(name, factory, self._catalog)
        return ReferenceEngine(self._lexical if name == LEXICAL else self._search)

    @cached_property
    def _remote(self) -> RemoteBroker | None:
        broker = self._settings.broker
        return None if broker is None else broker.over(self._catalog)

    @cached_property
    def _leg(self) -> Late[EmbeddingLeg] | None:
        make = self._settings.semantic_leg
        return None if make is None else Late(lambda: make(self._catalog))

    @cached_property
    def _lexical(self) -> ToolSearch:
        return ToolSearch(self._catalog)

    @cached_property
    def _search(self) -> ToolSearch | LateSearch:
        leg = self._leg
        return self._lexical if leg is None else LateSearch(Late(lambda: self._hybrid(leg.get())))

    def _hybrid(self, leg: EmbeddingLeg) -> ToolSearch:
        return ToolSearch(self._catalog, leg, Limits(similarity=leg.relevance_floor))

    @cached_property
    def _broker(self) -> Broker:
        return Broker(self._catalog, self._search, InProcessDownstream(self._catalog))
