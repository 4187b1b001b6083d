from __future__ import annotations

import os

import pytest

from pytest_tooleval.tools.list_dir import TOOL
from pytest_tooleval.tools.tool import ToolContext, ToolLimits

FILES = {
    "b.txt": "",
    "a/x.py": "",
    "a/deep/y.py": "",
    "a.txt": "",
    "a-b": "",
    ".env": "",
    ".github/w.yml": "",
    ".git/HEAD": "",
    "a/.git": "gitdir: elsewhere",
}


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, [".env", ".github/", "a-b", "a.txt", "a/", "b.txt"]),
        ({"path": ".", "depth": 1}, [".env", ".github/", "a-b", "a.txt", "a/", "b.txt"]),
        ({"path": "a"}, ["a/deep/", "a/x.py"]),
        ({"path": "a/"}, ["a/deep/", "a/x.py"]),
        (
            {"depth": 2},
            [".env", ".github/", ".github/w.yml", "a-b", "a.txt", "a/", "a/deep/", "a/x.py", "b.txt"],
        ),
        ({"path": "a", "depth": 99}, ["a/deep/", "a/deep/y.py", "a/x.py"]),
        ({"path": "a", "depth": 2.0}, ["a/deep/", "a/deep/y.py", "a/x.py"]),
        ({"path": ".github"}, [".github/w.yml"]),
    ],
)
def test_entries_in_the_order_of_their_paths(put, call, arguments, lines):
    put(FILES)

    assert call(TOOL, **arguments).split("\n") == lines


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": "b.txt"}, "'b.txt' is not a directory; give a directory, or use file_read for a file"),
        ({"path": "bb.txt"}, "'bb.txt' does not exist; did you mean 'b.txt' or 'a.txt'?"),
        ({"path": ".git"}, "'.git' is in .git, which is not listed or searched"),
        ({"depth": 0}, "depth is 0; give 1 for the directory itself, 2 to include its subdirectories"),
        ({"depth": -1}, "depth is -1; give 1 for the directory itself, 2 to include its subdirectories"),
    ],
)
def test_refusals(put, refusal, arguments, text):
    put(FILES)

    assert refusal(TOOL, **arguments) == text


def test_an_empty_directory(worktree, call):
    (worktree / "new").mkdir()

    assert call(TOOL, path="new") == "new is an empty directory"


def test_links_are_shown_and_not_entered(worktree, put, call):
    put({"src/app.py": ""})
    (worktree / "inner").symlink_to("src")
    (worktree / "loop").symlink_to(".")
    (worktree / "outer").symlink_to(worktree.parent / "repo-secret")
    (worktree / "lost").symlink_to("nothing")
    os.mkfifo(worktree / "pipe")

    assert call(TOOL, depth=9).split("\n") == [
        "inner -> src",
        "loop -> .",
        "lost -> nothing",
        "outer -> (outside the worktree)",
        "pipe (pipe, socket or device)",
        "src/",
        "src/app.py",
    ]


def test_names_with_control_characters_stay_on_their_line(worktree, call):
    (worktree / "a\nb").touch()

    assert call(TOOL) == "a\\nb"


def test_many_entries_are_cut_with_a_notice(put, call):
    put({f"f{number:04}": "" for number in range(1001)})

    lines = call(TOOL).split("\n")

    assert lines[999:] == [
        "f0999",
        "[first 1000 entries shown: list a subdirectory, or use a smaller depth or glob]",
    ]


@pytest.mark.parametrize("result_chars", [0, 100, 400])
def test_the_bound_on_characters_is_kept(worktree, put, result_chars):
    put({f"f{number:04}": "" for number in range(200)})

    text = TOOL.run({}, ToolContext(worktree, limits=ToolLimits(result_chars=result_chars)))

    assert len(text) <= result_chars
