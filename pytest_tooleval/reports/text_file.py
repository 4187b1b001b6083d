"""Files that a run leaves behind, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PERMISSIONS = 0o644


def write_text(path: Path, text: str) -> None:
    """Write a file in one step: a reader finds the old file or the new one, never a part.

    Args:
        path: the file; missing folders are made.
        text: its content; a lone surrogate, as in the name of a file that is not UTF-8, is spelled as an escape.

    Raises:
        OSError: the folder cannot be written to.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        Path(name).chmod(PERMISSIONS)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def why_not_written(error: OSError) -> str:
    """Return in short what the system said."""
    return error.strerror or str(error)
