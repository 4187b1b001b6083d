from __future__ import annotations

import os
import threading
import time

import pytest

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.grep import TOOL
from pytest_tooleval.tools.tool import ToolContext, ToolLimits

INVALID = (
    "pattern '{}' is not a valid regular expression: {}; "
    "put a backslash before a special character that is meant literally"
)
FILES = {
    "b.py": "import os\n\ndef main():\n    return os\n",
    "a/z.py": "def helper():\r\n    pass\r\n",
    "a.txt": "Define\n",
    "dist/x.js": "def = 1",
    ".env": "def\n",
    ".github/w.yml": "def: 1\n",
    ".git/config": "def\n",
}


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "def"}, ["a/z.py:1: def helper():", "b.py:3: def main():", "dist/x.js:1: def = 1"]),
        (
            {"pattern": "def", "ignore_case": True},
            ["a.txt:1: Define", "a/z.py:1: def helper():", "b.py:3: def main():", "dist/x.js:1: def = 1"],
        ),
        ({"pattern": "def", "glob": "*.py"}, ["a/z.py:1: def helper():", "b.py:3: def main():"]),
        (
            {"pattern": "def", "glob": ""},
            ["a/z.py:1: def helper():", "b.py:3: def main():", "dist/x.js:1: def = 1"],
        ),
        ({"pattern": "def", "glob": "*/*.{py,js}"}, ["a/z.py:1: def helper():", "dist/x.js:1: def = 1"]),
        ({"pattern": "def", "glob": "./*.py"}, ["b.py:3: def main():"]),
        ({"pattern": "def", "glob": ".env"}, [".env:1: def"]),
        ({"pattern": "def", "glob": ".github/**"}, [".github/w.yml:1: def: 1"]),
        ({"pattern": "def", "path": ".github"}, [".github/w.yml:1: def: 1"]),
        ({"pattern": "def", "path": ".env"}, [".env:1: def"]),
        ({"pattern": "def", "path": "a"}, ["a/z.py:1: def helper():"]),
        ({"pattern": "def", "path": "a", "glob": "*.txt"}, ["no matches"]),
        ({"pattern": "def", "path": "b.py", "glob": "*.txt"}, ["b.py:3: def main():"]),
        ({"pattern": ":$", "path": "a"}, ["a/z.py:1: def helper():"]),
        ({"pattern": "^$", "path": "b.py"}, ["b.py:2: "]),
        ({"pattern": r"\bos\b"}, ["b.py:1: import os", "b.py:4:     return os"]),
        ({"pattern": "os\n"}, ["no matches"]),
        ({"pattern": "nowhere"}, ["no matches"]),
    ],
)
def test_matches_in_the_order_of_paths(put, call, arguments, lines):
    put(FILES)

    assert call(TOOL, **arguments).split("\n") == lines


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": ""}, "pattern is empty; give a regular expression, such as 'def main'"),
        (
            {"pattern": "main("},
            INVALID.format("main(", "missing ) at position 5"),
        ),
        (
            {"pattern": "(" * 2000 + ")" * 2000},
            INVALID.format("(" * 200, "it is nested too deeply"),
        ),
        ({"pattern": "a" * 5001}, "pattern is longer than 5000 characters; choose a shorter one"),
        ({"pattern": "x", "path": "c.py"}, "'c.py' does not exist; did you mean 'b.py'?"),
        ({"pattern": "x", "path": ".git/config"}, "'.git/config' is in .git, which is not listed or searched"),
        (
            {"pattern": "x", "glob": "../*"},
            "the glob pattern '../*' leads outside; give one relative to path, without '..'",
        ),
    ],
)
def test_refusals(put, refusal, arguments, text):
    put(FILES)

    assert refusal(TOOL, **arguments) == text


def test_lines_are_those_of_file_read(put, call):
    put({"x": "a\u2028b\x85c\fd\re\nfind\n", "y": b"\xef\xbb\xbffind\n"})

    assert call(TOOL, pattern="^find$") == "x:2: find\ny:1: find"


def test_binary_files_are_skipped_with_a_note(put, call):
    put({"a.bin": b"find\0", "b.bin": b"find\0", "c.txt": b"find caf\xe9\n"})

    assert call(TOOL, pattern="find") == "c.txt:1: find caf\ufffd\n[2 binary files skipped]"
    assert call(TOOL, pattern="find", path="a.bin") == "no matches\n[1 binary file skipped]"


