"""The workloads of a corpus that brings none: made from its catalog, the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.cases.gold import CacheWorkload, PerformanceWorkload, Request, TokensWorkload
from pytest_tooleval.cases.gold_files import DEFAULT_ITERATIONS


def default_workloads(
    catalog: Catalog, path: Path
) -> Iterator[TokensWorkload | CacheWorkload | PerformanceWorkload]:
    """Yield a workload for each family, from the first read-only and the first writing tool by their refs.

    A catalog without a read-only tool takes its first tool; an empty one gives no workload.
    """
    tools = sorted(catalog.tools, key=lambda tool: tool.ref)
    if not tools:
        return
    reading = next((tool for tool in tools if tool.read_only), tools[0])
    writing = next((tool for tool in tools if not tool.read_only), None)
    source = Source(path)
    query = query_for(reading)
    yield TokensWorkload(query, reading.ref, None, source)
    yield CacheWorkload(tuple(_requests(reading, writing)), source)
    yield PerformanceWorkload((query,), DEFAULT_ITERATIONS, source)


def query_for(tool: CatalogTool) -> str:
    """Return what one would search for to find a tool: its description, or its name."""
    return tool.description.strip() or tool.name


def _requests(reading: CatalogTool, writing: CatalogTool | None) -> Iterator[Request]:
    for _ in range(2):
        yield Request("find", query=query_for(reading))
    for _ in range(2):
        yield Request("describe", tool_ref=reading.ref)
    for tool in (reading, reading, writing, writing):
        if tool is not None:
            yield Request("call", tool_ref=tool.ref)
