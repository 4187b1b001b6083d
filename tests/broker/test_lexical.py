from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_tooleval.broker.lexical import FIELD_WEIGHTS, K1, B, LexicalIndex
from pytest_tooleval.cases.catalog import CatalogTool

TOOLS = (
    CatalogTool("wiki.search_pages", "wiki", "search_pages", "Search the wiki", "Find pages by free text."),
    CatalogTool("wiki.get_page", "wiki", "get_page", "", "Fetch one page by its id."),
    CatalogTool("mail.send_email", "mail", "send_email", "", "Send a message to recipients."),
    CatalogTool("mail.search_emails", "mail", "search_emails", "", "Search the mailbox for messages."),
    CatalogTool(
        "db.run",
        "db",
        "run",
        "",
        "Execute a statement.",
        {"properties": {"sql": {"description": "The query, SELECT only."}, "rowLimit": {"type": "integer"}}},
    ),
)
INDEX = LexicalIndex(TOOLS)


def refs(query: str, index: LexicalIndex = INDEX, limit: int = 10) -> list[str]:
    return [hit.ref for hit in index.rank(query, limit)]


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("search wiki pages", "wiki.search_pages"),
        ("wiki.get_page", "wiki.get_page"),
        ("getPage", "wiki.get_page"),
        ("send an e-mail to someone", "mail.send_email"),
        ("look through the mailbox", "mail.search_emails"),
        ("sql", "db.run"),
        ("row limit", "db.run"),
        ("rowLimit", "db.run"),
        ("select", "db.run"),
    ],
)
def test_every_field_is_searched(query, ref):
    assert refs(query)[0] == ref


@pytest.mark.parametrize("query", ["", "  ", "zzz", "the of", "!?", "of the zzz", "\ufe0f"])
def test_nothing_is_found_without_a_shared_word(query):
    assert INDEX.rank(query, 10) == []


def test_only_tools_with_a_word_of_the_query_are_found():
    assert refs("mailbox or zzz") == ["mail.search_emails"]


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (2, 2), (3, 2), (10**9, 2)])
def test_at_most_as_many_as_asked_for(limit, count):
    assert len(INDEX.rank("search", limit)) == count


@pytest.mark.parametrize("tools", [(), tuple(CatalogTool(f"s.{n}", "", "", "", "") for n in "ab")])
def test_catalogs_without_a_word(tools):
    assert LexicalIndex(tools).rank("search", 10) == []


def test_ties_go_by_ref_wherever_the_tools_stand():
    tools = [CatalogTool(f"s{n}.same", f"s{n}", "same", "", "Do the same thing.") for n in range(9)]
    random.Random(3).shuffle(tools)
    assert refs("same thing", LexicalIndex(tools)) == [f"s{n}.same" for n in range(9)]
    assert refs("same thing", LexicalIndex(tools), 4) == [f"s{n}.same" for n in range(4)]


def test_the_order_of_catalog_and_query_changes_nothing():
    shuffled = [*TOOLS]
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        other = LexicalIndex(shuffled)
        for query in ("search page message", "message page search", "send query mail wiki text"):
            assert other.rank(query, 10) == INDEX.rank(" ".join(reversed(query.split())), 10)


def test_a_repeated_word_of_the_query_counts_once():
    assert INDEX.rank("page page pages search", 10) == INDEX.rank("search page", 10)


def test_scores_are_those_of_the_formula():
    tools = (
        CatalogTool("a.x", "a", "x", "", "red red blue"),
        CatalogTool("b.y", "b", "y", "", "red"),
        CatalogTool("c.z", "c", "z", "", "blue green blue green blue"),
    )
    mean = (3 + 1 + 5) / 3
    frequency = FIELD_WEIGHTS["description"] * 2 / (1 - B + B * 3 / mean)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    found = {hit.ref: hit for hit in LexicalIndex(tools).rank("red", 10)}
    assert found["a.x"].score == pytest.approx(
        max(idf, 0.25 * math.log(8)) * frequency * (K1 + 1) / (frequency + K1)
    )


def test_relevance_is_a_share():
    full, part = INDEX.rank("send message", 1)[0], INDEX.rank("send parcel abroad tomorrow", 1)[0]
    assert full.ref == part.ref == "mail.send_email"
    assert 0 < part.relevance < 0.3 < full.relevance <= 1


def test_a_long_query_need_not_be_met_in_all_its_words():
    long = "send a message, since the committee has to hear about the unexpected delay of the northern shipment"
    assert INDEX.rank(long, 1)[0].relevance > 0.25


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("搜索邮件", "s.mail"),
        ("我想查找邮件", "s.mail"),
        ("国際標準化", "s.standard"),
        ("найди файлы", "s.file"),
        ("größe ändern", "s.size"),
        ("GRÖSSE", "s.size"),
        ("🔊", "s.sound"),
    ],
)
def test_any_script_is_searched(query, ref):
    tools = [
        CatalogTool("s.mail", "s", "邮件", "", "在邮箱中搜索邮件"),
        CatalogTool("s.standard", "s", "規格", "", "国際標準化機構の規格を取得する"),
        CatalogTool("s.file", "s", "поиск", "", "Поиск файлов на диске"),
        CatalogTool("s.size", "s", "größe", "", "Die Größe eines Bildes ändern"),
        CatalogTool("s.sound", "s", "volume", "", "Turn 🔊 up"),
    ]
    assert refs(query, LexicalIndex(tools))[0] == ref


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"properties": {"needle": {}}}}},
        {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"description": "A needle."}}}}}},
        {"anyOf": [{"type": "null"}, {"properties": {"needle": True}}]},
        {"$defs": {"x": {"properties": {"needle": {"description": 5}}}}},
        {"properties": {"description": {"description": "needle"}}},
        {"properties": {"needle": None}, "items": "x", "allOf": {}, "$defs": []},
    ],
)
def test_parameters_wherever_a_schema_holds_them(schema):
    assert refs("needle", LexicalIndex([CatalogTool("s.t", "s", "t", input_schema=schema)])) == ["s.t"]


def test_other_parts_of_a_schema_are_no_evidence():
    schema = {
        "title": "needle",
        "properties": {"a": {"enum": ["needle"], "default": {"properties": {"needle": {}}}}},
    }
    assert refs("needle", LexicalIndex([CatalogTool("s.t", "s", "t", input_schema=schema)])) == []


def test_threads_share_an_index():
    queries = ["search page", "send message", "sql query", "мир 世界"] * 50
    alone = [INDEX.rank(query, 10) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: INDEX.rank(query, 10), queries)) == alone


SCRIPT = """
from pytest_tooleval.broker.lexical import LexicalIndex
from pytest_tooleval.cases.catalog import CatalogTool
tools = [CatalogTool(f"s{n}.t", f"s{n}", "t", "", "red blue green " + "grey " * (n % 3)) for n in range(30)]
print(LexicalIndex(tools).rank("green red grey blue t", 30))
"""


def test_hash_seeds_change_nothing():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1
