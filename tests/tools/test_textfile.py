from __future__ import annotations

import pytest

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.textfile import (
    Line,
    Survey,
    bounded,
    clamped,
    count_lines,
    counted,
    decoded,
    encoded,
    is_binary,
    lines_of,
    read_line,
    survey,
)

TEXTS = [
    pytest.param(b"", [], id="empty"),
    pytest.param(b"\n", [""], id="one-empty-line"),
    pytest.param(b"a", ["a"], id="no-final-newline"),
    pytest.param(b"a\n", ["a"], id="final-newline"),
    pytest.param(b"a\n\nb", ["a", "", "b"], id="empty-line-between"),
    pytest.param(b"a\r\nb\r\n", ["a", "b"], id="crlf"),
    pytest.param(b"a\r\nb\nc\r", ["a", "b", "c\r"], id="mixed"),
    pytest.param(b"a\rb\n", ["a\rb"], id="bare-cr"),
    pytest.param(b"a\r\r\nb", ["a\r", "b"], id="two-crs"),
    pytest.param(
        "a\u2028b\u2029c\x85d\x0ce\x0bf\x1cg\n".encode(), ["a\u2028b\u2029c\x85d\x0ce\x0bf\x1cg"], id="separators"
    ),
    pytest.param(b"\xef\xbb\xbfa\nb\n", ["a", "b"], id="bom"),
    pytest.param(b"\xef\xbb\xbf", [], id="bom-only"),
    pytest.param(b"caf\xe9\nx", ["caf\ufffd", "x"], id="latin-1"),
    pytest.param("日本\n".encode("gbk"), ["\ufffd\u0571\ufffd"], id="gbk"),
]


@pytest.mark.parametrize(("data", "lines"), TEXTS)
def test_one_definition_of_a_line(tmp_path, data, lines):
    path = tmp_path / "x"
    path.write_bytes(data)

    assert lines_of(decoded(data)) == lines
    with path.open("rb") as file:
        size = survey(file, 1)
        file.seek(size.start)
        assert size.lines == len(lines)
        assert [read_line(file, 1000).text for _ in lines] == lines


@pytest.mark.parametrize(
    ("data", "line", "expected"),
    [
        (b"", 1, Survey(0, 0, False, 0)),
        (b"ab\ncd\n", 1, Survey(2, 6, False, 0)),
        (b"ab\ncd\n", 2, Survey(2, 6, False, 3)),
        (b"\xef\xbb\xbfab\ncd", 2, Survey(2, 5, False, 6)),
        ("é\r\n€".encode(), 2, Survey(2, 4, False, 4)),
        (b"caf\xe9\n", 1, Survey(1, 5, True, 0)),
        (b"cut \xe2\x82", 1, Survey(1, 6, True, 0)),
        ("\ufffd\n".encode(), 1, Survey(1, 2, False, 0)),
    ],
)
def test_survey(tmp_path, data, line, expected):
    path = tmp_path / "x"
    path.write_bytes(data)

    with path.open("rb") as file:
        assert survey(file, line) == expected


def test_survey_over_many_chunks(tmp_path):
    path = tmp_path / "x"
    path.write_bytes("aé€😀\r\n".encode() * 300_000)

    with path.open("rb") as file:
        assert survey(file, 200_001) == Survey(300_000, 1_800_000, False, 2_400_000)


@pytest.mark.parametrize(
    ("data", "most", "expected"),
    [
        (b"abc\ndef", 2, Line("ab", 3)),
        (b"abc\r\ndef", 3, Line("abc", 3)),
        ("😀".encode() * 50_000 + b"\r\n", 3, Line("😀😀😀", 50_000)),
        (b"a" * 65_535 + b"\r\nb", 2, Line("aa", 65_535)),
        (b"\n", 5, Line("", 0)),
        (b"", 5, Line("", 0)),
    ],
)
def test_read_line_keeps_the_beginning(tmp_path, data, most, expected):
    path = tmp_path / "x"
    path.write_bytes(data)

    with path.open("rb") as file:
        assert read_line(file, most) == expected


@pytest.mark.parametrize(("data", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"a\rb", 1)])
def test_count_lines(data, lines):
    assert count_lines(data) == lines


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"text", False),
        (b"\x89PNG\r\n\0", True),
        (b"a" * 8191 + b"\0", True),
        (b"a" * 8192 + b"\0", False),
    ],
)
def test_is_binary(data, binary):
    assert is_binary(data) is binary


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "line", "0 lines"), (1, "line", "1 line"), (2, "match", "2 matches"), (1, "match", "1 match")],
)
def test_counted(number, noun, text):
    assert counted(number, noun) == text


def test_encoded_refuses_an_unpaired_surrogate():
    with pytest.raises(ToolError, match=r"^content holds the unpaired surrogate U\+D83D, which is not text"):
        encoded("x\ud83d", "content")


@pytest.mark.parametrize(
    ("most", "characters", "expected"),
    [
        (5, 100, (["aa", "bb", "cc"], False)),
        (3, 100, (["aa", "bb", "cc"], False)),
        (2, 100, (["aa", "bb"], True)),
        (5, 6, (["aa", "bb"], True)),
        (5, 1, (["aa"], True)),
        (5, -9, (["aa"], True)),
    ],
)
def test_bounded(most, characters, expected):
    assert bounded(["aa", "bb", "cc"], most=most, characters=characters) == expected


@pytest.mark.parametrize(("text", "most", "expected"), [("abc", 3, "abc"), ("abc", 2, "ab"), ("abc", -1, "")])
def test_clamped(text, most, expected):
    assert clamped(text, most) == expected
