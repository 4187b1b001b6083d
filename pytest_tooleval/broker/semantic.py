"""The semantic leg of the search: tools ranked by how close their meaning is to the query's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from pytest_tooleval.broker.embedders.background import PROBES, Background, measured_background
from pytest_tooleval.broker.embedders.embedder import Embedder
from pytest_tooleval.broker.embedders.vector_store import VectorStore, vector_key
from pytest_tooleval.broker.embedders.vectors import Vectors, best_places, checked, from_bytes, to_bytes
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ConfigError

LONGEST_TEXT = 1000
ROOM_FOR_PARAMETERS = 300
_DECIMALS = 6
_WORD_GAP = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class EmbeddingLeg:
    """Ranks a catalog's tools by the cosine of their vectors to the query's; safe to share among threads.

    Making one embeds the tools, except those whose vectors are cached.

    Args:
        catalog: the tools.
        embedder: turns texts into vectors; whoever opened it closes it.
        cache_folder: where vectors are kept; the user's cache folder by default. A folder that cannot be used, or a
            damaged file in it, costs time and nothing else.

    Raises:
        ConfigError: the embedder does not return one vector of length 1 for each text.
        ProviderError: the embedder's API gave no usable answer.

    """

    def __init__(self, catalog: Catalog, embedder: Embedder, cache_folder: Path | None = None) -> None:
        tools = sorted(catalog.tools, key=lambda tool: tool.ref)
        self._embedder = embedder
        self._store = VectorStore(default_cache_folder() if cache_folder is None else cache_folder)
        self._refs = [tool.ref for tool in tools]
        self.background = Background()
        if tools:
            vectors = cached_vectors([*map(embedded_text, tools), *PROBES], embedder, self._store)
            self._vectors = vectors[: len(tools)]
            self.background = measured_background(vectors[len(tools) :], self._vectors)

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self._embedder.name

    @property
    def relevance_floor(self) -> float:
        """Least similarity that speaks for a tool; how it was found is told in `embedders.background`."""
        return self.background.relevance_floor

    def rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        """Return the tools nearest to a query.

        Args:
            query: what is searched for; its first 1,000 characters count.
            limit: most tools to return.

        Returns:
            Refs with their cosines, rounded to 6 decimals, best first, ties by ref.

        Raises:
            ConfigError: the embedder does not return one vector of length 1, or one of another length than before.
            ProviderError: the embedder's API gave no usable answer.

        """
        if limit < 1 or not self._refs or not query.strip():
            return []
        cosines = (self._vectors @ self._embedded_query(query)).round(_DECIMALS)
        best = best_places(cosines, limit)
        return [(self._refs[place], round(float(cosines[place]), _DECIMALS)) for place in best]

    def _embedded_query(self, query: str) -> Vectors:
        (asked,) = checked(self._embedder.embed([query[:LONGEST_TEXT]]), 1, self.name)
        if len(asked) != self._vectors.shape[1]:
            lengths = f"{len(asked)} numbers for a query and of {self._vectors.shape[1]} for the tools"
            raise ConfigError(f"the embedder {self.name!r} gives vectors of {lengths}; delete {self._store.path}")
        return np.asarray(asked)


def default_cache_folder() -> Path:
    """Return the folder of vectors in the user's cache folder."""
    return Path(platformdirs.user_cache_path("pytest-tooleval", appauthor=False), "embeddings")


def embedded_text(tool: CatalogTool) -> str:
    """Return the text that stands for a tool: its name in words, title, description, at most 1,000 characters.

    Parameters and what they are for follow as far as the text is shorter than 300 characters with them: they help
    where a description says little, and blur it where it says enough.
    """
    said = (_in_words(tool.name), tool.title.strip(), tool.description.strip())
    text = ". ".join(part for part in said if part)[:LONGEST_TEXT]
    for parameter in _parameters(tool.input_schema):
        longer = f"{text}. {parameter}"
        if len(longer) > ROOM_FOR_PARAMETERS:
            break
        text = longer
    return text


def _in_words(name: str) -> str:
    return _WORD_GAP.sub(" ", name).strip()


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        description = field.get("description") if isinstance(field, Mapping) else None
        yield f"{_in_words(name)}: {description}" if isinstance(description, str) else _in_words(name)


def cached_vectors(texts: Sequence[str], embedder: Embedder, store: VectorStore) -> Vectors:
    """Return the vectors of texts, embedding only those that are not in the store.

    Returns:
        Array of shape (number of texts, dimensions), rows of length 1.

    Raises:
        ConfigError: the embedder does not return one vector of length 1 for each text.
        ProviderError: the embedder's API gave no usable answer.

    """
    keys = {text: vector_key(embedder.name, text) for text in texts}
    found = store.find(list(keys.values()))
    known = {text: row for text, key in keys.items() if (row := from_bytes(found.get(key, b""))) is not None}
    rows = known | _embedded([text for text in keys if text not in known], embedder)
    if len({len(row) for row in rows.values()}) > 1:  # another model under the same name
        known, rows = {}, _embedded(list(keys), embedder)
    store.add({keys[text]: to_bytes(row) for text, row in rows.items() if text not in known})
    return np.stack([rows[text] for text in texts])


def _embedded(texts: Sequence[str], embedder: Embedder) -> dict[str, Vectors]:
    rows = checked(embedder.embed(texts), len(texts), embedder.name) if texts else ()
    return dict(zip(texts, rows, strict=True))