def test_large_files_are_skipped_with_a_note(worktree, put, call):
    put({"big": b"find\n" + b"x" * 10_485_760, "small": "find\n"})

    assert call(TOOL, pattern="find") == "small:1: find\n[1 file over 10 MiB skipped]"


@pytest.mark.timeout(10)
def test_pipes_and_links_are_not_searched(worktree, put, call, refusal):
    put({"x": "find\n"})
    os.mkfifo(worktree / "pipe")
    (worktree / "link").symlink_to("x")
    (worktree / "loop").symlink_to(".")
    (worktree / "out").symlink_to(worktree.parent / "repo-secret")

    assert call(TOOL, pattern="find|SECRET") == "x:1: find"
    assert call(TOOL, pattern="find", path="link") == "x:1: find"
    assert refusal(TOOL, pattern="x", path="pipe") == (
        "'pipe' is not a regular file or a directory; give one of these"
    )


def test_a_long_line_is_cut_around_the_match(put, call):
    put({"x": "a" * 1000 + "find" + "b" * 1000})

    assert call(TOOL, pattern="find") == (
        "x:1: ..." + "a" * 100 + "find" + "b" * 196 + "... [line cut: 300 of 2004 characters shown]"
    )
    assert call(TOOL, pattern="^a") == "x:1: " + "a" * 300 + "... [line cut: 300 of 2004 characters shown]"
    assert call(TOOL, pattern="b$") == "x:1: ..." + "b" * 300 + " [line cut: 300 of 2004 characters shown]"


def test_many_matches_are_cut_with_a_notice(put, call):
    put({"x": "find\n" * 201})

    assert call(TOOL, pattern="find").split("\n")[199:] == [
        "x:200: find",
        "[stopped after 200 matches: narrow with path, glob or a longer pattern]",
    ]


@pytest.mark.parametrize("result_chars", [0, 100, 600])
def test_the_bound_on_characters_is_kept(worktree, put, result_chars):
    put({"x": "find\n" * 100})

    text = TOOL.run({"pattern": "find"}, ToolContext(worktree, limits=ToolLimits(result_chars=result_chars)))

    assert len(text) <= result_chars


@pytest.mark.timeout(20)
def test_a_nested_repetition_ends_in_time(worktree, put):
    put({"x": "a" * 40 + "!\n"})
    began = time.monotonic()

    try:
        text = TOOL.run({"pattern": "(a+)+$"}, ToolContext(worktree, limits=ToolLimits(search_seconds=1)))
    except ToolError as error:
        text = str(error)

    assert text == "no matches" or text.startswith("the search took longer than 1 s; ")
    assert time.monotonic() - began < 2


@pytest.mark.timeout(20)
@pytest.mark.parametrize("lines", [1, 3000])
def test_a_catastrophic_pattern_is_stopped_and_other_threads_go_on(worktree, put, lines):
    put({"x": ("a" * 40 + "!\n") * lines})
    context = ToolContext(worktree, limits=ToolLimits(search_seconds=0.5))
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    other = threading.Thread(target=tick)
    other.start()
    began = time.monotonic()
    try:
        with pytest.raises(ToolError) as caught:
            TOOL.run({"pattern": "(?:(?:a|aa)+)+$"}, context)
    finally:
        took = time.monotonic() - began
        stop.set()
        other.join()

    assert str(caught.value) == (
        "the search took longer than 0.5 s; simplify the pattern (repetition inside repetition, such as '(a+)+', "
        "is slow) or narrow it with path or glob"
    )
    assert took < 2
    assert len(ticks) > 10


def test_no_time_at_all(worktree, put):
    put({"x": "find\n"})

    with pytest.raises(ToolError, match="longer than 0 s"):
        TOOL.run({"pattern": "find"}, ToolContext(worktree, limits=ToolLimits(search_seconds=0)))


def test_a_pattern_that_would_take_the_process_down_is_refused(context):
    with pytest.raises(ToolError, match="its counted repeats come to more than 100000 items"):
        TOOL.run({"pattern": "(?:ab|c){1000000}"}, context)
