"""Worktrees on a real file system, with real git, and with owners that really die."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import pytest_tooleval
from pytest_tooleval.agent.worktree import Worktree, WorktreeRoot, remove
from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.errors import WorktreeError
from pytest_tooleval.tools.run_command import TOOL
from pytest_tooleval.tools.tool import ToolContext

SOURCES = str(Path(pytest_tooleval.__file__).parents[1])


def case(files: dict[str, str] | None = None, *, git: bool = False) -> ToolUseCase:
    return ToolUseCase(id="sample", task="look", source=Source(Path("sample.json")), files=files or {}, git=git)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def root(parent: Path) -> Iterator[WorktreeRoot]:
    with WorktreeRoot(parent) as opened:
        yield opened


@pytest.fixture
def sleeper() -> Iterator[str]:
    program = f"sleep 8{time.monotonic_ns()}"
    yield program
    for pid in living(program):
        os.kill(pid, signal.SIGKILL)


def living(program: str) -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [other.pid for other in found if " ".join(other.info["cmdline"] or ()) == program]


def shell(command: str, worktree: Worktree) -> str:
    context = ToolContext(worktree=worktree.path, environment=worktree.environment)
    return TOOL.run({"command": command}, context).removesuffix("exit code 0").strip()


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES},
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_files_are_written_as_they_are(root: WorktreeRoot) -> None:
    files = {"a.txt": "one\r\ntwo\n\u20ac", "src/deep/b.py": "", "src/c": "\x00\ufeff", ".hidden/x y": "z"}
    with root.worktree(case(files)) as worktree:
        found = {str(p.relative_to(worktree.path)): p for p in worktree.path.rglob("*") if p.is_file()}
        assert {name: path.read_bytes() for name, path in found.items()} == {
            "a.txt": b"one\r\ntwo\n\xe2\x82\xac",
            "src/deep/b.py": b"",
            "src/c": b"\x00\xef\xbb\xbf",
            ".hidden/x y": b"z",
        }
        assert worktree.path == worktree.path.resolve()


def test_each_has_its_own_folder_and_all_are_removed(root: WorktreeRoot, parent: Path) -> None:
    with root.worktree(case({"a": "1"})) as first, root.worktree(case({"a": "2"})) as second:
        assert (first.path / "a").read_text() == "1"
        assert (second.path / "a").read_text() == "2"
        assert Path(first.environment["HOME"]).is_dir()
        assert not Path(first.environment["HOME"]).is_relative_to(first.path)
    assert not first.folder.exists()
    assert not second.folder.exists()
    root.close()
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_is_removed_after_an_error(error: type[BaseException], root: WorktreeRoot) -> None:
    with pytest.raises(error), root.worktree(case({"a": "1"})) as worktree:
        raise error
    assert not worktree.folder.exists()


def test_nothing_is_made_before_it_is_needed(parent: Path) -> None:
    with WorktreeRoot(parent):
        assert list(parent.iterdir()) == []


def test_a_closed_root_can_be_used_again(root: WorktreeRoot, parent: Path) -> None:
    for _ in range(2):
        made = root.make(case({"a": "1"}))
        assert (made.path / "a").exists()
        root.close()
        assert list(parent.iterdir()) == []


def test_one_that_is_kept_outlives_the_root_and_the_next_start(root: WorktreeRoot, parent: Path) -> None:
    with root.worktree(case({"a": "kept"}), keep=True) as worktree:
        pass
    root.close()
    with WorktreeRoot(parent) as later:
        later.make(case())
    assert (worktree.path / "a").read_text() == "kept"
    remove(worktree)
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["../out", "/tmp/out", "a/../../out", "a/..", "..", "", "a/", "/", "nul\0l"],
)
def test_a_file_cannot_leave_the_folder(name: str, root: WorktreeRoot, parent: Path) -> None:
    with pytest.raises(WorktreeError, match=r"case sample: the file .* is not inside the case's folder"):
        root.make(case({"good": "1", name: "2"}))
    assert [path.name for path in parent.rglob("good")] == []


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"a": "1", "a/b": "2"}, r"'a/b' cannot be written: .*each other's way"),
        ({"a/b": "1", "a": "2"}, r"'a' cannot be written: .*each other's way"),
        ({"a": "1", "./a": "2"}, r"'\./a' cannot be written: File exists; "),
        ({"x" * 300: "1"}, "cannot be written: File name too long; "),
        ({"a": "\ud800"}, r"'a' cannot be written: .*surrogates not allowed"),
    ],
)
def test_files_that_cannot_be_written(files: dict[str, str], complaint: str, root: WorktreeRoot) -> None:
    with pytest.raises(WorktreeError, match=complaint):
        root.make(case(files))


def test_no_place_for_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorktreeError, match=r"no folder for the case can be made: .*set TMPDIR"):
        WorktreeRoot(tmp_path / "file").make(case())


def test_no_room_for_a_file(parent: Path) -> None:
    script = """
        import resource, sys
        from pathlib import Path
        from pytest_tooleval.agent.worktree import WorktreeRoot
        from pytest_tooleval.cases.case import Source, ToolUseCase
        from pytest_tooleval.errors import WorktreeError

        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        case = ToolUseCase(id="big", task="t", source=Source(Path("f")), files={"small": "1", "big": "x" * 2000})
        try:
            WorktreeRoot(Path(sys.argv[1])).make(case)
        except WorktreeError as error:
            print(error)
    """
    done = python(script, str(parent))
    assert "the file 'big' cannot be written: File too large; free space" in done.stdout, done.stderr
    assert list(parent.iterdir()) == []


def test_the_environment_of_commands(root: WorktreeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LC_")]:
        monkeypatch.delenv(name)
    ours = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC", "TERM": "dumb"}
    private = {"OPENAI_API_KEY": "sk-1", "GIT_DIR": "/x", "GIT_AUTHOR_NAME": "me", "PYTHONPATH": "/y", "USER": "me"}
    for name, value in {**ours, **private}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LANGUAGE", raising=False)
    with root.worktree(case()) as worktree:
        assert worktree.environment == {
            **ours,
            "HOME": str(worktree.folder / "home"),
            "TMPDIR": str(worktree.folder / "tmp"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": str(worktree.folder),
        }
        assert shell("mktemp; cd; pwd", worktree).splitlines()[1] == str(worktree.folder / "home")


def test_the_folders_of_commands_are_made_when_one_is_to_run(root: WorktreeRoot) -> None:
    with root.worktree(case({"a": "1"})) as worktree:
        assert [path.name for path in worktree.folder.iterdir()] == ["work"]
        home, temporary = (Path(worktree.environment[name]) for name in ("HOME", "TMPDIR"))
        assert set(worktree.folder.iterdir()) == {worktree.path, home, temporary}
        assert len(worktree.environment) == len({*worktree.environment}) == len(dict(worktree.environment))


def test_no_place_for_the_folders_of_commands(root: WorktreeRoot) -> None:
    with root.worktree(case()) as worktree:
        shutil.rmtree(worktree.folder)
        with pytest.raises(WorktreeError, match=r"no folder for the case can be made: .*set TMPDIR"):
            shell("true", worktree)


def test_many_at_once_in_threads(root: WorktreeRoot, parent: Path) -> None:
    def visit(number: int) -> str:
        with root.worktree(case({"n/n": str(number)})) as worktree:
            return (worktree.path / "n/n").read_text()

    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(visit, range(300))) == [str(number) for number in range(300)]
    (base,) = parent.iterdir()
    assert [path.name for path in base.iterdir()] == [".tooleval-lock"]


UNPRIVILEGED = """
    import os, sys
    from pathlib import Path
    import psutil
    from pytest_tooleval.agent.worktree import WorktreeRoot
    from pytest_tooleval.cases.case import Source, ToolUseCase

    parent = Path(sys.argv[1])
    if os.geteuid() == 0:
        os.chown(parent, 65534, 65534)
        os.setuid(65534)
    case = ToolUseCase(id="locked", task="t", source=Source(Path("f")), files={"a/b/c.txt": "1", "d/e.txt": "2"})
    with WorktreeRoot(parent) as root:
        with root.worktree(case) as worktree:
            (worktree.path / "a/b").chmod(0o500)
            (worktree.path / "a").chmod(0)
            (worktree.path / "d").chmod(0o400)
            worktree.path.chmod(0o555)
        print(worktree.folder.exists())
    print(list(parent.iterdir()))
