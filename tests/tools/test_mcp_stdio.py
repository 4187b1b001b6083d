"""Lines of a program as messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.tools.mcp.stdio import LineSplitter, LongLineError, message_of

mcp_types = pytest.importorskip("mcp_types")


def split(pieces: Sequence[bytes], most: int = 100) -> list[bytes]:
    splitter = LineSplitter(most)
    return [line for piece in pieces for line in splitter.feed(piece)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], []),
        ([b"a\n"], [b"a"]),
        ([b"a", b"b", b"\n"], [b"ab"]),
        ([b"a\nb\n\nc"], [b"a", b"b", b""]),
        ([b"\n\n"], [b"", b""]),
        ([b"a\r\n"], [b"a\r"]),
    ],
)
def test_lines_are_complete_with_their_end(pieces: list[bytes], expected: list[bytes]) -> None:
    assert split(pieces) == expected


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 30))
def test_it_does_not_matter_how_lines_are_cut(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    assert split([data[start : start + size] for start in range(0, len(data), size)]) == lines


@pytest.mark.parametrize("pieces", [[b"x" * 11], [b"x" * 6, b"x" * 5], [b"x" * 11 + b"\n"]])
def test_a_line_has_a_bound(pieces: list[bytes]) -> None:
    assert split([b"x" * 10 + b"\n" + b"y" * 10], 10) == [b"x" * 10]
    with pytest.raises(LongLineError):
        split(pieces, 10)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}\r', "JSONRPCResponse"),
        (b'{"jsonrpc": "2.0", "id": "a", "error": {"code": 1, "message": "m"}}', "JSONRPCError"),
        (b'{"jsonrpc": "2.0", "method": "m"}', "JSONRPCNotification"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}', "JSONRPCRequest"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {"a": "\\ud800"}}', "JSONRPCResponse"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {"a": "\xff"}}', "JSONRPCResponse"),
    ],
)
def test_what_is_a_message(line: bytes, kind: str) -> None:
    assert type(message_of(line)).__name__ == kind


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "result": null}',
        b'{"jsonrpc": "2.0", "id": 7, "result": [1]}',
        b'{"id": 7, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 7, "error": "failed"}',
    ],
)
def test_a_broken_answer_is_an_error_for_the_one_who_waits(line: bytes) -> None:
    message = message_of(line)
    assert (message.id, message.error.code) == (7, mcp_types.PARSE_ERROR)


@pytest.mark.parametrize(
    "line",
    [
        b"Server v1 started",
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"level": "info"}',
        b'{"id": true, "result": 1}',
        b'{"id": null, "result": 1}',
        b'{"id": 1.5, "error": 1}',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "result": {}}',
    ],
)
def test_what_is_no_message(line: bytes) -> None:
    assert message_of(line) is None


@given(st.binary())
def test_no_line_is_a_surprise(line: bytes) -> None:
    message_of(line)
