from __future__ import annotations

import pytest

from pytest_tooleval.tools.file_edit import TOOL

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a\nb\nc\n", "b", "B", b"a\nB\nc\n", id="lf"),
        pytest.param(b"a\r\nb\r\nc\n", "a\nb", "a\nB", b"a\r\nB\r\nc\n", id="mixed-lf-given"),
        pytest.param(b"a\r\nb\r\nc\n", "a\r\nb", "a\r\nB", b"a\r\nB\r\nc\n", id="mixed-crlf-given"),
        pytest.param(b"a\nb\nc\n", "a\r\nb", "a\r\nB\r\nx", b"a\nB\nx\nc\n", id="crlf-given-for-lf"),
        pytest.param(b"a\r\nb\r\n", "b", "b\nnew", b"a\r\nb\r\nnew\r\n", id="inserted-into-crlf"),
        pytest.param(b"a\r\nb\nc\n", "b", "b\nnew", b"a\r\nb\nnew\nc\n", id="inserted-beside-lf"),
        pytest.param(b"a\r\nb\nc\n", "a", "new\na", b"new\r\na\r\nb\nc\n", id="inserted-beside-crlf"),
        pytest.param(b"a\r\nlast", "last", "last\nnew", b"a\r\nlast\r\nnew", id="ending-of-the-line-before"),
        pytest.param(b"only", "only", "x\r\ny", b"x\r\ny", id="no-line-end-in-the-file"),
        pytest.param(
            b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nB\nc\nD", b"a\r\nB\nc\r\nD\n", id="mixed-lines-keep-ends"
        ),
        pytest.param(b"a\nb\r\nc\n", "a\nb\nc", "a\nx\ny\nb\nc", b"a\nx\ny\nb\r\nc\n", id="mixed-insert-follows"),
        pytest.param(b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nc\n", b"a\r\nc\r\n", id="mixed-line-removed"),
        pytest.param(b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n", id="crlf-line-removed"),
        pytest.param(b"a\r\nb\r\n", "\nb", "\nB", b"a\r\nB\r\n", id="begins-with-line-end"),
        pytest.param(b"x\ry\na\n", "a", "b", b"x\ry\nb\n", id="bare-cr-elsewhere"),
        pytest.param(b"x\ry\n", "x\ry", "x\rz", b"x\rz\n", id="bare-cr-in-match"),
        pytest.param(b"x\r\r\ny\r\n", "y", "z", b"x\r\r\nz\r\n", id="two-crs-elsewhere"),
        pytest.param(BOM + b"a\r\nb\r\n", "a\nb", "A\nB", BOM + b"A\r\nB\r\n", id="bom"),
        pytest.param("é\u2028x\x85\f\n".encode(), "x", "y", "é\u2028y\x85\f\n".encode(), id="other-separators"),
        pytest.param(
            b"price = x\n", "x", r"$& $$ \1 \g<0> {0} %s", b"price = $& $$ \\1 \\g<0> {0} %s\n", id="literal"
        ),
        pytest.param(b"a.c abc\n", "a.c", "x", b"x abc\n", id="old-is-no-pattern"),
        pytest.param(b"a\n", "a\n", "", b"", id="to-nothing"),
    ],
)
def test_one_match(worktree, put, call, before, old, new, after):
    put({"x": before})

    call(TOOL, path="x", old_text=old, new_text=new)

    assert (worktree / "x").read_bytes() == after


@pytest.mark.parametrize(
    ("before", "old", "new", "after", "result"),
    [
        (b"x\nx\r\nyx\n", "x", "z", b"z\nz\r\nyz\n", "edited f: 3 replacements, lines 1, 2, 3"),
        (b"x\nx\r\nq\n", "x\n", "z\nw\n", b"z\nw\nz\r\nw\r\nq\n", "edited f: 2 replacements, lines 1, 2"),
        (b"abcd\n", "b", "", b"acd\n", "edited f: 1 replacement, line 1"),
        (b"aaa", "aa", "b", b"ba", "edited f: 1 replacement, line 1"),
        (
            b"x\n" * 22,
            "x",
            "y",
            b"y\n" * 22,
            f"edited f: 22 replacements, lines {', '.join(map(str, range(1, 21)))} and 2 more",
        ),
    ],
)
def test_all_matches(worktree, call, before, old, new, after, result):
    (worktree / "f").write_bytes(before)

    assert call(TOOL, path="f", old_text=old, new_text=new, replace_all=True) == result
    assert (worktree / "f").read_bytes() == after


