from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values
from small_broker import CATALOG, broker_over

from pytest_tooleval.broker.mapping import (
    OWN_MAPPING,
    BrokerMapping,
    CallMapping,
    DescribeMapping,
    ErrorMapping,
    FindMapping,
    at,
    found_refs,
    is_there,
    load_mapping,
)
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import CaseError, ConfigError

WHOLE = {
    "$schema": "x",
    "_note": "whatever",
    "refs": "{server}__{name}",
    "find": {
        "tool": "search_tools",
        "query": "q",
        "limit": "n",
        "mostResults": 10,
        "constants": {"mode": "fast"},
        "results": "/tools",
        "ref": "/name",
        "score": "/score",
        "decision": "/verdict",
        "decisions": {"none": "no_good_match"},
        "confidence": "/sure",
        "nextAction": "/next",
    },
    "describe": {"tool": "show", "ref": "name", "nextAction": "/next"},
    "call": {"tool": "run", "ref": "name", "arguments": "input", "constants": {"dry": True}},
    "error": {
        "type": "/error/code",
        "types": {"NO_TOOL": "TOOL_NOT_FOUND"},
        "message": "/error/text",
        "retryable": "/error/again",
        "instruction": "/error/hint",
    },
}


def load(folder: Path, value: Any) -> BrokerMapping:
    path = folder / "mapping.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return load_mapping(path, Path("mapping.json"))


def test_a_whole_mapping(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE) == BrokerMapping(
        find=FindMapping(
            tool="search_tools",
            query="q",
            limit="n",
            most_results=10,
            constants={"mode": "fast"},
            results=("/tools",),
            ref="/name",
            score="/score",
            decision="/verdict",
            decisions={"none": "no_good_match"},
            confidence="/sure",
            next_action="/next",
        ),
        describe=DescribeMapping("show", "name", next_action="/next"),
        call=CallMapping("run", "name", "input", constants={"dry": True}),
        error=ErrorMapping(
            "/error/code", {"NO_TOOL": "TOOL_NOT_FOUND"}, "/error/text", "/error/again", "/error/hint"
        ),
        refs="{server}__{name}",
    )


def test_the_smallest_mapping(tmp_path: Path) -> None:
    mapping = load(tmp_path, {"find": {"tool": "search_tools", "query": "q"}})
    assert (mapping.describe, mapping.call, mapping.error) == (None, None, ErrorMapping())
    assert mapping.find.request("dogs", 25) == {"q": "dogs"}


def test_requests() -> None:
    find = FindMapping("t", "q", limit="n", most_results=10, constants={"mode": "fast", "q": "x"})
    assert find.request("dogs", 1000) == {"q": "dogs", "n": 10, "mode": "fast"}
    assert find.request("dogs", 3)["n"] == 3
    assert DescribeMapping("t", "name", {"v": 1}).request("a.b") == {"name": "a.b", "v": 1}
    assert CallMapping("t", "name", "input").request("a.b", {"x": 1}) == {"name": "a.b", "input": {"x": 1}}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([], "mapping.json:1: found a list ([]); expected an object"),
        ({}, "mapping.json:1: the key 'find' is missing"),
        ({"find": {"tool": "t"}}, "at /find: the key 'query' is missing"),
        ({"find": {"tool": "t", "query": "q", "result": ""}}, "unknown key 'result' (did you mean 'results'?)"),
        (
            {"find": {"tool": "t", "query": "q", "ref": "name"}},
            'at /find/ref: found "name"; expected a JSON pointer',
        ),
        ({"find": {"tool": "t", "query": "q", "results": []}}, "at /find/results: "),
        ({"find": {"tool": " ", "query": "q"}}, "expected a name that is not blank"),
        (
            {"find": {"tool": "t", "query": "q", "decisions": {"a": "no_match"}}},
            "(did you mean 'no_good_match'?)",
        ),
        (
            {"find": {"tool": "t", "query": "q"}, "error": {"types": {"A": "NOT_FOUND"}}},
            "(did you mean 'TOOL_NOT_FOUND'?)",
        ),
        ({"find": {"tool": "t", "query": "q"}, "refs": "{server}"}, "at /refs: "),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, value: Any, fault: str) -> None:
    with pytest.raises(CaseError) as caught:
        load(tmp_path, value)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", {"a": [{"b/c": 1}], "~": None}),
        ("/a", [{"b/c": 1}]),
        ("/a/0/b~1c", 1),
        ("/~0", None),
        ("/a/1", None),
        ("/a/-1", None),
        ("/a/x", None),
        ("/a/0/b~1c/d", None),
        (None, None),
    ],
)
def test_places_in_an_answer(pointer: str | None, found: Any) -> None:
    assert at({"a": [{"b/c": 1}], "~": None}, pointer) == found


