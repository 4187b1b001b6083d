"""The embedders that can be asked for by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_tooleval.broker.embedders.embedder import Embedder, EmbedderSettings
from pytest_tooleval.errors import ConfigError, nearest

EmbedderFactory: TypeAlias = Callable[[EmbedderSettings], Embedder]

DEFAULT_EMBEDDER = "minilm"


class EmbedderRegistry:
    """Embedders by name.

    A `conftest.py` adds its own:

        def pytest_tooleval_register_embedders(embedders):
            embedders.add("mine", lambda settings: MyEmbedder(settings.model))
    """

    def __init__(self) -> None:
        self._factories: dict[str, EmbedderFactory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The known names in alphabetical order."""
        return tuple(sorted(self._factories))

    def add(self, name: str, factory: EmbedderFactory) -> None:
        """Make `NAME` and `NAME:MODEL` open what `factory` returns for these settings.

        Raises:
            ConfigError: the name is taken, empty, or holds a colon, a comma or a blank.

        """
        if not name or any(character in ":," or character.isspace() for character in name):
            raise ConfigError(f"{name!r} cannot name an embedder: no colons, commas or blanks, not empty")
        if name in self._factories:
            raise ConfigError(f"the embedder {name!r} is registered already; choose another name")
        self._factories[name] = factory

    def open(self, name: str, url: str | None = None, *, timeout: float = 120.0, retries: int = 4) -> Embedder:
        """Open the embedder that a user asked for.

        Args:
            name: `NAME` or `NAME:MODEL`.
            url: base URL of the API, for embedders that talk to one.
            timeout: most seconds that one request may take.
            retries: requests after the first, for transient faults only.

        Raises:
            ConfigError: no embedder has this name, a package is missing, or key, model or URL are wrong.

        """
        kind, _, model = name.strip().partition(":")
        if kind not in self._factories:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no embedder {kind!r}{nearest(kind, self.names)}; known: {known}")
        return self._factories[kind](EmbedderSettings(model.strip(), url, timeout, retries))


def register_builtin_embedders(registry: EmbedderRegistry, environ: Mapping[str, str] | None = None) -> None:
    """Add `minilm`, `openai` and `fastembed`; what they need is imported when one is opened.

    Args:
        registry: where to.
        environ: where the key is looked up when `openai` is opened; the process's environment by default.

    Raises:
        ConfigError: a name is taken.

    """
    keys = os.environ if environ is None else environ
    registry.add(DEFAULT_EMBEDDER, _open_minilm)
    registry.add("openai", lambda settings: _open_openai(settings, keys))
    registry.add("fastembed", _open_fastembed)


def _open_minilm(settings: EmbedderSettings) -> Embedder:
    from pytest_tooleval.broker.embedders.minilm import open_minilm

    return open_minilm(settings)


def _open_openai(settings: EmbedderSettings, environ: Mapping[str, str]) -> Embedder:
    from pytest_tooleval.broker.embedders.openai_api import open_openai

    return open_openai(settings, environ)


def _open_fastembed(settings: EmbedderSettings) -> Embedder:
    from pytest_tooleval.broker.embedders.fastembed_models import open_fastembed

    return open_fastembed(settings)
