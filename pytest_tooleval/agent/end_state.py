"""What the files that a verifier names are when the model has finished."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_tooleval.errors import ToolError
from pytest_tooleval.measures.verify import FileState
from pytest_tooleval.tools.containment import kind_of, open_file, resolve

MOST_BYTES = 10_000_000


def read_end_state(worktree: Path, paths: Iterable[str]) -> dict[str, FileState]:
    """Return the state of each path; nothing outside the worktree is read, and a file over MOST_BYTES is not."""
    return {path: _state(worktree, path) for path in paths}


def _state(worktree: Path, path: str) -> FileState:
    try:
        place = resolve(worktree, path)
        kind = kind_of(place)
    except ToolError:
        return FileState()
    if kind != "file":
        return FileState(reason=f"is a {kind}")
    try:
        with open_file(place) as file:
            data = file.read(MOST_BYTES + 1)
    except ToolError as error:
        return FileState(reason=f"cannot be read: {error}")
    return _text(data)


def _text(data: bytes) -> FileState:
    if len(data) > MOST_BYTES:
        return FileState(reason=f"is larger than {MOST_BYTES} bytes")
    try:
        return FileState(data.decode())
    except UnicodeDecodeError:
        return FileState(reason="is not UTF-8 text")
