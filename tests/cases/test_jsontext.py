from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_tooleval.cases.jsontext import decode_document, pointer_text, read_document
from pytest_tooleval.errors import CaseError

SHOWN = Path("suite/a.json")


def problem(text: str) -> str:
    with pytest.raises(CaseError) as caught:
        decode_document(text, SHOWN)
    return str(caught.value)


def test_a_single_value_begins_where_it_stands():
    document = decode_document('\n\n  {"a": 1}\n', SHOWN)

    assert not document.is_list
    assert [(e.value, e.line, e.start) for e in document.elements] == [({"a": 1}, 3, 4)]


def test_each_element_of_a_list_has_its_line():
    document = decode_document('[\n  {"a": 1}, {"b":\n 2},\n\n  3]', SHOWN)

    assert document.is_list
    assert [(e.value, e.line) for e in document.elements] == [({"a": 1}, 2), ({"b": 2}, 2), (3, 5)]


def test_an_empty_list_has_no_elements():
    assert decode_document(" [ ] ", SHOWN).elements == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "suite/a.json:1: is empty; expected a JSON object or a list of objects"),
        (" \n\t", "suite/a.json:1: is empty; expected a JSON object or a list of objects"),
        (
            '{\n  "a": 1,\n}',
            "suite/a.json:3: is not JSON: Expecting property name enclosed in double quotes (column 1)",
        ),
        ('{"a": 1}\n{"b": 2}', "suite/a.json:2: is not JSON: Extra data (column 1)"),
        ("[\n{}\n{}]", "suite/a.json:3: is not JSON: Expecting ',' delimiter (column 1)"),
        ("[{},\n]", "suite/a.json:2: is not JSON: Expecting value (column 1)"),
        ("[1] []", "suite/a.json:1: is not JSON: Extra data (column 5)"),
        ("// note\n{}", "suite/a.json:1: is not JSON: Expecting value (column 1)"),
        ("{'a': 1}", "suite/a.json:1: is not JSON: Expecting property name enclosed in double quotes (column 2)"),
        ('{"a": "x\ny"}', "suite/a.json:1: is not JSON: Invalid control character at (column 9)"),
    ],
)
def test_text_that_is_not_json(text, message):
    assert problem(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"a": "NaN",\n"b": [NaN]}', "suite/a.json:3: is not strict JSON: NaN is not a JSON number"),
        ('{"a":\n-Infinity}', "suite/a.json:2: is not strict JSON: -Infinity is not a JSON number"),
        ("\n1e999NaN}", "suite/a.json:2: is not strict JSON: the number 1e999 is too large"),
        ('{"a": 2,\n"b": 1e999}', "suite/a.json:2: is not strict JSON: the number 1e999 is too large"),
        (
            '{"a": 1,\n"b": 2,\n"a": 3}',
            "suite/a.json:3: is not strict JSON: the key 'a' stands twice in one object",
        ),
        (
            '{"a": {"b": "a"},\n"c": {"a": 1},\n"a": 3}',
            "suite/a.json:3: is not strict JSON: the key 'a' stands twice in one object",
        ),
        (
            '{"true": true,\n"tr\\u0075e": 1}',
            "suite/a.json:2: is not strict JSON: the key 'true' stands twice in one object",
        ),
        (
            '[{"a": 1},\n{"a": "\\ud83d\\ude00"},\n{"a": "\\ud83d"}]',
            "suite/a.json:3: is not strict JSON: a string holds half of a surrogate pair (\\ud800 to \\udfff)",
        ),
        (
            '[{"a": 1},\n\n{"a": 1,\n"a": 2}]',
            "suite/a.json:4: is not strict JSON: the key 'a' stands twice in one object",
        ),
    ],
)
def test_json_that_is_not_strict_names_the_place(text, message):
    assert problem(text) == message


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_nesting_up_to_the_limit():
    assert decode_document('{"a": ' + nested(199) + "}", SHOWN).elements[0].line == 1
    assert decode_document('{"a": [' + '{"b": "[["},' * 900 + "1]}", SHOWN).elements[0].line == 1


@pytest.mark.parametrize("depth", [200, 5_000, 200_000])
def test_deeper_nesting_is_refused(depth):
    assert problem('[1,\n{"a": ' + nested(depth) + "}]") == "suite/a.json:2: is nested deeper than 200 levels"


def test_an_integer_that_python_does_not_read():
    assert problem('{"a": ' + "9" * 5000 + "}").startswith("suite/a.json:1: is not JSON: Exceeds the limit")


def test_a_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')

    assert read_document(path, SHOWN).elements[0].value == {"a": "é"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": "\xe9"}', "suite/a.json: is not UTF-8 text: byte 7 is 0xe9"),
        ("{}".encode("utf-16"), "suite/a.json: is not UTF-8 text: byte 0 is 0xff"),
    ],
)
def test_bytes_that_are_not_utf8(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)

    with pytest.raises(CaseError, match=f"^{re.escape(message)}$"):
        read_document(path, SHOWN)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CaseError, match=r"^suite/a\.json: cannot be read: No such file or directory$"):
        read_document(tmp_path / "missing.json", SHOWN)
    with pytest.raises(CaseError, match=r"^suite/a\.json: is no regular file$"):
        read_document(tmp_path, SHOWN)


LINES = """
{
  "a": {
    "x/y": [1,
      {"~": 2}
    ],
    "esc\\u0061pe": "]}",
    "\\"": 3
  },
  "b": 4
}"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ((), 2),
        (("a",), 3),
        (("a", "x/y"), 4),
        (("a", "x/y", 0), 4),
        (("a", "x/y", 1), 5),
        (("a", "x/y", 1, "~"), 5),
        (("a", "escape"), 7),
        (("a", '"'), 8),
        (("b",), 10),
        (("b", "deeper"), 10),
        (("a", "x/y", 7), 4),
        (("a", "x/y", "0"), 4),
        (("nowhere", "b"), 2),
    ],
)
def test_the_line_of_a_value(pointer, line):
    assert decode_document(LINES, SHOWN).line_of(pointer) == line


@pytest.mark.parametrize(
    ("pointer", "line"), [((), 2), ((0,), 3), ((1, "b"), 5), ((1, "b", 0), 6), ((2,), 2), (("b",), 2), ((-1,), 2)]
)
def test_the_line_of_a_value_in_a_list(pointer, line):
    assert decode_document('\n[\n{"a": 1}, {\n\n"b": [\n1]}]', SHOWN).line_of(pointer) == line


@pytest.mark.parametrize(
    ("pointer", "text"),
    [((), ""), (("a", 0, "b"), "/a/0/b"), (("x/y", "~"), "/x~1y/~0"), (("~1",), "/~01"), (("",), "/")],
)
def test_pointers_are_written_as_the_rfc_says(pointer, text):
    assert pointer_text(pointer) == text
