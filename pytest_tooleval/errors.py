"""The error tree: each error says what is wrong, where, and what to try.

ToolevalError
├── ConfigError            an option, a key or a setting is wrong: pytest's usage error
├── CaseError              case or threshold files are wrong: pytest's collection error
├── ToolError              a tool refused or failed: the model is told, the run goes on
└── InfrastructureError    nothing was measured: pytest's ERROR, never a failure
    ├── ProviderError      the model's API gave no usable answer
    ├── ToolUnavailableError  a tool could not be tried at all
    └── WorktreeError      the case's folder could not be made
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class ToolevalError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(ToolevalError):
    """An option, an environment variable or a registration cannot be used."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one file, worded for the person who can mend it.

    Attributes:
        path: the file, as the user would name it.
        message: what was found, what was expected, what to try.
        line: 1-based line in the file, or None when the fault is of the file as a whole.
        pointer: JSON pointer to the value (RFC 6901), or None.

    """

    path: Path
    message: str
    line: int | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        place = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        where = f" at {self.pointer}" if self.pointer else ""
        return f"{place}{where}: {self.message}"


class CaseError(ToolevalError):
    """Files that describe cases are wrong; every fault that was found is in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class ToolError(ToolevalError):
    """A tool refused or failed; its text is the tool result that the model gets."""


class InfrastructureError(ToolevalError):
    """Something other than the model kept the case from being measured."""


class ProviderError(InfrastructureError):
    """The model's API gave no usable answer.

    Attributes:
        transient: True when the same request may succeed later.
        retry_after: seconds that the server asked to wait, or None.
        attempts: requests that were sent before it was given up.

    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None, attempts: int = 0
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after
        self.attempts = attempts


class ToolUnavailableError(InfrastructureError):
    """A tool could not be tried at all: no process could be started, a server is gone."""


class WorktreeError(InfrastructureError):
    """The folder that a case runs in could not be made."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.65) -> str:
    """Return ` (did you mean 'x'?)` for the known word nearest to `word`, or an empty string.

    Args:
        word: what was found.
        known: what would have been right.
        cutoff: least likeness, from 0 to 1, as `difflib` measures it.

    """
    by_folded = {name.casefold(): name for name in known}
    folded = word.casefold()
    found = difflib.get_close_matches(folded, by_folded, n=3, cutoff=cutoff)
    swapped = [name for name in found if sorted(name) == sorted(folded)]
    return f" (did you mean {by_folded[(swapped or found)[0]]!r}?)" if found else ""
