"""Models behind `POST {base}/embeddings`, as OpenAI and many servers offer it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pytest_tooleval.broker.embedders.embedder import EmbedderSettings
from pytest_tooleval.broker.embedders.vectors import Vectors, unit_length
from pytest_tooleval.errors import ConfigError, ProviderError
from pytest_tooleval.providers.account import Account, checked_base_url, shown_url
from pytest_tooleval.providers.http import HttpTransport, JsonObject, JsonTransport, Patience
from pytest_tooleval.providers.http_errors import error_in_body

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
BATCH = 64
HIGHEST_NUMBER = 1e30


class OpenAiEmbedder:
    """A model behind an embeddings API.

    Args:
        name: what the vectors are cached under.
        model: the model's name, as the API knows it.
        account: address and key.
        transport: what carries the requests.

    """

    def __init__(self, name: str, model: str, account: Account, transport: JsonTransport) -> None:
        self._name = name
        self._model = model
        self._url = account.endpoint("embeddings")
        self._headers = {"Authorization": f"Bearer {account.key}"} if account.key else {}
        self._transport = transport
        self._lock = threading.Lock()
        self._dimensions = 0

    @property
    def name(self) -> str:
        """`openai:MODEL`, followed by `@` and the base URL where it is not OpenAI's."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of the vectors; where nothing was embedded yet, one request finds it out.

        Raises:
            ProviderError: no usable answer came.

        """
        if not self._dimensions:
            self.embed(["dimensions"])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, asked for in batches of 64.

        Raises:
            ProviderError: no usable answer came; retries for transient faults are already spent.

        """
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        rows = [row for batch in batches for row in self._ask(batch)]
        return unit_length(np.array(rows)) if rows else np.empty((0, self.dimensions), np.float32)

    def close(self) -> None:
        """Release connections."""
        self._transport.close()

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        sent = [text if text.strip() else "-" for text in texts]  # the API refuses a blank text
        body: JsonObject = {"model": self._model, "input": sent, "encoding_format": "float"}
        answer = self._transport.post_json(
            self._url, self._headers, body, lambda said: parse_embeddings(said, len(texts))
        )
        rows = answer.value
        self._learn(len(rows[0]))
        return rows

    def _learn(self, dimensions: int) -> None:
        with self._lock:
            known, self._dimensions = self._dimensions or dimensions, dimensions
        if known != dimensions:
            raise ProviderError(f"{self._name} gave vectors of {known} numbers first and of {dimensions} now")


def open_openai(settings: EmbedderSettings, environ: Mapping[str, str]) -> OpenAiEmbedder:
    """Return the embedder; nothing is sent yet.

    Raises:
        ConfigError: the model or the key is missing, or the URL is wrong.

    """
    if not settings.model:
        raise ConfigError("the embedder 'openai' needs a model: openai:MODEL, as openai:text-embedding-3-small")
    url = checked_base_url(DEFAULT_URL if settings.url is None else settings.url)
    account = Account("openai", url, KEY_VARIABLE, _key(settings, environ))
    place = "" if settings.url is None else f"@{shown_url(url).rstrip('/')}"
    transport = HttpTransport(account, Patience(timeout=settings.timeout, retries=settings.retries))
    return OpenAiEmbedder(f"openai:{settings.model}{place}", settings.model, account, transport)


def _key(settings: EmbedderSettings, environ: Mapping[str, str]) -> str | None:
    key = environ.get(KEY_VARIABLE, "").strip()
    if not key and settings.url is None:
        raise ConfigError(f"the embedder 'openai' needs a key: set {KEY_VARIABLE} (with a URL it may go without)")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{KEY_VARIABLE} holds characters that no HTTP header can carry")
    return key or None


def parse_embeddings(body: JsonObject, count: int) -> list[list[float]]:
    """Return the vectors in an answer, in the order of the texts that were asked about.

    Args:
        body: the decoded answer.
        count: how many texts were sent.

    Raises:
        ProviderError: the answer is an error or breaks the protocol (then it is transient).

    """
    error = error_in_body(body)
    if error is not None:
        raise error
    data = body.get("data")
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        raise _broken("it has no list of embeddings")
    if not all(isinstance(entry.get("index", 0), int) for entry in data):
        raise _broken("one of its indexes is no number")
    by_index = {entry.get("index", place): entry.get("embedding") for place, entry in enumerate(data)}
    if len(data) != count or set(by_index) != set(range(count)):
        raise _broken(f"it holds {len(data)} embeddings, with {len(by_index)} indexes, for {count} texts")
    rows = [_vector(by_index[place]) for place in range(count)]
    if len({len(row) for row in rows}) > 1:
        raise _broken("its vectors differ in length")
    return rows


def _vector(value: Any) -> list[float]:
    numbers = value if isinstance(value, list) else []
    sound = all(isinstance(number, int | float) and abs(number) < HIGHEST_NUMBER for number in numbers)
    if not sound or not any(numbers):
        raise _broken("one of its embeddings is no list of numbers other than zeros")
    return numbers


def _broken(what: str) -> ProviderError:
    return ProviderError(f"the answer breaks the protocol: {what}", transient=True)
