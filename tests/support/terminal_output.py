"""What may not be in the output of a run, whatever models, servers and files say."""

from __future__ import annotations

import pytest


def assert_clean(result: pytest.RunResult, most: int = 20_000, longest: int = 1000) -> None:
    """Check that an output holds no control characters, no inner error and no traceback of ours.

    Args:
        result: the run.
        most: most characters of it all.
        longest: most characters of a line.

    """
    text = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert "/pytest_tooleval/" not in text
    assert "site-packages" not in text
    assert {character for character in text if is_control(character)} == set()
    assert len(text) <= most
    assert max(map(len, text.splitlines())) <= longest


def is_control(character: str) -> bool:
    """Whether a character does something to a terminal other than to show it or to end a line."""
    code = ord(character)
    return (code < 0x20 and character != "\n") or 0x7F <= code < 0xA0 or character in "\u202e\u2066\u061c"
