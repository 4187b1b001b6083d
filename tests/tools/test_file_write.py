from __future__ import annotations

import pytest

from pytest_tooleval.tools.file_write import TOOL

NOT_A_FOLDER = (
    "cannot use 'src/app.py/x': a part of it is a file or a link, not a directory; "
    "use list_dir to see what is there"
)


@pytest.mark.parametrize(
    ("content", "data", "counts"),
    [
        ("", b"", "0 lines, 0 bytes"),
        ("a", b"a", "1 line, 1 byte"),
        ("a\nb\n", b"a\nb\n", "2 lines, 4 bytes"),
        ("a\r\nb\rc\n", b"a\r\nb\rc\n", "2 lines, 7 bytes"),
        ("é\u2028€", "é\u2028€".encode(), "1 line, 8 bytes"),
        ("\ufeffa\n", b"\xef\xbb\xbfa\n", "1 line, 5 bytes"),
        ("$& \\1 %s {x}", b"$& \\1 %s {x}", "1 line, 12 bytes"),
    ],
)
def test_content_is_written_byte_for_byte(worktree, call, content, data, counts):
    assert call(TOOL, path="x", content=content) == f"created x: {counts}"
    assert (worktree / "x").read_bytes() == data


def test_an_existing_file_is_overwritten(worktree, put, call):
    put({"x": "a much longer text\r\n"})

    assert call(TOOL, path="x", content="new\n") == "overwrote x: 1 line, 4 bytes"
    assert (worktree / "x").read_bytes() == b"new\n"


def test_parents_are_created(worktree, call):
    assert call(TOOL, path="./a/b/../c.txt", content="x") == "created a/c.txt: 1 line, 1 byte"
    assert (worktree / "a/c.txt").read_bytes() == b"x"


def test_a_link_inside_is_kept_and_its_target_written(worktree, put, call):
    put({"src/app.py": "old\n"})
    (worktree / "link").symlink_to("src/app.py")

    assert call(TOOL, path="link", content="new\n") == "overwrote src/app.py: 1 line, 4 bytes"
    assert (worktree / "link").is_symlink()
    assert (worktree / "src/app.py").read_bytes() == b"new\n"


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        ("src", "x", "'src' is a directory; use list_dir to see what it holds"),
        (".", "x", "'.' is a directory; use list_dir to see what it holds"),
        ("new/", "x", "'new/' names a directory; give a file's path (missing directories are created)"),
        ("new/x", "\udc80", "content holds the unpaired surrogate U+DC80, which is not text; leave it out"),
        (
            "src/app.py/x",
            "x",
            NOT_A_FOLDER,
        ),
    ],
)
def test_refusals_write_nothing(worktree, put, refusal, path, content, text):
    put({"src/app.py": "old\n"})

    assert refusal(TOOL, path=path, content=content) == text
    assert sorted(str(found.relative_to(worktree)) for found in worktree.rglob("*")) == ["src", "src/app.py"]
    assert (worktree / "src/app.py").read_bytes() == b"old\n"


def test_a_name_of_the_greatest_length(worktree, call):
    name = "n" * 255

    assert call(TOOL, path=name, content="x") == f"created {name}: 1 line, 1 byte"