def test_the_result_names_the_line(put, call):
    put({"src/app.py": "a\nb\nc\n"})

    assert call(TOOL, path="src/app.py", old_text="c", new_text="d") == "edited src/app.py: 1 replacement, line 3"


SEVERAL = "old_text stands {} times in 'x', lines {}; add surrounding lines to make it unique, or set replace_all"
NOT_FOUND = "old_text was not found in 'x'; "
NOT_THERE = (
    NOT_FOUND + "it does not match without regard to whitespace either; read the file and copy the text exactly"
)
BY_WHITESPACE = "it would match at line {} without regard to whitespace and line endings; copy the text exactly"


@pytest.mark.parametrize(
    ("before", "arguments", "text"),
    [
        (
            b"abcd",
            {"old_text": "", "new_text": "x", "replace_all": True},
            "old_text is empty; give the exact text to replace, or use file_write for a whole file",
        ),
        (b"abcd", {"old_text": "b", "new_text": "b"}, "old_text and new_text are the same; nothing would change"),
        (
            b"a\r\nb",
            {"old_text": "a\r\nb", "new_text": "a\nb"},
            "old_text and new_text differ in line endings only, and file_edit keeps a file's line endings",
        ),
        (
            b"x\ny\nx x\n",
            {"old_text": "x", "new_text": "z"},
            SEVERAL.format(3, "1, 3, 3"),
        ),
        (
            b"aaa",
            {"old_text": "aa", "new_text": "z"},
            SEVERAL.format(2, "1, 1"),
        ),
        (
            b"q\n\tif a:\n\t\tb\n",
            {"old_text": "    if a:\n        b", "new_text": "z"},
            NOT_FOUND + BY_WHITESPACE.format(2),
        ),
        (b"a\rb\n", {"old_text": "a\nb", "new_text": "z"}, NOT_FOUND + BY_WHITESPACE.format(1)),
        (b"a\n", {"old_text": "a \n", "new_text": "z"}, NOT_FOUND + BY_WHITESPACE.format(1)),
        (
            b"a\n",
            {"old_text": "b", "new_text": "z"},
            NOT_THERE,
        ),
        (
            b"a\n",
            {"old_text": "  ", "new_text": "z"},
            NOT_THERE,
        ),
        (
            b"a\nb\n",
            {"old_text": "1\ta\n2\tb", "new_text": "z"},
            NOT_FOUND + "it would match without the line numbers of file_read; leave them out",
        ),
        (
            b"a\n",
            {"old_text": "a", "new_text": "\ud800"},
            "new_text holds the unpaired surrogate U+D800, which is not text; leave it out",
        ),
        (
            b"caf\xe9 a\n",
            {"old_text": "a\n", "new_text": "b\n"},
            "'x' is not valid UTF-8 (byte 3: 0xe9); editing it would damage it, so it was left unchanged",
        ),
        (b"a\0", {"old_text": "a", "new_text": "b"}, "'x': binary file, 2 bytes; only text can be read or edited"),
        (
            b"",
            {"old_text": "a", "new_text": "b"},
            NOT_THERE,
        ),
    ],
)
def test_refusals_leave_the_bytes(worktree, put, refusal, before, arguments, text):
    put({"x": before})

    assert refusal(TOOL, path="x", **arguments) == text
    assert (worktree / "x").read_bytes() == before


def test_a_missing_file_is_not_created(worktree, put, refusal):
    put({"app.py": "x\n"})

    assert refusal(TOOL, path="apps.py", old_text="a", new_text="b") == (
        "'apps.py' does not exist; did you mean 'app.py'?"
    )
    assert [found.name for found in worktree.iterdir()] == ["app.py"]


def test_a_file_over_the_cap_is_refused(put, refusal):
    put({"x": b"a" + b"b" * 10_485_760})

    assert (
        refusal(TOOL, path="x", old_text="a", new_text="c")
        == "'x' is larger than 10 MiB, the most that can be edited"
    )
