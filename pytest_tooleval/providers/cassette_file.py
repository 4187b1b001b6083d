"""A cassette's file: read, written whole or not at all, and every fault named."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_tooleval.errors import CaseError, ProviderError
from pytest_tooleval.providers.cassette import Cassette, cassette_text
from pytest_tooleval.providers.cassette_reader import read_cassette

RECORD_ANEW = "--tooleval-record records it anew"
_PERMISSIONS = 0o644


@dataclass(frozen=True, slots=True)
class CassetteFile:
    """Where the cassette of one run stands.

    Attributes:
        path: the file.
        shown: its name in messages.

    """

    path: Path
    shown: Path

    def read(self) -> Cassette | None:
        """Return what is recorded, or None when there is no such file.

        Raises:
            ProviderError: the file cannot be read or is no cassette; names line and place.

        """
        try:
            self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault("read", error) from None
        try:
            return read_cassette(self.path, self.shown)
        except CaseError as error:
            raise ProviderError(f"{error}; {RECORD_ANEW}") from None

    def make_folder(self) -> None:
        """Make the file's folder, so that it is known before a model is asked whether there can be a recording.

        Raises:
            ProviderError: it cannot be made or written to.

        """
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._fault("written", error) from None
        if not os.access(folder, os.W_OK):
            raise ProviderError(f"the cassette {self.shown} cannot be written: its folder is read-only")

    def write(self, cassette: Cassette) -> None:
        """Write the file in one step, into a folder that is there: a reader never finds a part of it.

        Raises:
            ProviderError: it cannot be written.

        """
        text = cassette_text(cassette)
        try:
            self._write(text)
        except OSError as error:
            raise self._fault("written", error) from None

    def _write(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        draft = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            draft.chmod(_PERMISSIONS)
            draft.replace(self.path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def _fault(self, done: str, error: OSError) -> ProviderError:
        return ProviderError(f"the cassette {self.shown} cannot be {done}: {error.strerror or error}")
