from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools import file_edit, file_read, file_write, glob, grep, list_dir
from pytest_tooleval.tools.containment import entries, kind_of, open_file, printable, replace_file, resolve
from pytest_tooleval.tools.tool import ToolContext

ALL_TOOLS = [
    pytest.param(file_read.TOOL, {}, id="file_read"),
    pytest.param(file_write.TOOL, {"content": "x"}, id="file_write"),
    pytest.param(file_edit.TOOL, {"old_text": "SECRET", "new_text": "x"}, id="file_edit"),
    pytest.param(list_dir.TOOL, {}, id="list_dir"),
    pytest.param(glob.TOOL, {"pattern": "**"}, id="glob"),
    pytest.param(grep.TOOL, {"pattern": "SECRET"}, id="grep"),
]
FILE_TOOLS = ALL_TOOLS[:3]

SWAPPER = """
import os, shutil, sys
folder, outside = sys.argv[1:]
while True:
    try:
        os.rename(folder, folder + ".real")
        os.symlink(outside, folder)
        os.unlink(folder)
        os.rename(folder + ".real", folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rename(folder + ".real", folder)
        except OSError:
            pass
"""


@pytest.mark.parametrize(("tool", "arguments"), ALL_TOOLS)
@pytest.mark.parametrize(
    "path",
    [
        "../repo-secret/x",
        "../repo-secret",
        "..",
        "sub/../../repo-secret/x",
        "missing/../../repo-secret/x",
        "/etc",
        "/etc/hostname-that-is-not-there",
        "link",
        "link/x",
        "link/new/file",
        "link-to-file",
        "link-to-link/x",
        "link-to-nothing",
        "link-to-nothing/new",
        "sub/../link/x",
        "link/../repo-secret/x",
    ],
)
def test_paths_that_leave_the_worktree_are_refused(worktree, refusal, tool, arguments, path):
    outside = worktree.parent / "repo-secret"
    (worktree / "sub").mkdir()
    (worktree / "link").symlink_to(outside)
    (worktree / "link-to-file").symlink_to(outside / "x")
    (worktree / "link-to-link").symlink_to("link")
    (worktree / "link-to-nothing").symlink_to(outside / "nothing")

    assert refusal(tool, path=path, **arguments) == (
        f"path {path!r} is outside the worktree; give a path relative to the worktree, such as 'src/app.py'"
    )
    assert [(found.name, found.read_text()) for found in outside.iterdir()] == [("x", "SECRET\n")]


@pytest.mark.parametrize(("tool", "arguments"), ALL_TOOLS)
def test_the_absolute_path_of_a_folder_with_the_same_beginning_is_refused(worktree, refusal, tool, arguments):
    assert "is outside the worktree" in refusal(tool, path=f"{worktree}-secret/x", **arguments)


@pytest.mark.parametrize(("tool", "arguments"), ALL_TOOLS)
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "path is empty; give a path relative to the worktree, or '.' for the worktree itself"),
        ("a\0b", "path 'a\\x00b' holds a control or unpaired surrogate character; leave it out"),
        ("a\nb", "path 'a\\nb' holds a control or unpaired surrogate character; leave it out"),
        ("a\x85b", "path 'a\\x85b' holds a control or unpaired surrogate character; leave it out"),
        ("a\ud800", "path 'a\\ud800' holds a control or unpaired surrogate character; leave it out"),
        ("n" * 256, f"the name {'n' * 60!r}... is longer than 255 bytes; choose a shorter one"),
        ("sub/" + "é" * 128, f"the name {'é' * 60!r}... is longer than 255 bytes; choose a shorter one"),
        ("a/" * 2049, f"path {'a/' * 30!r}... is longer than 4096 bytes; choose a shorter one"),
    ],
    ids=["empty", "nul", "newline", "c1", "surrogate", "long-name", "long-name-in-bytes", "long-path"],
)
def test_paths_that_cannot_be_used_are_refused(worktree, refusal, tool, arguments, path, message):
    assert refusal(tool, path=path, **arguments) == message
    assert list(worktree.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (".", ()),
        ("./", ()),
        ("src/app.py", ("src", "app.py")),
        ("./src//app.py", ("src", "app.py")),
        ("src/../new.txt", ("new.txt",)),
        ("new/deep/file", ("new", "deep", "file")),
        ("inner/app.py", ("src", "app.py")),
        ("~", ("~",)),
        ("~/x", ("~", "x")),
        ("..x", ("..x",)),
        ("a\u2028b", ("a\u2028b",)),
    ],
)
def test_resolved_parts(worktree, put, given, parts):
    put({"src/app.py": "x\n"})
    (worktree / "inner").symlink_to("src")

    assert resolve(worktree, given).parts == parts