@pytest.mark.parametrize(
    ("results", "ref", "answer", "refs"),
    [
        (("",), "", ["a", "b"], ["a", "b"]),
        (("/tools",), "/name", {"tools": [{"name": "a"}, {}, {"name": "b"}]}, ["a", None, "b"]),
        (("/best", "/rest"), "/name", {"best": {"name": "a"}, "rest": [{"name": "b"}]}, ["a", "b"]),
        (("/best", "/rest"), "/name", {"best": None, "rest": []}, []),
        (("/tools",), "/name", {}, []),
    ],
)
def test_what_was_found(results: tuple[str, ...], ref: str, answer: Any, refs: list[Any]) -> None:
    found = list(found_refs(FindMapping("t", "q", results=results, ref=ref), answer))
    assert found == [(one, None) for one in refs]


def test_scores() -> None:
    mapping = FindMapping("t", "q", ref="/id", score="/score")
    assert list(found_refs(mapping, [{"id": "a", "score": 2}, {"id": "b"}])) == [("a", 2), ("b", None)]


@pytest.mark.parametrize(("ref", "answer"), [("", "no tools"), ("", {"a": 1}), ("/name", "no tools"), ("", 3)])
def test_an_answer_without_a_list(ref: str, answer: Any) -> None:
    with pytest.raises(ValueError, match=r"at the top of the answer stands .*; expected a list of tools"):
        list(found_refs(FindMapping("t", "q", ref=ref), answer))


@given(json_values(), st.sampled_from(["", "/a", "/a/0", "/0"]))
def test_no_answer_is_a_crash(answer: Any, pointer: str) -> None:
    at(answer, pointer)
    with contextlib.suppress(ValueError):
        list(found_refs(FindMapping("t", "q", results=(pointer,), ref=pointer), answer))


def test_names_of_tools() -> None:
    mapping = BrokerMapping(FindMapping("t", "q"), refs="mcp__{server}__{name}")
    assert mapping.names_of(CATALOG)["mcp__chat__post_message"] == "chat.post_message"
    assert len(mapping.names_of(CATALOG)) == len(CATALOG.tools)


def test_names_that_do_not_tell_tools_apart() -> None:
    tools = (CatalogTool("a.search", "a", "search"), CatalogTool("b.search", "b", "search"))
    mapping = BrokerMapping(FindMapping("t", "q"), refs="{name}")
    with pytest.raises(ConfigError, match=r"give a\.search and b\.search the same name, 'search'"):
        mapping.names_of(Catalog(tools=tools))


def test_the_reference_broker_answers_as_its_mapping_says() -> None:
    broker, find = broker_over(), OWN_MAPPING.find
    found = broker.find_tool("post a message to a channel")
    assert next(ref for ref, _ in found_refs(find, found)) == at(found, "/selectedToolRef") == "chat.post_message"
    assert (at(found, find.decision), at(found, find.confidence)) == ("use", found["confidence"])
    refused = broker.find_tool("translate a poem into Latin")
    assert (at(refused, find.decision), list(found_refs(find, refused))) == ("no_good_match", [])
    error = broker.call_tool("chat.nothing", {})
    places = OWN_MAPPING.error
    assert at(error, places.type) == "TOOL_NOT_FOUND"
    assert at(error, places.retryable) is False
    assert at(error, places.instruction) == error["error"]["agentInstruction"]
    for mapping, answer in ((find, found), (OWN_MAPPING.describe, broker.describe_tool("chat.post_message"))):
        assert at(answer, mapping.next_action)["instruction"]


def test_null_is_there_and_a_place_beyond_a_list_is_not() -> None:
    answer = {"a": None, "b": [1], "~/": {"": 0}}
    assert [is_there(answer, pointer) for pointer in ("", "/a", "/b/0", "/~0~1/")] == [True] * 4
    assert [is_there(answer, pointer) for pointer in ("/c", "/a/b", "/b/1", "/b/x")] == [False] * 4