"""


def test_read_only_folders_are_removed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = python(UNPRIVILEGED, folder)
    assert done.stdout.split() == ["False", "[]"], done.stderr


def test_a_link_is_removed_and_not_followed(root: WorktreeRoot, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir(mode=0o555)
    (tmp_path / "file").write_text("stays")
    with root.worktree(case({"a": "1"})) as worktree:
        (worktree.path / "link").symlink_to(target)
        (worktree.path / "file").symlink_to(tmp_path / "file")
    assert not worktree.folder.exists()
    assert (tmp_path / "file").read_text() == "stays"
    assert stat.S_IMODE(target.stat().st_mode) == 0o555


def test_a_tree_deeper_than_python_goes_is_removed(root: WorktreeRoot) -> None:
    with root.worktree(case()) as worktree:
        levels = "d/" * 400
        shell(f"for i in 1 2 3; do mkdir -p {levels}; cd {levels}; done", worktree)
    assert not worktree.folder.exists()


def test_a_root_that_a_command_removed_is_made_anew(root: WorktreeRoot) -> None:
    with root.worktree(case()) as worktree:
        assert shell('rm -rf "${HOME%/*/*}"', worktree) == ""
    with root.worktree(case({"a": "1"})) as after:
        assert (after.path / "a").read_text() == "1"


DIES = """
    import os, sys, threading, time
    from pathlib import Path
    from pytest_tooleval.agent.worktree import WorktreeRoot
    from pytest_tooleval.cases.case import Source, ToolUseCase
    from pytest_tooleval.tools.run_command import TOOL
    from pytest_tooleval.tools.tool import ToolContext

    worktree = WorktreeRoot(Path(sys.argv[1])).make(ToolUseCase("x", "t", Source(Path("f")), files={"a/b": "1"}))
    context = ToolContext(worktree.path, worktree.environment)
    command = f"(cd / && setsid {sys.argv[2]}) & env -i {sys.argv[2]} & echo > up; wait"
    threading.Thread(target=TOOL.run, args=({"command": command}, context), daemon=True).start()
    while not (worktree.path / "up").exists():
        time.sleep(0.01)
    time.sleep(0.05)
    print("up", flush=True)
    eval(sys.argv[3])
