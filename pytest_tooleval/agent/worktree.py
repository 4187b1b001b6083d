"""An isolated folder for one case and trial: made, lived in, removed."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import itertools
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType

from pytest_tooleval.agent.git import commit_all
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import WorktreeError
from pytest_tooleval.tools.process import end_processes_inside

_PREFIX = "tooleval-"
_BASE_NAME = re.compile(rf"{_PREFIX}[A-Za-z0-9_]+")
_LOCK = ".tooleval-lock"
_REMOVE_SECONDS = 60
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})
_MAKE_ROOM = "free space, or set TMPDIR to a folder that can be written and has room"
_PASSED_ON = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM")


@dataclass(frozen=True, slots=True)
class Worktree:
    """The folder of one run of a case.

    Attributes:
        path: real path of the folder that the model works in.
        environment: the variables that its commands get, and no others; reading one makes their home and their
            temporary folder, and raises WorktreeError where that cannot be done.
        folder: what is removed afterwards: `path`, and beside it the commands' home and temporary folder.

    """

    path: Path
    environment: Mapping[str, str]
    folder: Path


class WorktreeRoot:
    """Where the worktrees of one process stand: a folder of its own among the temporary ones.

    It is made at first use. Then those that earlier processes left, because they were killed, are removed, with the
    programs that still run there. Its own is removed by `close`, at the latest when the process ends. Safe to use
    from many threads.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent
        self._guard = threading.Lock()
        self._numbers = itertools.count(1)
        self._base: _Base | None = None

    def __enter__(self) -> WorktreeRoot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def worktree(self, case: ToolUseCase, *, keep: bool = False) -> Iterator[Worktree]:
        """Give the case's worktree, and remove it afterwards unless it is to be kept; raises what `make` raises."""
        made = self.make(case, keep=keep)
        try:
            yield made
        finally:
            if not keep:
                remove(made)

    def make(self, case: ToolUseCase, *, keep: bool = False) -> Worktree:
        """Make a worktree with the case's files; the caller removes it with `remove`.

        One that is to be kept stands apart, where neither `close` nor a later process removes it.

        Raises:
            WorktreeError: a file leads out of the folder, something cannot be written, or git failed.

        """
        try:
            folder = self._kept_folder() if keep else self._new_folder()
        except OSError as error:
            raise WorktreeError(_no_folder(error)) from error
        try:
            return _fill(folder, case)
        except BaseException:
            _remove_tree(folder)
            raise

    def close(self) -> None:
        """Remove the root and all worktrees in it, and end what still runs there; it can be used again."""
        with self._guard:
            base, self._base = self._base, None
        if base is None:
            return
        atexit.unregister(self.close)
        if base.owner == os.getpid():
            base.remove()

    def _new_folder(self) -> Path:
        base = self._open()
        try:
            return self._numbered_folder(base)
        except FileNotFoundError:  # a command of a case may have removed more than its own folder
            self._forget(base)
            return self._numbered_folder(self._open())

    def _numbered_folder(self, base: _Base) -> Path:
        folder = base.path / str(next(self._numbers))
        folder.mkdir(mode=0o700)
        return folder

    def _forget(self, base: _Base) -> None:
        with self._guard:
            if self._base is base:
                os.close(base.lock)
                self._base = None

    def _kept_folder(self) -> Path:
        return _new_temporary(self._parent, f"{_PREFIX}kept-")

    def _open(self) -> _Base:
        with self._guard:
            if self._base is None or self._base.owner != os.getpid():
                _remove_stale(self._parent or Path(tempfile.gettempdir()))
                self._base = _Base.create(self._parent)
                atexit.register(self.close)
            return self._base


def remove(worktree: Worktree) -> None:
    """Remove a worktree, also one with read-only folders, and what still runs in it where that is in the way."""
    _remove_tree(worktree.folder)


