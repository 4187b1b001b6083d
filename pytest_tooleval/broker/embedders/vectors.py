"""Arrays of vectors, one row for each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_tooleval.errors import ConfigError

Vectors: TypeAlias = npt.NDArray[np.float32]
"""float32 array of shape (number of texts, dimensions); of shape (dimensions,) where one row is meant."""

_LENGTH_TOLERANCE = 1e-3


def unit_length(rows: npt.NDArray[Any]) -> Vectors:
    """Return rows, none of them all zeros, scaled to length 1."""
    wide = rows.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), dtype=np.float32)


def checked(rows: Any, count: int, embedder: str) -> Vectors:
    """Return what an embedder returned for `count` texts.

    Raises:
        ConfigError: it is no array of `count` rows of length 1.

    """
    try:
        vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the embedder {embedder!r} returned no array of numbers: {error}") from None
    if vectors.ndim != 2 or len(vectors) != count:
        shape = f"shape {vectors.shape} for {count} texts"
        raise ConfigError(f"the embedder {embedder!r} returned an array of {shape}; expected one row for each")
    if not has_unit_length(vectors):
        raise ConfigError(f"the embedder {embedder!r} returned a vector whose length is not 1; divide by its norm")
    return vectors


def has_unit_length(rows: Vectors) -> bool:
    """Whether all rows are vectors of length 1."""
    lengths = np.linalg.norm(rows, axis=-1)
    return bool((np.abs(lengths - 1) < _LENGTH_TOLERANCE).all())


def to_bytes(vector: Vectors) -> bytes:
    """Return a vector as little-endian float32."""
    return vector.astype("<f4").tobytes()


def from_bytes(stored: bytes) -> Vectors | None:
    """Return the vector in stored bytes, None when they hold no vector of length 1."""
    if len(stored) % 4:
        return None
    vector = np.frombuffer(stored, dtype="<f4").astype(np.float32)
    return vector if has_unit_length(vector) else None


def best_places(values: Vectors, limit: int) -> Sequence[int]:
    """Return the places of the highest values, at most `limit`, best first, equal ones in their order."""
    places = np.arange(len(values))
    if limit < len(values):
        places = np.flatnonzero(values >= np.partition(values, -limit)[-limit])
    ordered: list[int] = places[np.argsort(-values[places], kind="stable")][:limit].tolist()
    return ordered