"""


def test_what_a_killed_process_left_is_cleared_at_the_next_start(parent: Path, sleeper: str) -> None:
    done = python(DIES, str(parent), sleeper, "os._exit(9)")
    assert (done.returncode, done.stdout) == (9, "up\n"), done.stderr
    assert len(living(sleeper)) == 2
    (left,) = parent.iterdir()
    with WorktreeRoot(parent) as root:
        root.make(case())
        assert not left.exists()
        assert living(sleeper) == []


@pytest.mark.parametrize("ending", ["None", "sys.exit(3)", "1 / 0"])
def test_a_process_that_ends_leaves_nothing(ending: str, parent: Path, sleeper: str) -> None:
    done = python(DIES, str(parent), sleeper, ending)
    assert done.stdout == "up\n", done.stderr
    assert list(parent.iterdir()) == []
    assert living(sleeper) == []


def test_the_root_of_a_living_process_and_other_folders_are_left_alone(root: WorktreeRoot, parent: Path) -> None:
    (parent / "tooleval-notes").mkdir()
    (parent / "tooleval-x" / "work").mkdir(parents=True)
    (parent / "tooleval-link").symlink_to(parent / "tooleval-notes")
    living_one = root.make(case({"a": "1"}))
    script = """
        import sys
        from pathlib import Path
        from pytest_tooleval.agent.worktree import WorktreeRoot
        from pytest_tooleval.cases.case import Source, ToolUseCase

        with WorktreeRoot(Path(sys.argv[1])) as root:
            print(root.make(ToolUseCase("x", "t", Source(Path("f")))).path.name)
    """
    done = python(script, str(parent))
    assert done.stdout == "work\n", done.stderr
    assert (living_one.path / "a").read_text() == "1"
    names = {path.name for path in parent.iterdir()}
    assert names == {"tooleval-notes", "tooleval-x", "tooleval-link", living_one.folder.parent.name}


def test_a_forked_child_removes_nothing_of_its_parent(parent: Path) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from pytest_tooleval.agent.worktree import WorktreeRoot
        from pytest_tooleval.cases.case import Source, ToolUseCase

        case = ToolUseCase("x", "t", Source(Path("f")), files={"a": "1"})
        root = WorktreeRoot(Path(sys.argv[1]))
        ours = root.make(case)
        child = os.fork()
        theirs = root.make(case)
        if child == 0:
            sys.exit(ours.folder.parent == theirs.folder.parent)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (ours.path / "a").exists())
    """
    done = python(script, str(parent))
    assert done.stdout == "0 True\n", done.stderr
    assert list(parent.iterdir()) == []


FILES = {"src/app.py": "print(1)\n", "README": "hello\n", ".gitignore": "*.log\n", "debug.log": "ignored\n"}


def test_git_commits_the_files(root: WorktreeRoot) -> None:
    with root.worktree(case(FILES, git=True)) as worktree:
        assert shell("git status --porcelain", worktree) == ""
        assert shell("git branch --show-current; git log --oneline | wc -l", worktree).split() == ["main", "1"]
        assert shell("git ls-tree -r --name-only HEAD", worktree).split() == [".gitignore", "README", "src/app.py"]
        assert (worktree.path / "debug.log").exists()
        assert shell("git log --format='%an %ae %aI %cI'", worktree) == (
            "tooleval tooleval@example.invalid 2024-01-01T00:00:00+00:00 2024-01-01T00:00:00+00:00"
        )
        assert not (worktree.path / ".git" / "hooks").exists()
        assert shell("echo more >> README; git commit -qam more; git log --oneline | wc -l", worktree) == "2"