def test_absolute_paths_inside_are_allowed_by_either_name_of_the_root(worktree, put):
    put({"a.txt": "x\n"})
    alias = worktree.parent / "alias"
    alias.symlink_to(worktree)

    assert resolve(worktree, str(worktree / "a.txt")).parts == ("a.txt",)
    assert resolve(worktree, str(alias / "a.txt")).parts == ("a.txt",)
    assert resolve(worktree, str(worktree)).parts == ()


def test_a_root_reached_through_a_link_works(worktree, put):
    put({"a.txt": "x\n"})
    alias = worktree.parent / "alias"
    alias.symlink_to(worktree)
    context = ToolContext(alias)

    assert list_dir.TOOL.run({"path": "."}, context) == "a.txt"
    assert file_read.TOOL.run({"path": "a.txt"}, context).endswith("1\tx")
    assert file_write.TOOL.run({"path": "b/c.txt", "content": ""}, context) == "created b/c.txt: 0 lines, 0 bytes"


def test_a_tilde_is_a_plain_name(worktree, call):
    call(file_write.TOOL, path="~/notes.txt", content="x\n")

    assert (worktree / "~" / "notes.txt").read_text() == "x\n"


def test_links_inside_that_stay_inside_are_followed(worktree, put, call):
    put({"src/app.py": "old\n"})
    (worktree / "link").symlink_to("src/app.py")
    (worktree / "folder").symlink_to(worktree / "src")

    assert "1\told" in call(file_read.TOOL, path="link")
    call(file_edit.TOOL, path="folder/app.py", old_text="old", new_text="new")
    assert (worktree / "src/app.py").read_text() == "new\n"
    assert (worktree / "link").is_symlink()


@pytest.mark.parametrize(("tool", "arguments"), ALL_TOOLS)
def test_a_link_loop_is_refused(worktree, refusal, tool, arguments):
    (worktree / "a").symlink_to("b")
    (worktree / "b").symlink_to("a")

    assert re.search("link|not a regular file|not a directory", refusal(tool, path="a", **arguments))
    assert refusal(tool, path="a/x", **arguments).startswith("cannot use 'a/x': ")


@pytest.mark.timeout(10)
@pytest.mark.parametrize(("tool", "arguments"), FILE_TOOLS)
def test_pipes_are_refused_without_waiting(worktree, refusal, tool, arguments):
    os.mkfifo(worktree / "pipe")

    assert refusal(tool, path="pipe", **arguments) == "'pipe' is a pipe, socket or device, not a regular file"


@pytest.mark.parametrize(("tool", "arguments"), FILE_TOOLS)
def test_sockets_are_refused(worktree, refusal, monkeypatch, tool, arguments):
    monkeypatch.chdir(worktree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")

        assert "is a pipe, socket or device" in refusal(tool, path="socket", **arguments)


@pytest.mark.parametrize(("tool", "arguments"), FILE_TOOLS)
@pytest.mark.parametrize("path", ["src", "src/", "."])
def test_directories_are_refused_by_the_file_tools(put, refusal, tool, arguments, path):
    put({"src/app.py": "x\n"})

    assert "directory" in refusal(tool, path=path, **arguments)


@pytest.mark.parametrize(("tool", "arguments"), ALL_TOOLS)
def test_a_file_in_the_middle_of_a_path_is_refused(worktree, put, refusal, tool, arguments):
    put({"a.txt": "x\n"})

    assert refusal(tool, path="a.txt/new/b.txt", **arguments).startswith("cannot use 'a.txt/new/b.txt': ")
    assert [found.name for found in worktree.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("part", ["folder", "file"])
def test_a_link_put_in_after_resolving_is_not_followed(worktree, put, part):
    put({"d/x": "inside\n"})
    outside = worktree.parent / "repo-secret"
    place = resolve(worktree, "d/x")
    if part == "folder":
        shutil.rmtree(worktree / "d")
        (worktree / "d").symlink_to(outside)
    else:
        (worktree / "d/x").unlink()
        (worktree / "d/x").symlink_to(outside / "x")

    with pytest.raises(ToolError):
        open_file(place)
    with pytest.raises(ToolError):
        replace_file(place, b"changed")
    assert (outside / "x").read_text() == "SECRET\n"


def test_a_folder_that_becomes_a_link_is_not_listed(worktree, put):
    put({"d/x": "inside\n"})
    place = resolve(worktree, "d")
    shutil.rmtree(worktree / "d")
    (worktree / "d").symlink_to(worktree.parent / "repo-secret")

    with pytest.raises(ToolError):
        entries(place)


@pytest.mark.timeout(60)
def test_nothing_outside_is_read_or_written_while_a_folder_is_swapped_for_a_link(worktree, put, context):
    put({"d/x": "inside\n"})
    outside = worktree.parent / "repo-secret"
    arguments = [
        (file_read.TOOL, {"path": "d/x"}),
        (grep.TOOL, {"pattern": ".", "path": "d"}),
        (list_dir.TOOL, {"path": ".", "depth": 2}),
        (file_write.TOOL, {"path": "d/planted", "content": "inside\n"}),
        (file_write.TOOL, {"path": "d/new/planted", "content": "inside\n"}),
        (file_write.TOOL, {"path": "d/x", "content": "inside\n"}),
    ]
    (outside / "only-outside").touch()
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, str(worktree / "d"), str(outside)])
    results = []
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for tool, values in arguments:
                with suppress(ToolError):
                    results.append(tool.run(values, context))
    finally:
        swapper.kill()
        swapper.wait()

    assert results
    assert not [result for result in results if "SECRET" in result or "only-outside" in result]
    assert sorted(found.name for found in outside.iterdir()) == ["only-outside", "x"]
    assert (outside / "x").read_text() == "SECRET\n"


