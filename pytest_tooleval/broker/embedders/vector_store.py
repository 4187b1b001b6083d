"""Vectors on disk by what they are vectors of: a text never has to be embedded twice with one model."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

FILE_NAME = "vectors-1.sqlite3"
MOST_VECTORS = 100_000
_ASKED_AT_ONCE = 500
_LOCK_SECONDS = 10.0


class VectorStore:
    """A cache that is never in the way: where it cannot be read or written, it holds nothing.

    The file is an SQLite database, so a vector is in it whole or not at all, and processes can share it. A damaged
    file, or one of something else, is replaced.

    Args:
        folder: where the file lies; made when it is missing.
        most: number of vectors beyond which the oldest are dropped.

    """

    def __init__(self, folder: Path, most: int = MOST_VECTORS) -> None:
        self.path = folder / FILE_NAME
        self._most = most

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what was added under those of the keys that are there."""
        parts = [keys[start : start + _ASKED_AT_ONCE] for start in range(0, len(keys), _ASKED_AT_ONCE)]
        return self._tried(lambda database: dict(row for part in parts for row in _rows(database, part)), {})

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep each vector, as bytes, under its key."""
        if vectors:
            self._tried(lambda database: self._insert(database, vectors), None)

    def _insert(self, database: sqlite3.Connection, vectors: Mapping[bytes, bytes]) -> None:
        database.executemany("INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", vectors.items())
        newest = "SELECT max(rowid) FROM vectors"
        database.execute(f"DELETE FROM vectors WHERE rowid <= ({newest}) - ?", (self._most,))  # noqa: S608

    def _tried(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            return self._done(action)
        except sqlite3.OperationalError:
            return otherwise  # locked for long, read-only, full
        except sqlite3.DatabaseError:
            return self._done_anew(action, otherwise)
        except OSError:
            return otherwise

    def _done_anew(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            self.path.unlink(missing_ok=True)
            return self._done(action)
        except (sqlite3.Error, OSError):
            return otherwise

    def _done(self, action: Callable[[sqlite3.Connection], T]) -> T:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(self.path) as database:
            return action(database)


def vector_key(embedder: str, text: str) -> bytes:
    """Return the key of a text's vector: SHA-256 of the embedder's name and the text."""
    return hashlib.sha256(f"{embedder}\0{text}".encode("utf-8", "surrogatepass")).digest()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=_LOCK_SECONDS)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB UNIQUE NOT NULL, vector BLOB NOT NULL)")
        yield database


def _rows(database: sqlite3.Connection, keys: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    marks = ",".join("?" * len(keys))
    query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608
    return database.execute(query, keys).fetchall()