@dataclass(frozen=True, slots=True)
class _Base:
    """A root's folder; as long as its owner lives, the file in it is locked.

    Attributes:
        path: real path of the folder.
        lock: file descriptor of the locked file.
        owner: process id of the owner: a forked child removes nothing.

    """

    path: Path
    lock: int
    owner: int

    @classmethod
    def create(cls, parent: Path | None) -> _Base:
        """Make the folder; the file is locked before it gets its name, so that nobody sees it unlocked."""
        path = _new_temporary(parent, _PREFIX)
        unnamed = path / f"{_LOCK}-new"
        lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with contextlib.suppress(OSError):  # file systems without locks: nobody else can lock it there either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(path / _LOCK)
        return cls(path, lock, os.getpid())

    def remove(self) -> None:
        """End what runs in the folder, remove it, and release the lock."""
        end_processes_inside(self.path)
        _remove_tree(self.path)
        os.close(self.lock)


def _new_temporary(parent: Path | None, prefix: str) -> Path:
    return Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent)))


def _no_folder(error: OSError) -> str:
    return f"no folder for the case can be made: {error}; {_MAKE_ROOM}"


def _fill(folder: Path, case: ToolUseCase) -> Worktree:
    path = folder / "work"
    try:
        path.mkdir()
    except OSError as error:
        raise WorktreeError(_no_folder(error)) from error
    for name, text in case.files.items():
        try:
            _write_file(path, name, text)
        except (OSError, ValueError) as error:
            raise WorktreeError(f"case {case.id}: the file {name!r} cannot be written: {_reason(error)}") from error
    environment = _CommandEnvironment(folder)
    if case.git:
        commit_all(path, environment)
    return Worktree(path, environment, folder)


def _write_file(root: Path, name: str, text: str) -> None:
    parts = name.split("/")
    if not parts[0] or not parts[-1] or ".." in parts or "\0" in name:
        raise ValueError("it is not inside the case's folder; give a relative path without `..`")
    target = f"{root}/{name}"
    data = text.encode("utf-8")
    if len(parts) > 1:
        os.makedirs(target.rpartition("/")[0], exist_ok=True)  # noqa: PTH103 - pathlib takes twice as long
    with open(target, "xb") as file:  # noqa: PTH123 - the same
        file.write(data)


def _reason(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in _NO_ROOM:
        return f"{error.strerror}; {_MAKE_ROOM}"
    return f"{error.strerror}; look for paths in `files` that are too long or in each other's way"


class _CommandEnvironment(Mapping[str, str]):
    """The variables of commands; their home and temporary folder are made when somebody first reads one.

    Most cases run no command, and making and removing these folders takes longer than all that such a case does.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _variables(self) -> dict[str, str]:
        home, temporary = self._folder / "home", self._folder / "tmp"
        try:
            for part in (home, temporary):
                part.mkdir(exist_ok=True)
        except OSError as error:
            raise WorktreeError(_no_folder(error)) from error
        ours = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
        return {
            "PATH": os.defpath,
            **ours,
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            # The temporary folder may be inside a repository of the user's, which git would find and work on.
            "GIT_CEILING_DIRECTORIES": str(self._folder),
        }

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def _remove_stale(parent: Path) -> None:
    """Remove the roots of processes that died; those that cannot be looked into are somebody else's."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _BASE_NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_stale(Path(os.path.realpath(entry.path)), entry.stat(follow_symlinks=False))


def _remove_if_stale(base: Path, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    lock = os.open(base / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        end_processes_inside(base)
        _remove_tree(base)
    finally:
        os.close(lock)


def _remove_tree(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        _force_removal(folder)


def _force_removal(folder: Path) -> None:
    """Remove what resists: read-only folders, trees deeper than Python can go, files that a program still makes."""
    if not os.path.lexists(folder):
        return
    end_processes_inside(folder)
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - literal programs, and the folder is ours
                [*command, str(folder)],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_REMOVE_SECONDS,
            )
