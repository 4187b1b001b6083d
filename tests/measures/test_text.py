from __future__ import annotations

import pytest

from pytest_tooleval.measures.text import (
    clean_text,
    common_start,
    cut,
    cut_pair,
    fold_typography,
    printable,
    shorten,
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("plain", "plain"),
        ("\u2018a\u2019 \u02bcb\u2032", "'a' 'b'"),
        ("\u201ca\u201d \u201eb\u2033", '"a" "b"'),
        ("a\u2010b\u2013c\u2014d\u2212e", "a-b-c-d-e"),
        ("1\u00a0000\u202fkm", "1 000 km"),
        ("e\u0301", "\u00e9"),
        ("A\u0308ffin", "\u00c4ffin"),
        ("\ufb01", "\ufb01"),
        ("Stra\u00dfe", "Stra\u00dfe"),
    ],
)
def test_typography_is_folded_and_nothing_else(text, folded):
    assert fold_typography(text) == folded


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("é😀", "é😀"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83db", "\ufffd\ufffdb"),
    ],
)
def test_clean_text_can_be_encoded(text, clean):
    assert clean_text(text) == clean
    assert clean_text(text).encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb é", "a\nb é"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\tb\rc\x00\x7f\x9b", "a\\x09b\\x0dc\\x00\\x7f\\x9b"),
        ("abc\u202edef\u2066", "abc\\u202edef\\u2066"),
    ],
)
def test_control_characters_are_spelled_out(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [("a b", 3, "a b"), ("abcd", 3, "ab…"), (" a\n\n b ", 9, "a b"), ("", 5, ""), ("a\nbcd", 4, "a b…")],
)
def test_shortened_to_one_line(text, most, line):
    assert shorten(text, most) == line


def test_cut_keeps_white_space():
    assert cut("a  b", 4) == "a  b"
    assert cut("a  bc", 4) == "a  …"


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [
        ("abc", "abd", ("abc", "abd")),
        ("0123456789", "x", ("0123456…", "x")),
        ("aaaaaaaaaaX", "aaaaaaaaaaYb", ("…aaX", "…aaYb")),
        ("aaaaaaaaaa", "aaaaaaaaaaB", ("…aa", "…aaB")),
        ("aaXbbbbbbbbb", "aaYbbbbbbbbb", ("aaXbbbb…", "aaYbbbb…")),
    ],
)
def test_of_two_long_texts_the_first_difference_is_shown(left, right, shown):
    assert cut_pair(left, right, 8) == shown


@pytest.mark.parametrize(
    ("left", "right", "count"), [("", "a", 0), ("ab", "ac", 1), ((1, 2), (1, 2, 3), 2), (("a",), ("b",), 0)]
)
def test_how_far_two_sequences_agree(left, right, count):
    assert common_start(left, right) == count
