"""Discovery on the reference broker, in process and through `tooleval broker` as a child process.

The discovery metrics have to be the same; what differs is the time of a query.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from distractors import OWN_CORPUS

from pytest_tooleval.broker.broker import reference_broker
from pytest_tooleval.broker.mapping import OWN_MAPPING
from pytest_tooleval.broker.surface import FIND, answer_text
from pytest_tooleval.cases.gold import DiscoveryRow
from pytest_tooleval.cases.suite import load_suite
from pytest_tooleval.families.gold import CorpusTargets, GoldSettings
from pytest_tooleval.families.remote_session import parse_broker
from pytest_tooleval.families.target import Target
from pytest_tooleval.measures.gold import discovery_metrics
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.token_estimates import CharacterEstimator

LIMIT = OWN_MAPPING.find.most_results


def measured(target: Target, rows: Sequence[DiscoveryRow]) -> list[Measurement]:
    """Run rows on a target."""
    outcomes = ((row, target.measure(row, 1)) for row in rows)
    return [
        Measurement("discovery", "", "", "", 0, row.id, target.name, tags=row.tags, record=outcome.record)
        for row, outcome in outcomes
    ]


def p50(ask: Callable[[str], object], rows: Sequence[DiscoveryRow], rounds: int) -> float:
    """Return the median milliseconds of a query."""
    seconds = []
    for row in [*rows] * rounds:
        started = time.perf_counter()
        ask(row.intent)
        seconds.append(time.perf_counter() - started)
    return median(seconds) * 1e3


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?", default=OWN_CORPUS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = options.corpus.resolve()
    suite = load_suite(folder, lambda path: path, ())
    rows = [found.case for found in suite.cases() if isinstance(found.case, DiscoveryRow)]
    catalog = next(corpus.catalog for corpus in suite.corpora if corpus.catalog is not None)
    broker = parse_broker(f"tooleval broker --catalog '{folder / 'catalog'}'", None, folder, {}, 60.0)
    targets = CorpusTargets(catalog, GoldSettings({"lexical": None}, None, CharacterEstimator(), broker=broker))
    try:
        remote, direct = targets.of("discovery")
        for name, target in (("in process", direct), ("over MCP", remote)):
            metrics = discovery_metrics(measured(target, rows))
            print(
                f"{name:11}", "  ".join(f"{key} {value:.4f}" for key, value in metrics.items() if value is not None)
            )
        inner = reference_broker(catalog)
        asked = broker.over(catalog)
        in_process = p50(
            lambda query: answer_text(inner, FIND, {"query": query, "limit": LIMIT}), rows, options.rounds
        )
        over_mcp = p50(lambda query: asked.find(query, LIMIT), rows, options.rounds)
    finally:
        targets.close()
    print(f"p50 of a find: {in_process:.2f} ms in process, {over_mcp:.2f} ms over MCP")
    print(f"p50 added per query: {over_mcp - in_process:.2f} ms")


if __name__ == "__main__":
    main()
