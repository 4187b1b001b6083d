"""Tool search over growing catalogs: time to build, time a query, memory.

The catalogs are made of the tools in a folder of `tools/list` results, repeated under further server names: so each
word is in as large a share of the tools as in the folder, which is the worst case for a search. Queries are the
first words of tool descriptions.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogTool, load_catalog, merge_catalogs

SIZES = (199, 1224, 10_000, 50_000)
QUERY_WORDS = 8
LIMIT = 10


def grown(tools: Sequence[CatalogTool], size: int) -> Catalog:
    """Return a catalog of `size` tools; from the second round on each server's name has a number."""
    rounds = (
        replace(tool, ref=f"{tool.server_id}-{number}.{tool.name}", server_id=f"{tool.server_id}-{number}")
        for number, tool in zip(
            (index // len(tools) for index in range(size)), islice(cycle(tools), size), strict=True
        )
    )
    return Catalog(tools=tuple(rounds))


def queries(tools: Sequence[CatalogTool], count: int) -> list[str]:
    """Return the first words of some descriptions."""
    described = [tool.description for tool in tools if len(tool.description.split()) >= QUERY_WORDS]
    step = max(1, len(described) // count)
    return [" ".join(text.split()[:QUERY_WORDS]) for text in described[::step]][:count]


def measure(folder: Path, size: int, count: int) -> str:
    """Return one line of figures."""
    tools = merge_catalogs([(path, load_catalog(path, path)) for path in sorted(folder.glob("*.json"))]).tools
    catalog, asked = grown(tools, size), queries(tools, count)
    before = peak_megabytes()
    start = time.perf_counter()
    search = ToolSearch(catalog)
    built = time.perf_counter() - start
    after = peak_megabytes()
    search.decide(asked[0], LIMIT)
    times = [timed(search, query) for query in asked]
    p95 = quantiles(times, n=20)[-1]
    return (
        f"{size:>7,} tools: build {built:6.2f} s, "
        f"query p50 {median(times) * 1e3:6.3f} ms, p95 {p95 * 1e3:6.3f} ms, "
        f"peak memory {after:5.0f} MB (of it for the index {after - before:4.0f})"
    )


def timed(search: ToolSearch, query: str) -> float:
    """Return the seconds that one query took."""
    start = time.perf_counter()
    search.decide(query, LIMIT)
    return time.perf_counter() - start


def peak_megabytes() -> float:
    """Return the most memory that this process has had, in MB (Linux counts in kB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print a line for each size, each measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of tools/list results (*.json)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    for size in options.sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(measure, (options.folder, size, options.queries)), flush=True)


if __name__ == "__main__":
    main()
