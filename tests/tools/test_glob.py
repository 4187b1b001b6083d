from __future__ import annotations

import os
import resource
import time

import pytest

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools import file_write
from pytest_tooleval.tools.glob import TOOL
from pytest_tooleval.tools.tool import ToolContext, ToolLimits

FILES = {
    "root.py": "",
    "s/x.py": "",
    "s/deep/z.py": "",
    ".h/y.py": "",
    ".env": "",
    ".github/w.yml": "",
    ".github/workflows/ci.yml": "",
    ".git/hook.py": "",
    "dist/z.js": "",
    ".gitignore": "dist\n",
    "app/[id]/page.tsx": "",
    "app/i/page.ts": "",
    "s.py/inner.py": "",
}


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("**/*.py", ["root.py", "s.py/", "s.py/inner.py", "s/deep/z.py", "s/x.py"]),
        ("*.py", ["root.py", "s.py/"]),
        ("s/*.py", ["s/x.py"]),
        ("s/**/*.py", ["s/deep/z.py", "s/x.py"]),
        ("s/**", ["s/deep/", "s/deep/z.py", "s/x.py"]),
        ("s/**/", ["s/deep/"]),
        ("**/**/z.*", ["dist/z.js", "s/deep/z.py"]),
        ("**/deep/**/z.py", ["s/deep/z.py"]),
        ("dist/*.js", ["dist/z.js"]),
        ("dist/z.js", ["dist/z.js"]),
        ("./dist//z.js", ["dist/z.js"]),
        (".github/*.yml", [".github/w.yml"]),
        (".github/**/*.yml", [".github/w.yml", ".github/workflows/ci.yml"]),
        (".h/y.py", [".h/y.py"]),
        (".*", [".env", ".github/", ".gitignore", ".h/"]),
        ("**/.env", [".env"]),
        ("*env", ["no matches"]),
        ("[.]env", ["no matches"]),
        ("?env", ["no matches"]),
        ("*", ["app/", "dist/", "root.py", "s.py/", "s/"]),
        ("*/", ["app/", "dist/", "s.py/", "s/"]),
        ("s", ["s/"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"]),
        ("app/*/page.{ts,tsx}", ["app/[id]/page.tsx", "app/i/page.ts"]),
        ("{dist,.github}/*.{js,yml}", [".github/w.yml", "dist/z.js"]),
        ("{s/{deep,none},dist}/z.*", ["dist/z.js", "s/deep/z.py"]),
        ("r[a-o][!x]t.p?", ["root.py"]),
        ("ROOT.py", ["no matches"]),
        ("*x.py", ["no matches"]),
        (".git/*", ["no matches"]),
        (".git/hook.py", ["no matches"]),
        ("**/.git/**", ["no matches"]),
        ("none/**", ["no matches"]),
        ("root.py/**", ["no matches"]),
    ],
)
def test_patterns(put, call, pattern, lines):
    put(FILES)

    assert call(TOOL, pattern=pattern).split("\n") == lines


@pytest.mark.parametrize(
    ("path", "pattern", "lines"),
    [
        ("s", "*.py", ["s/x.py"]),
        ("s", "**/*.py", ["s/deep/z.py", "s/x.py"]),
        (".github", "**/*.yml", [".github/w.yml", ".github/workflows/ci.yml"]),
        ("./s/", "deep/*", ["s/deep/z.py"]),
    ],
)
def test_patterns_are_relative_to_the_path(put, call, path, pattern, lines):
    put(FILES)

    assert call(TOOL, path=path, pattern=pattern).split("\n") == lines


def test_an_absolute_pattern_inside_the_worktree(worktree, put, call):
    put(FILES)

    assert call(TOOL, pattern=f"{worktree}/s/*.py") == "s/x.py"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"pattern": ""},
            "the glob pattern '' names nothing; use '*' for all entries, '**/*.py' for all below",
        ),
        (
            {"pattern": "./"},
            "the glob pattern './' names nothing; use '*' for all entries, '**/*.py' for all below",
        ),
        (
            {"pattern": "../*"},
            "the glob pattern '../*' leads outside; give one relative to path, without '..'",
        ),
        (
            {"pattern": "/etc/*"},
            "the glob pattern '/etc/*' leads outside; give one relative to path, without '..'",
        ),
        (
            {"pattern": "{a,b}" * 7},
            f"the braces of {'{a,b}' * 7!r} make more than 100 patterns; use fewer",
        ),
        ({"pattern": "a" * 5000}, "the glob pattern is longer than 4096 characters; choose a shorter one"),
        (
            {"pattern": "*", "path": "root.py"},
            "'root.py' is not a directory; give a directory, or use file_read for a file",
        ),
        ({"pattern": "*", "path": ".git"}, "'.git' is in .git, which is not listed or searched"),
    ],
)
def test_refusals(put, refusal, arguments, text):
    put(FILES)

    assert refusal(TOOL, **arguments) == text


@pytest.mark.parametrize(
    "pattern", ["[", "[]", "[z-a]", "[[a]", "[a--b]", "{a", "a}", "{a}", "\\", "[!]", "*" * 4000]
)
def test_odd_patterns_do_not_fail(put, call, pattern):
    put({"b": ""})

    assert call(TOOL, pattern=pattern) in {"no matches", "b"}


def test_link_loops_are_shown_and_not_followed(worktree, put, call):
    put({"s/x.py": ""})
    (worktree / "s/loop").symlink_to("..")
    (worktree / "out").symlink_to(worktree.parent / "repo-secret")

    assert call(TOOL, pattern="**").split("\n") == ["out", "s/", "s/loop", "s/x.py"]
    assert call(TOOL, pattern="out/*") == "no matches"


def test_a_deep_tree_is_walked_with_few_descriptors(call):
    path = "d/" * 400 + "x"
    call(file_write.TOOL, path=path, content="")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = max(os.dup(0), 3)  # the lowest free number, so that what others have open does not count
    os.close(taken)
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 200, hard))
    try:
        assert call(TOOL, pattern="**/x") == path
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_many_paths_are_cut_with_a_notice(put, call):
    put({f"f{number:04}": "" for number in range(1001)})

    lines = call(TOOL, pattern="*").split("\n")

    assert lines[999:] == ["f0999", "[first 1000 paths shown: narrow with path or a longer pattern]"]


@pytest.mark.parametrize("result_chars", [0, 100, 400])
def test_the_bound_on_characters_is_kept(worktree, put, result_chars):
    put({f"f{number:04}": "" for number in range(200)})

    text = TOOL.run({"pattern": "*"}, ToolContext(worktree, limits=ToolLimits(result_chars=result_chars)))

    assert len(text) <= result_chars


def test_a_tree_without_end_is_given_up_in_time(worktree):
    below = os.open(worktree, os.O_RDONLY)
    for _ in range(150):
        os.mkdir("d", dir_fd=below)
        folder = os.open("d", os.O_RDONLY, dir_fd=below)
        os.close(below)
        below = folder
    os.close(below)
    context = ToolContext(worktree, limits=ToolLimits(search_seconds=0.01))

    started = time.monotonic()
    with pytest.raises(ToolError, match=r"the search took longer than 0\.01 s; narrow it with path"):
        TOOL.run({"pattern": "**/nowhere"}, context)
    assert time.monotonic() - started < 2
