"""What an embedder is, and how those that come with the package load what they need."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_tooleval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_tooleval.broker.embedders.vectors import Vectors

INSTALL_COMMAND = "pip install 'pytest-tooleval[semantic]'"


class Embedder(Protocol):
    """A model that turns texts into vectors; safe to share among threads."""

    @property
    def name(self) -> str:
        """Name of the model: equal names mean equal vectors, for they are cached under it."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts.

        Returns:
            float32 array of shape (number of texts, dimensions), one row for each text, each of length 1.

        Raises:
            ProviderError: the model is behind an API that gave no usable answer.

        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """What is known of the embedder to open.

    Attributes:
        model: the model's name, empty for the embedder's own choice.
        url: base URL that replaces the embedder's own, or None.
        timeout: most seconds that one request may take.
        retries: requests after the first, for transient faults only.

    """

    model: str = ""
    url: str | None = None
    timeout: float = 120.0
    retries: int = 4


def imported(module: str, embedder: str, install: str = INSTALL_COMMAND) -> Any:
    """Import a package that only some installations have.

    Args:
        module: what to import.
        embedder: who needs it, for the message.
        install: the command that installs it.

    Raises:
        ConfigError: it is not installed, or does not load on this machine.

    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"the embedder {embedder!r} needs {module} ({error}); {install}") from None
