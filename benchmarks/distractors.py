"""Tool search among ever more tools that nobody asked for: top-1 and MRR with 0 to 1,000 distractors.

Distractors are tools of real MCP servers, from a folder of `tools/list` results. Servers that the corpus has by the
same name are left out. They are drawn once, so that each larger catalog holds the smaller ones. A distractor may
well do what a row asks for: then the row is lost all the same, so the curve is a lower bound.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from search_quality import Row, load

from pytest_tooleval.broker.embedders.embedder import Embedder
from pytest_tooleval.broker.embedders.registry import EmbedderRegistry, register_builtin_embedders
from pytest_tooleval.broker.embedders.vectors import Vectors
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.broker.semantic import EmbeddingLeg
from pytest_tooleval.cases.catalog import Catalog, CatalogTool, load_catalogs
from pytest_tooleval.measures.ranking import hit_at, mean, reciprocal_rank

OWN_CORPUS = Path(__file__).parents[1] / "evals"
COUNTS = (0, 100, 400, 1000)
SEED = 7


class Remembering:
    """An embedder that embeds a query once, however many catalogs it is asked of."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts."""
        if len(texts) != 1:
            return self._embedder.embed(texts)
        if texts[0] not in self._known:
            self._known[texts[0]] = self._embedder.embed(texts)
        return self._known[texts[0]]

    def close(self) -> None:
        """Release the embedder."""
        self._embedder.close()


def drawn(catalog: Catalog, pool: Catalog) -> list[CatalogTool]:
    """Return the distractors for a catalog, in the order in which they are added."""
    servers = {server.id for server in catalog.servers}
    tools = [tool for tool in pool.tools if tool.server_id not in servers]
    random.Random(SEED).shuffle(tools)
    return tools


def measured(search: ToolSearch, rows: Sequence[Row], depth: int, own: Collection[str]) -> str:
    """Return top-1, MRR, and the share of rows whose first tool is a distractor."""
    ranked = [([hit.ref for hit in search.rank(row.query, depth)], row.acceptable) for row in rows]
    top1 = mean(hit_at(refs, fits, 1) for refs, fits in ranked)
    mrr = mean(reciprocal_rank(*each) for each in ranked)
    lured = mean(bool(refs) and refs[0] not in own for refs, _ in ranked)
    return f"top-1 {top1:.3f} MRR {mrr:.3f} lured {lured:.3f}"


def lines(catalog: Catalog, rows: Sequence[Row], pool: Catalog, embedder: Embedder | None) -> Iterator[str]:
    """Yield a line for each number of distractors."""
    distractors = drawn(catalog, pool)
    for count in COUNTS:
        tools = (*catalog.tools, *distractors[:count])
        grown = Catalog(tools=tools)
        searches = {"lexical": ToolSearch(grown)}
        if embedder is not None:
            searches["hybrid"] = ToolSearch(grown, EmbeddingLeg(grown, embedder))
        own = catalog.by_ref
        figures = [f"{name} {measured(search, rows, len(tools), own)}" for name, search in searches.items()]
        yield f"  {count:5} distractors, {len(tools):5} tools: {'   '.join(figures)}"


def chosen(rows: Sequence[Row], most: int, *, spread: bool) -> Sequence[Row]:
    """Return the first rows, or as many evenly spread ones."""
    return rows[:: max(1, len(rows) // most)][:most] if spread else rows[:most]


def main() -> None:
    """Print a curve for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalogs", type=Path, help="folder of tools/list results (*.json)")
    parser.add_argument("corpora", type=Path, nargs="*", help="further gold sets, beside this project's own")
    parser.add_argument("--queries", type=int, default=500, help="most rows of each (default: 500)")
    parser.add_argument("--spread", action="store_true", help="take the rows from all over, not the first ones")
    parser.add_argument("--lexical-only", action="store_true", help="leave the embedder out")
    options = parser.parse_args()
    pool = load_catalogs([options.catalogs])
    embedder = None if options.lexical_only else Remembering(opened_embedder())
    for folder in (OWN_CORPUS, *options.corpora):
        catalog, rows = load(folder)
        rows = chosen([row for row in rows if row.acceptable], options.queries, spread=options.spread)
        tools = len({row.acceptable for row in rows})
        print(f"{folder.name}: {len(rows)} rows with a tool that fits, of {tools} tools or sets of them")
        for line in lines(catalog, rows, pool, embedder):
            print(line, flush=True)


def opened_embedder() -> Embedder:
    """Return the default embedder."""
    registry = EmbedderRegistry()
    register_builtin_embedders(registry)
    return registry.open("minilm")


if __name__ == "__main__":
    main()
