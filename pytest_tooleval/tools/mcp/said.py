"""What a server said beside the protocol: the end of its stderr, and lines on stdout that are no messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pytest_tooleval.measures.text import clean_text, printable, shorten

_LAST_LINES = 8
_LAST_BYTES = 8192
_FIRST_STRAY_LINES = 3
_LINE_CHARS = 300


class Said:
    """Keeps a bounded part of what a server said; safe to add to in one thread and to read in another.

    Args:
        redact: takes secrets out of a text.

    """

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._errors: deque[bytes] = deque()
        self._errors_size = 0
        self._stray: list[str] = []
        self._stray_count = 0

    def add_errors(self, data: bytes) -> None:
        """Take bytes of stderr."""
        self._errors.append(data[-_LAST_BYTES:])
        self._errors_size += len(self._errors[-1])
        while self._errors_size - len(self._errors[0]) >= _LAST_BYTES:
            self._errors_size -= len(self._errors.popleft())

    def add_stray(self, line: bytes) -> None:
        """Take a line of stdout that is no message."""
        self._stray_count += 1
        if len(self._stray) < _FIRST_STRAY_LINES:
            self._stray.append(self._shown(line[: 4 * _LINE_CHARS]))

    @property
    def last_errors(self) -> list[str]:
        """The last lines of stderr, without secrets, as a terminal shows them."""
        lines = b"".join(self._errors.copy())[-_LAST_BYTES:].splitlines()
        return [self._shown(line) for line in lines if line.strip()][-_LAST_LINES:]

    @property
    def stray(self) -> str:
        """How many lines on stdout were no messages, and the first of them; empty when all were."""
        if not self._stray:
            return ""
        lines = "1 line" if self._stray_count == 1 else f"{self._stray_count} lines"
        return f"{lines} on stdout that are no JSON-RPC and belong on stderr, first: {' | '.join(self._stray)}"

    def _shown(self, line: bytes) -> str:
        return shorten(printable(self._redact(clean_text(line.decode(errors="replace")))), _LINE_CHARS)