def test_git_without_files_has_an_empty_commit(root: WorktreeRoot) -> None:
    with root.worktree(case(git=True)) as worktree:
        assert shell("git ls-tree -r HEAD; git log --format=%s", worktree) == "Start"
        assert shell("git rev-parse HEAD", worktree) == "12d8abff49b0bf0bae3e00263850ea5eb251af14"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_commit_depends_on_the_files_alone(mask: int, root: WorktreeRoot) -> None:
    before = os.umask(mask)
    try:
        with root.worktree(case(FILES, git=True)) as worktree:
            assert shell("git rev-parse HEAD", worktree) == "5f79c546e3ed180eec79746a5480123a02a3d58f"
    finally:
        os.umask(before)


def test_git_for_many_at_once(root: WorktreeRoot) -> None:
    def commit(_: int) -> str:
        with root.worktree(case(FILES, git=True)) as worktree:
            return shell("git rev-parse HEAD", worktree)

    with ThreadPoolExecutor(12) as pool:
        assert len(set(pool.map(commit, range(24)))) == 1


@pytest.fixture
def decoy(tmp_path: Path) -> Path:
    """Give a user's repository with a hook, changes in its index, and a file that git does not know."""
    repository = tmp_path.resolve() / "users"
    repository.mkdir()
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=U", "-c", "user.email=u@example.invalid"]
    (repository / "tracked").write_text("1")
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "users"]):
        subprocess.run(["git", *arguments], cwd=repository, env=plain, check=True)
    (repository / "staged").write_text("2")
    subprocess.run(["git", "add", "staged"], cwd=repository, env=plain, check=True)
    (repository / "unknown").write_text("3")
    for name in ("pre-commit", "post-commit", "reference-transaction"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {repository}/hook-ran\n")
        hook.chmod(0o755)
    return repository


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_variables_of_a_hook_lead_nowhere(decoy: Path, root: WorktreeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = decoy.parent / "users-config"
    settings.write_text(f"[core]\n\thooksPath = {decoy}/.git/hooks\n[user]\n\tname = Someone\n")
    before = contents(decoy)
    inherited = {
        "GIT_DIR": str(decoy / ".git"),
        "GIT_WORK_TREE": str(decoy),
        "GIT_INDEX_FILE": str(decoy / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(decoy / ".git" / "objects"),
        "GIT_COMMON_DIR": str(decoy / ".git"),
        "GIT_PREFIX": "src/",
        "GIT_AUTHOR_NAME": "Someone",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00+00:00",
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(decoy / ".git" / "hooks"),
        "GIT_TEMPLATE_DIR": str(decoy / ".git"),
        "GIT_DEFAULT_HASH": "sha256",
    }
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    with root.worktree(case(FILES, git=True)) as worktree:
        assert shell("git rev-parse --show-toplevel", worktree) == str(worktree.path)
        shell("echo x > new; git add -A; git commit -qm more", worktree)
        assert shell("git log --format=%an", worktree) == "tooleval\ntooleval"
        assert re.fullmatch("[0-9a-f]{40}", shell("git rev-parse HEAD", worktree))
    assert contents(decoy) == before


def test_a_repository_around_the_temporary_folder_is_not_found(decoy: Path) -> None:
    before = contents(decoy)
    with WorktreeRoot(decoy) as root, root.worktree(case({"a": "1"})) as worktree:
        shell("git rev-parse --git-dir 2>&1 || true; git add -A 2>&1 || true", worktree)
        assert "not a git repository" in shell("git status 2>&1 || true", worktree)
    assert contents(decoy) == before


def test_worktrees_stand_outside_of_the_project() -> None:
    with WorktreeRoot() as root, root.worktree(case({"test_a.py": "", "b.json": "{}"})) as worktree:
        assert worktree.path.is_relative_to(Path(tempfile.gettempdir()).resolve())
        assert not worktree.path.is_relative_to(Path(SOURCES).resolve())


def test_without_git_the_error_says_what_to_do(
    root: WorktreeRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorktreeError, match="git is not on PATH: install git, or leave `git` out"):
        root.make(case(FILES, git=True))


def test_a_failing_git_is_quoted(root: WorktreeRoot) -> None:
    with pytest.raises(WorktreeError, match=r"git .*init .* failed in .*invalid gitfile format"):
        root.make(case({".git": "no repository"}, git=True))
