"""Hooks that a `conftest.py` or a plugin may implement.

Each is called for each suite, and may be called more than once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tooleval.broker.embedders.registry import EmbedderRegistry
    from pytest_tooleval.broker.engine import EngineRegistry
    from pytest_tooleval.cases.registry import FixtureRegistry
    from pytest_tooleval.measures.token_estimates import EstimatorRegistry
    from pytest_tooleval.providers.presets import ProviderRegistry
    from pytest_tooleval.tools.registry import ToolRegistry


@pytest.hookspec()
def pytest_tooleval_register_fixtures(fixtures: FixtureRegistry) -> None:
    """Contribute tool-use fixtures; a local fixture with the same id wins.

    Example for a `conftest.py`::

        def pytest_tooleval_register_fixtures(fixtures):
            fixtures.add({"id": "say-hello", "task": "Greet me.", "verifier": {"no_calls": True}})
    """


@pytest.hookspec()
def pytest_tooleval_register_tools(tools: ToolRegistry) -> None:
    """Contribute tools that run in this process.

    Example for a `conftest.py`::

        from pytest_tooleval.tools.tool import Tool

        def pytest_tooleval_register_tools(tools):
            schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
            tools.add(Tool("weather", "Weather of a city.", schema, "read", lambda args, context: "sunny"))
    """


@pytest.hookspec()
def pytest_tooleval_register_providers(providers: ProviderRegistry) -> None:
    """Contribute adapters to model APIs.

    Example for a `conftest.py`::

        from pytest_tooleval.transcript import AssistantMessage

        class Silent:
            def cannot_run(self, case):
                return None
            def reply(self, case, request):
                return AssistantMessage(text="I would rather not.")
            def close(self):
                pass

        def pytest_tooleval_register_providers(providers):
            providers.add("silent", lambda settings: Silent())
    """


@pytest.hookspec()
def pytest_tooleval_register_engines(engines: EngineRegistry) -> None:
    """Contribute searches for `--tooleval-engine NAME`.

    Example for a `conftest.py`::

        def first_tools(catalog):
            refs = sorted(tool.ref for tool in catalog.tools)
            return lambda query: refs[:5]

        def pytest_tooleval_register_engines(engines):
            engines.add("first", first_tools)
    """


@pytest.hookspec()
def pytest_tooleval_register_embedders(embedders: EmbedderRegistry) -> None:
    """Contribute embedders for `--tooleval-semantic --tooleval-embedder NAME`.

    Example for a `conftest.py`::

        import numpy

        class Letters:
            name, dimensions = "letters", 26
            def embed(self, texts):
                counts = [[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]
                array = numpy.array(counts, dtype=numpy.float32) + 1e-6
                return array / numpy.linalg.norm(array, axis=1, keepdims=True)

        def pytest_tooleval_register_embedders(embedders):
            embedders.add("letters", lambda settings: Letters())
    """


@pytest.hookspec()
def pytest_tooleval_register_estimators(estimators: EstimatorRegistry) -> None:
    """Contribute token estimators for `--tooleval-token-estimator NAME`.

    Example for a `conftest.py`::

        class Words:
            name = "words"
            def count(self, text):
                return len(text.split())

        def pytest_tooleval_register_estimators(estimators):
            estimators.add("words", Words)
    """
