"""What gold rows run with: engines, the semantic leg, the token estimator. Loaded only where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from pytest_tooleval.broker.embedders.embedder import Embedder
from pytest_tooleval.broker.embedders.registry import EmbedderRegistry
from pytest_tooleval.broker.engine import EngineRegistry
from pytest_tooleval.broker.mapping import load_mapping
from pytest_tooleval.broker.semantic import EmbeddingLeg
from pytest_tooleval.environment import relative_to_root
from pytest_tooleval.errors import CaseError, ConfigError
from pytest_tooleval.families.gold import GoldSettings
from pytest_tooleval.families.names import HYBRID, LEXICAL_ONLY, REFERENCE_ENGINES
from pytest_tooleval.families.remote_session import MeasuredBroker, parse_broker
from pytest_tooleval.measures.token_estimates import EstimatorRegistry, TokenEstimator
from pytest_tooleval.settings import Settings
from pytest_tooleval.tools.mcp.config import McpServer


def gold_settings(
    config: pytest.Config, hook: Any, settings: Settings, servers: Mapping[str, McpServer]
) -> GoldSettings:
    """Return what holds for the gold rows of every corpus.

    Args:
        config: the run's configuration.
        hook: the suite's hook caller, which hears its conftest.
        settings: the options.
        servers: the configured MCP servers by name.

    Raises:
        ConfigError: an engine, embedder or estimator is unknown or cannot be used.

    """
    registry = EngineRegistry(REFERENCE_ENGINES)
    hook.pytest_tooleval_register_engines(engines=registry)
    names = settings.engine_names
    if HYBRID in names and not settings.semantic:
        raise ConfigError("the engine 'hybrid' needs the semantic leg: add --tooleval-semantic")
    engines = {name: None if name in REFERENCE_ENGINES else registry.factory(name) for name in names}
    in_worker = hasattr(config, "workerinput")
    embedder = _embedder(hook, settings)
    return GoldSettings(
        engines=engines,
        semantic_leg=None if embedder is None else partial(EmbeddingLeg, embedder=embedder),
        estimator=_estimator(hook, settings),
        no_timing="other worker processes would be timed too; run without -n" if in_worker else None,
        model=LEXICAL_ONLY if embedder is None else embedder.name,
        broker=_broker(config, settings, servers) if settings.broker else None,
    )


def _broker(config: pytest.Config, settings: Settings, servers: Mapping[str, McpServer]) -> MeasuredBroker:
    mapping = None
    if settings.broker_mapping is not None:
        shown = relative_to_root(settings.broker_mapping, config)
        try:
            mapping = load_mapping(settings.broker_mapping, shown)
        except CaseError as error:
            raise ConfigError(str(error)) from None
    return parse_broker(
        settings.broker or "", mapping, config.invocation_params.dir, servers, settings.request_timeout
    )


def _embedder(hook: Any, settings: Settings) -> Embedder | None:
    if not settings.semantic:
        return None
    registry = EmbedderRegistry()
    hook.pytest_tooleval_register_embedders(embedders=registry)
    return registry.open(
        settings.embedder, settings.embedder_url, timeout=settings.request_timeout, retries=settings.retries
    )


def _estimator(hook: Any, settings: Settings) -> TokenEstimator:
    registry = EstimatorRegistry()
    hook.pytest_tooleval_register_estimators(estimators=registry)
    return registry.open(settings.token_estimator)
