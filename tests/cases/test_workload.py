from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.cases.gold import CacheWorkload, PerformanceWorkload, Request, TokensWorkload
from pytest_tooleval.cases.workload import default_workloads, query_for

PATH = Path("evals/catalog/world.json")


def tool(name: str, *, read_only: bool, description: str = "") -> CatalogTool:
    return CatalogTool(f"s.{name}", "s", name, description=description, read_only=read_only)


READ_A = tool("b_read", read_only=True, description=" Read a thing. ")
READ_B = tool("c_read", read_only=True)
WRITE_A = tool("a_write", read_only=False, description="Write a thing.")
WRITE_B = tool("d_write", read_only=False)


def finds(query: str) -> tuple[Request, ...]:
    return (Request("find", query=query),) * 2


def describes(ref: str) -> tuple[Request, ...]:
    return (Request("describe", tool_ref=ref),) * 2


def calls(ref: str) -> tuple[Request, ...]:
    return (Request("call", tool_ref=ref),) * 2


@pytest.mark.parametrize(
    ("tools", "query", "ref", "requests"),
    [
        (
            [WRITE_B, READ_B, READ_A, WRITE_A],
            "Read a thing.",
            "s.b_read",
            (*finds("Read a thing."), *describes("s.b_read"), *calls("s.b_read"), *calls("s.a_write")),
        ),
        (
            [READ_B],
            "c_read",
            "s.c_read",
            (*finds("c_read"), *describes("s.c_read"), *calls("s.c_read")),
        ),
        (
            [WRITE_B, WRITE_A],
            "Write a thing.",
            "s.a_write",
            (*finds("Write a thing."), *describes("s.a_write"), *calls("s.a_write"), *calls("s.a_write")),
        ),
    ],
)
def test_workloads_from_the_first_tools_by_their_refs(tools, query, ref, requests):
    source = Source(PATH)
    for order in (tools, tools[::-1]):
        assert list(default_workloads(Catalog((CatalogServer("s"),), tuple(order)), PATH)) == [
            TokensWorkload(query, ref, None, source),
            CacheWorkload(requests, source),
            PerformanceWorkload((query,), 100, source),
        ]


def test_a_catalog_without_tools_gives_no_workload():
    assert list(default_workloads(Catalog((CatalogServer("s"),)), PATH)) == []


@pytest.mark.parametrize(("description", "query"), [("Do it. ", "Do it."), ("", "x"), (" \n", "x")])
def test_what_one_would_search_for(description, query):
    assert query_for(tool("x", read_only=True, description=description)) == query
