"""The entry point: it is loaded in every pytest run, so it wires and does nothing else."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from pytest_tooleval import options

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_tooleval.broker.embedders.registry import EmbedderRegistry
    from pytest_tooleval.cases.registry import FixtureRegistry
    from pytest_tooleval.measures.token_estimates import EstimatorRegistry
    from pytest_tooleval.providers.presets import ProviderRegistry
    from pytest_tooleval.tools.registry import ToolRegistry


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks."""
    from pytest_tooleval import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Make the short option names work where no conftest has declared them, and values optional where they are."""
    if options.part_from_following(args):
        early_config.known_args_namespace = parser.parse_known_args(args, copy.copy(early_config.option))
    yield
    options.expand_short_names(parser, args)


def pytest_configure(config: pytest.Config) -> None:
    """Start where there is a suite."""
    if any(folder.is_dir() for folder in options.suite_folders(config)):
        from pytest_tooleval.session import start

        start(config)


def pytest_tooleval_register_fixtures(fixtures: FixtureRegistry) -> None:
    """Contribute the bundled fixtures, where the suite asks for them."""
    fixtures.add_bundled()


def pytest_tooleval_register_tools(tools: ToolRegistry) -> None:
    """Contribute the built-in tools."""
    tools.add_built_in()


def pytest_tooleval_register_providers(providers: ProviderRegistry) -> None:
    """Contribute the built-in providers."""
    from pytest_tooleval.providers.presets import register_builtin_providers

    register_builtin_providers(providers)


def pytest_tooleval_register_embedders(embedders: EmbedderRegistry) -> None:
    """Contribute the built-in embedders."""
    from pytest_tooleval.broker.embedders.registry import register_builtin_embedders

    register_builtin_embedders(embedders)


def pytest_tooleval_register_estimators(estimators: EstimatorRegistry) -> None:
    """Contribute the built-in token estimators."""
    from pytest_tooleval.measures.token_estimates import register_builtin_estimators

    register_builtin_estimators(estimators)
