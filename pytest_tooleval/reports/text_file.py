"""Files that a run leaves behind, written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

PERMISSIONS = 0o644


def write_text(path: Path, text: str) -> None:
    """Write a file in one step: a reader finds the old file or the new one, never a part.

    Args:
        path: the file; missing folders are made. A link is followed; a device or a pipe is written to.
        text: its content; a lone surrogate, as in the name of a file that is not UTF-8, is spelled as an escape.

    Raises:
        OSError: the folder cannot be written to.

    """
    place = Path(os.path.realpath(path))
    if _is_special(place):
        place.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    else:
        _replace(place, text)


def _is_special(path: Path) -> bool:
    """Whether there is something that is neither file nor folder: nothing may take its place."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError:
        return False


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".tooleval-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        Path(name).chmod(PERMISSIONS)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def why_unwritable(path: Path) -> str:
    """Return why a file will surely not be written, as far as it can be told without writing; else an empty string.

    It is asked before a run, so that nothing is measured in vain.
    """
    place = Path(os.path.realpath(path))
    if _is_special(place):
        return "" if os.access(place, os.W_OK) else os.strerror(errno.EACCES)
    try:
        if place.is_dir():
            return os.strerror(errno.EISDIR)
        folder = next(parent for parent in place.parents if parent.exists())
        if not folder.is_dir():
            return os.strerror(errno.ENOTDIR)
        is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError as error:
        return why_not_written(error)
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    return os.strerror(errno.EROFS if is_read_only else errno.EACCES)


def why_not_written(error: OSError) -> str:
    """Return in short what the system said."""
    return error.strerror or str(error)
