"""Tool search on labelled queries: top-1, top-3, MRR, wrong-server rate, and what the decisions are worth.

A folder holds either `catalog.jsonl` ({id, name, description}) and `queries.jsonl` ({query, acceptable}), or a
corpus: `catalog/*.json` and `discovery/*.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_tooleval.broker.search import Found, ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogTool, load_catalog, merge_catalogs
from pytest_tooleval.measures.ranking import hit_at, is_wrong_server, mean, reciprocal_rank

REFUSALS = ("no_good_match", "catalog_empty", "empty_query")


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled query."""

    query: str
    acceptable: tuple[str, ...]
    category: str = "all"


@dataclass(frozen=True, slots=True)
class Answered:
    """A row, what search found for it, and all refs in ranked order."""

    row: Row
    found: Found
    ranked: tuple[str, ...]


def load(folder: Path) -> tuple[Catalog, list[Row]]:
    """Load catalog and rows of either kind of folder."""
    if (folder / "catalog.jsonl").exists():
        tools = (
            CatalogTool(line["id"], "", line["name"], "", line["description"])
            for line in lines(folder / "catalog.jsonl")
        )
        rows = [Row(line["query"], tuple(line["acceptable"])) for line in lines(folder / "queries.jsonl")]
        return Catalog(tools=tuple(tools)), rows
    catalogs = [(path, load_catalog(path, path)) for path in sorted((folder / "catalog").glob("*.json"))]
    found = (line for path in sorted((folder / "discovery").glob("*.jsonl")) for line in lines(path))
    rows = [Row(line["intent"], tuple(line["acceptable"]), line["category"]) for line in found]
    return merge_catalogs(catalogs), rows


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def answer(search: ToolSearch, rows: Sequence[Row], size: int) -> list[Answered]:
    """Search for every row."""
    return [
        Answered(row, found, tuple(hit.ref for hit in found.hits))
        for row in rows
        for found in [search.decide(row.query, size)]
    ]


def print_ranking(name: str, answered: Sequence[Answered]) -> None:
    """Print the ranking measures over the rows that have an acceptable tool."""
    rows = [each for each in answered if each.row.acceptable]
    wrong = [each for each in rows if each.row.category == "wrong_server"]
    top1, top3 = (mean(hit_at(each.ranked, each.row.acceptable, k) for each in rows) for k in (1, 3))
    mrr = mean(reciprocal_rank(each.ranked, each.row.acceptable) for each in rows)
    servers = mean(is_wrong_server(each.ranked, each.row.acceptable) for each in wrong)
    print(
        f"{name:14} n {len(rows):6}  top-1 {shown(top1)}  top-3 {shown(top3)}  MRR {shown(mrr)}"
        f"  wrong server {shown(servers)}"
    )


def print_decisions(answered: Sequence[Answered]) -> None:
    """Print how often each decision was made, and how often `use` and a refusal were right."""
    counts = Counter(each.found.decision for each in answered)
    print("decisions     ", ", ".join(f"{decision} {count}" for decision, count in counts.most_common()))
    used = [each for each in answered if each.found.decision == "use"]
    right = [each for each in answered if is_right(each)]
    none = [each for each in answered if not each.row.acceptable]
    print(f"  `use` is right                     {shown(mean(map(is_right, used)))}")
    print(f"  mean confidence where `use`        {shown(mean(each.found.confidence for each in used))}")
    print(f"  right at rank 1 and yet refused    {shown(refused(right))}")
    print(f"  refused where no tool fits         {shown(refused(none))}")


def print_held_out(catalog: Catalog, rows: Sequence[Row]) -> None:
    """Print how often search refuses a query once its acceptable tools have left the catalog."""
    by_gold: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        by_gold.setdefault(row.acceptable, []).append(row)
    answered: list[Answered] = []
    for gold, members in by_gold.items():
        rest = tuple(tool for tool in catalog.tools if tool.ref not in gold)
        answered += answer(ToolSearch(Catalog(tools=rest)), members, 2)
    print(f"  refused once the tool is held out  {shown(refused(answered))}")


def is_right(answered: Answered) -> bool:
    """Whether the first tool is acceptable."""
    return hit_at(answered.ranked, answered.row.acceptable, 1)


def refused(answered: Sequence[Answered]) -> float | None:
    """Return the share of refusals."""
    return mean(each.found.decision in REFUSALS for each in answered)


def shown(value: float | None) -> str:
    """Return a share as text."""
    return "   -  " if value is None else f"{value:.4f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take each N-th query")
    parser.add_argument("--held-out", action="store_true", help="search without the acceptable tools, too")
    options = parser.parse_args()
    catalog, rows = load(options.folder)
    rows = rows[:: options.every]
    answered = answer(ToolSearch(catalog), rows, len(catalog.tools))
    print(f"{len(catalog.tools)} tools, {len(rows)} queries, lexical only")
    for category in sorted({row.category for row in rows} - {"all"}):
        print_ranking(category, [each for each in answered if each.row.category == category])
    print_ranking("overall", answered)
    print_decisions(answered)
    if options.held_out:
        print_held_out(catalog, [row for row in rows if row.acceptable])


if __name__ == "__main__":
    main()
