from __future__ import annotations

import pytest

from pytest_tooleval.broker.tokens import Word, index_terms, query_words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("search_code", ["search", "code"]),
        ("lint-files.now", ["lint", "file"]),
        ("spaceKey", ["spacekey", "space", "key"]),
        ("getHTTPResponse", ["gethttprespons", "get", "http", "respons"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("userIDs", ["userid", "user", "id"]),
        ("APIsByKey", ["apisbykey", "api", "key"]),
        ("s3 oauth2", ["s3", "3", "oauth2", "oauth", "2"]),
        ("AI2sql", ["ai2sql", "ai", "2", "sql"]),
        ("getÉtatÜber", ["getétatüber", "get", "état", "über"]),
        ("searching searches SEARCH", ["search", "search", "search"]),
        ("the customer's order, and of what?", ["custom", "order"]),
        ("What\u2019s new", ["new"]),
        ("größe GRÖSSE", ["grösse", "grösse"]),
        ("\uff33\uff31\uff2c \ufb01le", ["sql", "file"]),
        ("Файлы файлов", ["файл", "файл"]),
        ("हिन्दी", ["हिन्दी"]),
        ("国際標準", ["国", "際", "標", "準", "国際", "際標", "標準"]),
        ("ｶﾅ", ["カ", "ナ", "カナ"]),
        ("SQL查询x", ["sql", "查", "询", "查询", "x"]),
        ("파일을", ["파", "일", "을", "파일", "일을"]),
        ("send 📧! ✉\ufe0f 🇩🇪", ["send", "📧", "✉", "🇩🇪"]),
        ("", []),
        (" \n\t.,;:!?'\"()[]{}*#+-_/\\|~^°", []),
        ("of the and I'd don't we've", []),
    ],
)
def test_terms_that_a_text_is_found_under(text, terms):
    assert index_terms(text) == terms


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("open the files, open files", [Word("open"), Word("file")]),
        ("parseConfig", [Word("parseconfig", ("pars", "config"))]),
        ("查文件", [Word("查文", ("查", "文")), Word("文件", ("文", "件"))]),
        ("図", [Word("図")]),
        ("Could you please tell me about it?", []),
        ("\ufe0f\u200d", []),
    ],
)
def test_words_of_a_query(query, words):
    assert query_words(query) == words


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, 12 numbers and x2 mixes: getHTTPResponse's `code`; don't\nstop.",
        "a_b-c.d/e@f#g$h%i^j&k*l(m)n+o=p{q}r[s]t|u\\v:w;x\"y'z<A>B,C?D~E`F!G",
    ],
)
def test_ascii_text_gives_the_same_terms_beside_other_text(text):
    assert index_terms(text + " é") == [*index_terms(text), "é"]


def test_composed_and_decomposed_text_is_one():
    assert index_terms("e\u0301tat") == index_terms("\u00e9tat")
