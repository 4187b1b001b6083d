"""What servers print beside their messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.text import printable
from pytest_tooleval.providers.account import Redactor
from pytest_tooleval.tools.mcp.said import Said


def test_the_last_lines_of_stderr_are_kept() -> None:
    said = Said()
    assert said.last_errors == []
    for number in range(1000):
        said.add_errors(f"line {number}\n\n".encode())
    said.add_errors(b"the end")
    assert said.last_errors == [*(f"line {number}" for number in range(993, 1000)), "the end"]


def test_little_is_kept_of_much() -> None:
    said = Said()
    for _ in range(100):
        said.add_errors(b"x" * 100_000)
    assert said.last_errors == ["x" * 299 + "…"]
    assert sum(map(len, said._errors)) <= 2 * 8192


def test_lines_are_shown_without_secrets_and_control_characters() -> None:
    said = Said(Redactor(["hunter2"]))
    said.add_errors(b"\x1b[31mpassword hunter2\x1b[0m \xff\n")
    said.add_stray(b"hunter2\x07\ttab")
    assert said.last_errors == ["\\x1b[31mpassword [redacted]\\x1b[0m \ufffd"]
    assert (
        said.stray == "1 line on stdout that are no JSON-RPC and belong on stderr, first: [redacted]\\x07\\x09tab"
    )


def test_the_first_stray_lines_are_kept_and_the_others_counted() -> None:
    said = Said()
    assert said.stray == ""
    for number in range(5000):
        said.add_stray(f"line {number} ".encode() * 1000)
    assert said.stray.startswith(
        "5000 lines on stdout that are no JSON-RPC and belong on stderr, first: line 0 line 0 "
    )
    assert len(said.stray) < 1000


@given(st.lists(st.binary(max_size=3000)))
def test_whatever_comes_is_shown_as_text(pieces: list[bytes]) -> None:
    said = Said()
    for piece in pieces:
        said.add_errors(piece)
        said.add_stray(piece)
    shown = "".join([*said.last_errors, said.stray])
    assert printable(shown) == shown
