from __future__ import annotations

import os
import resource
import sys

import pytest

from pytest_tooleval.tools.file_read import TOOL
from pytest_tooleval.tools.textfile import MAX_READ_BYTES
from pytest_tooleval.tools.tool import ToolContext, ToolLimits

LOSSY_HEADER = (
    "x: 1 line, 5 characters; not valid UTF-8, lossy: undecodable bytes are shown as \ufffd; showing lines 1-1"
)
THREE = "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "a.txt: 3 lines, 14 characters; showing lines 1-3\n1\tone\n2\ttwo\n3\tthree"),
        ({"offset": 0}, "a.txt: 3 lines, 14 characters; showing lines 1-3\n1\tone\n2\ttwo\n3\tthree"),
        ({"offset": 3}, "a.txt: 3 lines, 14 characters; showing lines 3-3\n3\tthree"),
        (
            {"limit": 1},
            "a.txt: 3 lines, 14 characters; showing lines 1-1\n1\tone\n[2 more lines: continue with offset 2]",
        ),
        (
            {"offset": 2.0, "limit": 1.0},
            "a.txt: 3 lines, 14 characters; showing lines 2-2\n2\ttwo\n[1 more line: continue with offset 3]",
        ),
        ({"offset": 2, "limit": 10**30}, "a.txt: 3 lines, 14 characters; showing lines 2-3\n2\ttwo\n3\tthree"),
        ({"limit": 0}, "a.txt: 3 lines, 14 characters"),
        ({"limit": 0, "offset": 1200}, "a.txt: 3 lines, 14 characters"),
    ],
)
def test_pages(put, call, arguments, text):
    put({"a.txt": THREE})

    assert call(TOOL, path="a.txt", **arguments) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"offset": 1200, "limit": 200},
            "offset 1200 is past the end: 'a.txt' has 3 lines; give an offset from 1 to 3",
        ),
        ({"offset": 4}, "offset 4 is past the end: 'a.txt' has 3 lines; give an offset from 1 to 3"),
        ({"offset": -1}, "offset is -1, but lines are counted from 1; give 1 or more"),
        ({"limit": -5}, "limit is -5; give the number of lines to read, or 0 for the file's size only"),
    ],
)
def test_pages_that_are_not_there(put, refusal, arguments, text):
    put({"a.txt": THREE})

    assert refusal(TOOL, path="a.txt", **arguments) == text


def test_an_empty_file(put, call, refusal):
    put({"empty": ""})

    assert call(TOOL, path="empty") == "empty: 0 lines, 0 characters; the file is empty"
    assert call(TOOL, path="empty", offset=1) == "empty: 0 lines, 0 characters; the file is empty"
    assert call(TOOL, path="empty", limit=0) == "empty: 0 lines, 0 characters"
    assert refusal(TOOL, path="empty", offset=2) == (
        "offset 2 is past the end: 'empty' has 0 lines, the file is empty"
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "x: 2 lines, 6 characters; showing lines 1-2\n1\ta\n2\tb"),
        (b"\xef\xbb\xbfa\n", "x: 1 line, 2 characters; showing lines 1-1\n1\ta"),
        (
            b"caf\xe9\n",
            LOSSY_HEADER + "\n1\tcaf\ufffd",
        ),
        ("a\u2028b\x85c\fd".encode(), "x: 1 line, 7 characters; showing lines 1-1\n1\ta\u2028b\x85c\fd"),
    ],
)
def test_text_of_all_kinds(put, call, data, text):
    put({"x": data})

    assert call(TOOL, path="x") == text


def test_a_binary_file_is_refused_with_its_size(put, refusal):
    put({"logo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"})

    assert refusal(TOOL, path="logo.png") == "'logo.png': binary file, 16 bytes; only text can be read or edited"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/ap.py", "'src/ap.py' does not exist; did you mean 'src/app.py' or 'src/apps.py'?"),
        ("src/APP.PY", "'src/APP.PY' does not exist; did you mean 'src/app.py' or 'src/apps.py'?"),
        ("src/zzzz", "'src/zzzz' does not exist; use list_dir or glob to find it"),
        ("scr/app.py", "'scr/app.py' does not exist, nor does its folder 'scr'; use list_dir or glob to find it"),
    ],
)
def test_missing_files(worktree, put, refusal, path, text):
    put({"src/app.py": "", "src/apps.py": "", "README": ""})
    if (worktree / path).exists():
        pytest.skip("the file system ignores case")

    assert refusal(TOOL, path=path) == text


def test_directories(put, refusal):
    put({"src/app.py": ""})

    assert refusal(TOOL, path="src") == "'src' is a directory; use list_dir to see what it holds"


def test_a_long_line_is_cut(put, call):
    put({"x": "a" * 5000 + "\nb\n"})

    assert call(TOOL, path="x").split("\n")[1:] == [
        "1\t" + "a" * 2000 + "... [line cut: 2000 of 5000 characters shown]",
        "2\tb",
    ]


def test_the_default_page_ends_after_2000_lines(put, call):
    put({"x": "a\n" * 2500})

    assert call(TOOL, path="x").split("\n")[2000:] == ["2000\ta", "[500 more lines: continue with offset 2001]"]


@pytest.mark.parametrize("result_chars", [500, 1000, 30_000])
def test_pages_cut_by_size_lead_through_the_whole_file(worktree, put, result_chars):
    lines = [f"line {number} " + "x" * (number % 50) for number in range(1, 1501)]
    put({"x": "\n".join(lines)})
    context = ToolContext(worktree, limits=ToolLimits(result_chars=result_chars))

    seen, offset = [], 1
    while offset:
        page = TOOL.run({"path": "x", "offset": offset}, context)
        assert len(page) <= result_chars
        rows = [row for row in page.split("\n")[1:] if "\t" in row]
        seen += [row.split("\t")[1] for row in rows]
        offset = int(page.rsplit(" ", 1)[1][:-1]) if page.endswith("]") else 0

    assert seen == lines


def test_the_notice_of_a_page_cut_by_size(worktree, put):
    put({"x": ("a" * 99 + "\n") * 100})
    context = ToolContext(worktree, limits=ToolLimits(result_chars=1000))

    page = TOOL.run({"path": "x"}, context)

    assert page.split("\n")[0] == "x: 100 lines, 10000 characters; showing lines 1-6"
    assert page.endswith("\n[output cut at 1000 characters, 94 more lines: continue with offset 7]")


@pytest.mark.parametrize("result_chars", [0, 10, 200])
def test_a_tiny_bound_is_kept(worktree, put, result_chars):
    put({"x": "a" * 5000})

    assert (
        len(TOOL.run({"path": "x"}, ToolContext(worktree, limits=ToolLimits(result_chars=result_chars))))
        <= result_chars
    )


def test_a_large_file_is_read_in_bounded_memory(worktree, call):
    with (worktree / "big").open("wb") as file:
        file.write(b"first\n" + b"x" * 8192)
        file.truncate(200_000_000)
        file.seek(0, 2)
        file.write(b"\nlast\n")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page = call(TOOL, path="big", offset=3)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert page == "big: 3 lines, 200000006 characters; showing lines 3-3\n3\tlast"
    assert grown * (1 if sys.platform == "darwin" else 1024) < 50_000_000


def test_a_file_of_no_end_is_refused(worktree, put, refusal):
    put({"huge.txt": "x" * 9000})
    os.truncate(worktree / "huge.txt", MAX_READ_BYTES + 1)

    assert refusal(TOOL, path="huge.txt", limit=1) == (
        "'huge.txt' is larger than 256 MiB, the most that can be read"
    )
