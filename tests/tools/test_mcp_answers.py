"""Results of MCP tools as text for a model."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.mcp.answers import answer_text


def text_of(*content: Any, most: int = 1000, **keys: Any) -> str:
    return answer_text({"content": list(content), **keys}, most)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": " as it is\n"}, " as it is\n"),
        ({"type": "text", "text": "\x1b[31mred"}, "\x1b[31mred"),
        ({"type": "text", "text": "half \ud800"}, "half \ufffd"),
        ({"type": "text", "text": 5}, "5"),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, "[image: image/png, 3 bytes]"),
        ({"type": "image", "data": "AAA=", "mimeType": "image/gif"}, "[image: image/gif, 2 bytes]"),
        ({"type": "image"}, "[image: of an unknown type, no data]"),
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "[audio: audio/wav, 0 bytes]"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}, "[resource: file:///a]\nhi"),
        (
            {"type": "resource", "resource": {"uri": "db://x", "blob": "AAAAAAAA", "mimeType": "image/webp"}},
            "[resource: db://x, image/webp, 6 bytes]",
        ),
        ({"type": "resource"}, "[resource: empty]"),
        ({"type": "resource_link", "uri": "x://y", "name": "n"}, "[resource link: n, x://y]"),
        (
            {"type": "resource_link", "uri": "x://y", "name": "n", "title": "Title", "description": "what\nit is"},
            "[resource link: Title, x://y: what it is]",
        ),
        ({"type": "video", "data": "AAAA"}, "[content of an unknown type: video]"),
        ({"text": "no type"}, "[content of an unknown type: null]"),
        ("no block", '[content of no known type: "no block"]'),
    ],
)
def test_every_kind_of_content(block: Any, expected: str) -> None:
    assert text_of(block) == expected


def test_parts_stand_one_below_the_other() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert text_of({"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}) == (
        "a\n[image: image/png, 3 bytes]\nb"
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"structuredContent": {"a": "ä"}}, '{"a": "ä"}'),
        ({"content": [], "structuredContent": [1]}, "[1]"),
        ({"content": [{"type": "text", "text": ""}], "structuredContent": {"a": 1}}, '\n{"a": 1}'),
        ({"content": [{"type": "text", "text": "said"}], "structuredContent": {"a": 1}}, "said"),
        (
            {"content": [{"type": "image", "data": "AAAA", "mimeType": "i"}], "structuredContent": {"a": 1}},
            '[image: i, 3 bytes]\n{"a": 1}',
        ),
        ({}, "[the tool returned no content]"),
        ({"content": None}, "[the tool returned no content]"),
        ({"content": "text"}, "[the tool returned no content]"),
        ({"content": [{"type": "text", "text": ""}]}, "[the tool returned no content]"),
    ],
)
def test_structured_content_and_none_at_all(result: dict[str, Any], expected: str) -> None:
    assert answer_text(result, 1000) == expected


@pytest.mark.parametrize("flag", [False, None, "true", 1])
def test_only_true_is_an_error(flag: Any) -> None:
    assert text_of({"type": "text", "text": "x"}, isError=flag) == "x"


def test_an_error_holds_the_same_text() -> None:
    with pytest.raises(ToolError, match=r"^no such table$"):
        text_of({"type": "text", "text": "no such table"}, isError=True)
    with pytest.raises(ToolError, match=r"^\[the tool returned no content\]$"):
        text_of(isError=True)


def test_a_request_for_input_is_an_error() -> None:
    with pytest.raises(ToolError, match="there is none to give"):
        answer_text({"resultType": "input_required", "inputRequests": {}}, 1000)


def test_content_that_is_nested_too_deeply() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert answer_text({"structuredContent": deep}, 1000) == "[content that is nested too deeply]"


def test_data_never_shows() -> None:
    data = base64.b64encode(bytes(range(256))).decode()
    blocks = [
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x:", "blob": data}},
        {"type": "hologram", "data": data},
    ]
    assert data[:20] not in text_of(*blocks)
    assert text_of(*blocks).count("256 bytes") == 3


def test_a_cut_says_so_and_keeps_the_bound() -> None:
    text = text_of({"type": "text", "text": "x" * 5000}, most=500)
    assert len(text) == 500
    assert text.endswith("x\n[cut: the beginning of 5000 characters; ask for a smaller part]")
    assert text_of({"type": "text", "text": "x" * 500}, most=500) == "x" * 500


@given(
    st.dictionaries(st.sampled_from(["content", "structuredContent", "isError", "resultType", "x"]), json_values())
)
def test_no_result_is_a_surprise(result: dict[str, Any]) -> None:
    try:
        text = answer_text(json.loads(json.dumps(result)), 300)
    except ToolError as error:
        text = str(error)
    assert 0 < len(text) <= 300


KINDS = st.sampled_from(["text", "image", "audio", "resource", "resource_link"])
ODD = st.none() | st.just("x") | st.integers() | st.lists(st.text(), max_size=1) | st.just({"text": 1, "blob": []})
KEYS = ("text", "data", "mimeType", "resource", "uri", "name", "description")


@given(st.lists(st.fixed_dictionaries({"type": KINDS}, optional=dict.fromkeys(KEYS, ODD)), max_size=3))
def test_no_content_is_a_surprise(content: list[Any]) -> None:
    assert 0 < len(answer_text({"content": content}, 300)) <= 300
