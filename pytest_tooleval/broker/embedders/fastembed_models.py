"""The models of the package `fastembed`, which downloads them when they are first used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_tooleval.broker.embedders.embedder import EmbedderSettings, imported
from pytest_tooleval.broker.embedders.vectors import Vectors, unit_length
from pytest_tooleval.errors import ConfigError

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"


class FastEmbedEmbedder:
    """A model of `fastembed`, loaded.

    Args:
        model_name: its name there.
        model: the `fastembed.TextEmbedding`.

    """

    def __init__(self, model_name: str, model: Any) -> None:
        self._model_name = model_name
        self._model = model

    @property
    def name(self) -> str:
        """`fastembed:MODEL`."""
        return f"fastembed:{self._model_name}"

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return int(self._model.embedding_size)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts."""
        rows = np.asarray(list(self._model.embed(list(texts))), dtype=np.float32)
        return unit_length(rows.reshape(len(texts), self.dimensions))

    def close(self) -> None:
        """Do nothing: the model goes with the object."""


def open_fastembed(settings: EmbedderSettings) -> FastEmbedEmbedder:
    """Load a model; the first time it is downloaded.

    Raises:
        ConfigError: the package is missing, does not know the model or cannot get it, or a URL was given.

    """
    if settings.url is not None:
        raise ConfigError("the embedder 'fastembed' runs on this machine: it takes no URL")
    name = settings.model or DEFAULT_MODEL
    fastembed = imported("fastembed", "fastembed", install="pip install fastembed")
    try:
        model = fastembed.TextEmbedding(name)
    except (ValueError, OSError, RuntimeError) as error:
        raise ConfigError(f"fastembed cannot load the model {name!r}: {error}") from None
    return FastEmbedEmbedder(name, model)
