"""Paths from a model, kept inside the worktree.

A path is checked twice. `resolve` follows its links and refuses what ends outside. The functions that open go down
from the worktree's directory descriptor, one name at a time and following no link, so that a folder which is
swapped for a link in between is refused as well.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from pytest_tooleval.errors import ToolError

Kind: TypeAlias = Literal["file", "directory", "link", "special"]

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
_MAX_SUGGESTED_FROM = 2000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "a symbolic link in it cannot be followed",
    errno.ENAMETOOLONG: "a name in it is too long; choose a shorter one",
    errno.ENOTDIR: "a part of it is a file or a link, not a directory; use list_dir to see what is there",
    errno.EISDIR: "it is a directory; use list_dir to see what it holds",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A path that was found to lie inside the worktree when it was resolved.

    Attributes:
        root: real path of the worktree.
        parts: names below the root, with no link, `.` or `..` among them; empty for the root itself.
        given: the path as the model wrote it.

    """

    root: str
    parts: tuple[str, ...]
    given: str

    @property
    def shown(self) -> str:
        """The path relative to the worktree, as tools print it."""
        return printable("/".join(self.parts)) or "."

    def child(self, name: str) -> Place:
        """Return the place of an entry of this directory."""
        parts = (*self.parts, name)
        return Place(self.root, parts, "/".join(parts))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a directory; the kind of a link is `link`, whatever it points to."""

    place: Place
    kind: Kind

    @property
    def shown(self) -> str:
        """The path relative to the worktree; a directory's ends in `/`."""
        return f"{self.place.shown}/" if self.kind == "directory" else self.place.shown


def resolve(worktree: Path, given: str) -> Place:
    """Follow the links of a path from the model; raise ToolError when it cannot be used or leaves the worktree.

    The path need not exist: what is missing is taken as it stands below the nearest ancestor that exists.
    """
    _refuse_unusable(given)
    root = Path(os.path.realpath(worktree))
    found = _real(root, given)
    if not found.is_relative_to(root):
        raise ToolError(
            f"path {given!r} is outside the worktree; give a path relative to the worktree, such as 'src/app.py'"
        )
    return Place(str(root), found.relative_to(root).parts, given)


def printable(name: str) -> str:
    """Return the name with control characters and undecodable bytes written as escapes."""
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], name)


def kind_of(place: Place) -> Kind:
    """Return what stands at the place; raise ToolError when there is nothing."""
    if not place.parts:
        return "directory"
    with _told(place), _folder_of(place) as folder:
        return _kind(os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)


def entries(place: Place) -> list[Entry]:
    """Return the entries of a directory in no order; raise ToolError when it cannot be listed."""
    with _told(place), _open_folder(place.root, place.parts) as folder, os.scandir(folder) as found:
        return [Entry(place.child(item.name), _kind_of_item(item)) for item in found]


def open_file(place: Place) -> BinaryIO:
    """Open a regular file for reading bytes; raise ToolError for anything else, without waiting on a pipe."""
    _refuse_root(place)
    with _told(place), _folder_of(place) as folder:
        name = place.parts[-1]
        _refuse_irregular(os.stat(name, dir_fd=folder, follow_symlinks=False), place)
        return _regular_file(os.open(name, _READ, dir_fd=folder), place)


def replace_file(place: Place, data: bytes) -> bool:
    """Write a whole file at once, making missing folders; return True when there was one before.

    A reader sees the old bytes or the new ones, never a part. Raises ToolError when the place is not a regular file
    or cannot be written.
    """
    _refuse_root(place)
    with _told(place), _folder_of(place, create=True) as folder:
        before = _writable_before(folder, place)
        _swap_in(folder, place.parts[-1], data, None if before is None else before.st_mode & 0o777)
        return before is not None


def _real(root: Path, given: str) -> Path:
    try:
        return Path(os.path.realpath(root / given))
    except OSError as error:
        raise ToolError(f"cannot use {given!r}: a link in it changed while it was followed; try again") from error


def _refuse_unusable(given: str) -> None:
    if not given:
        raise ToolError("path is empty; give a path relative to the worktree, or '.' for the worktree itself")
    if _UNPRINTABLE.search(given):
        raise ToolError(f"path {given[:200]!r} holds a control or unpaired surrogate character; leave it out")
    if len(os.fsencode(given)) > MAX_PATH_BYTES:
        raise ToolError(f"path {given[:60]!r}... is longer than {MAX_PATH_BYTES} bytes; choose a shorter one")
    for name in given.split("/"):
        if len(os.fsencode(name)) > MAX_NAME_BYTES:
            raise ToolError(
                f"the name {name[:60]!r}... is longer than {MAX_NAME_BYTES} bytes; choose a shorter one"
            )


def _refuse_root(place: Place) -> None:
    if not place.parts:
        raise ToolError(f"{place.given!r} is a directory; use list_dir to see what it holds")


@contextmanager
def _open_folder(root: str, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    folder = os.open(root, _FOLDER)
    try:
        for name in parts:
            below = _enter(folder, name, create=create)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _folder_of(place: Place, *, create: bool = False) -> AbstractContextManager[int]:
    return _open_folder(place.root, place.parts[:-1], create=create)


def _enter(folder: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _regular_file(descriptor: int, place: Place) -> BinaryIO:
    try:
        _refuse_irregular(os.fstat(descriptor), place)
    except ToolError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _refuse_irregular(status: os.stat_result, place: Place) -> None:
    match _kind(status.st_mode):
        case "directory":
            raise ToolError(f"{place.given!r} is a directory; use list_dir to see what it holds")
        case "link":
            raise ToolError(f"{place.given!r} is a symbolic link that cannot be followed")
        case "special":
            raise ToolError(f"{place.given!r} is a pipe, socket or device, not a regular file")


def _writable_before(folder: int, place: Place) -> os.stat_result | None:
    name = place.parts[-1]
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _refuse_irregular(status, place)
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError(f"{place.given!r} is read-only")
    return status


def _swap_in(folder: int, name: str, data: bytes, mode: int | None) -> None:
    draft = f".tooleval-{secrets.token_hex(8)}"
    descriptor = os.open(draft, _DRAFT, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(descriptor, mode)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "special"


def _kind_of_item(item: os.DirEntry[str]) -> Kind:
    if item.is_symlink():
        return "link"
    if item.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if item.is_file(follow_symlinks=False) else "special"


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Turn what the operating system refuses into a ToolError that shows no path of the host."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(_missing(place)) from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or os.strerror(error.errno or errno.EIO).lower()
        raise ToolError(f"cannot use {place.given!r}: {reason}") from error


def _missing(place: Place) -> str:
    folder = "/".join(place.parts[:-1])
    try:
        with _open_folder(place.root, place.parts[:-1]) as opened, os.scandir(opened) as found:
            names = [item.name for item in islice(found, _MAX_SUGGESTED_FROM)]
    except OSError:
        return f"{place.given!r} does not exist, nor does its folder {folder!r}; use list_dir or glob to find it"
    near = _near(place.parts[-1], names) if place.parts else []
    if near:
        meant = " or ".join(repr("/".join((*place.parts[:-1], name))) for name in near)
        return f"{place.given!r} does not exist; did you mean {meant}?"
    return f"{place.given!r} does not exist; use list_dir or glob to find it"


def _near(name: str, names: list[str]) -> list[str]:
    by_folded = {known.casefold(): known for known in sorted(names)}
    return [by_folded[found] for found in difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.6)]