def test_errors_show_no_path_of_the_host(worktree, put, refusal):
    put({"a.txt": "x\n"})
    (worktree / "link").symlink_to(worktree.parent / "repo-secret" / "x")
    (worktree / "loop").symlink_to("loop")

    for path in ["missing", "a.txt/b", "link", "loop", "../repo-secret", "no/such/file"]:
        assert str(worktree.parent) not in refusal(file_read.TOOL, path=path)


def test_a_write_leaves_no_draft_and_keeps_the_mode(worktree, put):
    put({"run.sh": "old\n"})
    (worktree / "run.sh").chmod(0o750)

    assert replace_file(resolve(worktree, "run.sh"), b"new\n") is True
    assert replace_file(resolve(worktree, "new.sh"), b"new\n") is False
    assert (worktree / "run.sh").stat().st_mode & 0o777 == 0o750
    assert sorted(found.name for found in worktree.iterdir()) == ["new.sh", "run.sh"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write read-only files")
def test_read_only_files_are_refused(worktree, put):
    put({"a.txt": "old\n"})
    (worktree / "a.txt").chmod(0o444)

    with pytest.raises(ToolError, match=r"'a\.txt' is read-only"):
        replace_file(resolve(worktree, "a.txt"), b"new\n")


@pytest.mark.parametrize(
    ("path", "kind"), [(".", "directory"), ("d", "directory"), ("d/x", "file"), ("pipe", "special")]
)
def test_kind_of(worktree, put, path, kind):
    put({"d/x": "x"})
    os.mkfifo(worktree / "pipe")

    assert kind_of(resolve(worktree, path)) == kind


def test_entries_tell_links_from_what_they_point_to(worktree, put):
    put({"d/x": "x"})
    (worktree / "to-d").symlink_to("d")

    found = {entry.shown: entry.kind for entry in entries(resolve(worktree, "."))}

    assert found == {"d/": "directory", "to-d": "link"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("plain é.txt", "plain é.txt"), ("a\nb", "a\\nb"), ("caf\udce9", "caf\\udce9"), ("\x1b[1m", "\\x1b[1m")],
)
def test_printable(name, text):
    assert printable(name) == text


def test_open_file_reads_bytes(worktree, put):
    put({"a.bin": b"\x00\xff"})

    with open_file(resolve(worktree, "a.bin")) as file:
        assert file.read() == b"\x00\xff"


def test_no_descriptor_is_left_open(worktree, put, context):
    put({"d/x": "x\n"})
    folder = Path("/dev/fd")

    before = len(list(folder.iterdir()))
    for _ in range(5):
        file_read.TOOL.run({"path": "d/x"}, context)
        file_write.TOOL.run({"path": "d/y", "content": ""}, context)
        with pytest.raises(ToolError):
            file_read.TOOL.run({"path": "d/x/y"}, context)

    assert len(list(folder.iterdir())) == before
