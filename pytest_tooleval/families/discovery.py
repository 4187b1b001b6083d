"""Discovery: a search is asked for what a row wants, and its ranking is compared with the acceptable tools."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Any

from pytest_tooleval.broker.broker import DEFAULT_LIMIT
from pytest_tooleval.broker.engine import Engine
from pytest_tooleval.broker.ranking_reader import EngineAnswer
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.gold import DiscoveryRow
from pytest_tooleval.measures.gold import REFUSALS
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.measures.ranking import expected_rank, first_rank, is_wrong_server, ties

DEPTH = 1000
SHOWN = 5
LEXICAL_SHORTCUT = "lexical search alone finds it at rank 1, so the row does not measure meaning"


@dataclass(frozen=True, slots=True)
class DiscoveryTarget:
    """A search over one corpus's catalog.

    Attributes:
        name: how it is called.
        catalog: the tools.
        engine: what is asked.
        lexical: the reference lexical search over the same catalog, which `semantic` rows are checked against.

    """

    name: str
    catalog: Catalog
    engine: Engine
    lexical: ToolSearch

    def cannot_run(self, _: DiscoveryRow) -> None:
        """Every row can be run."""

    def measure(self, row: DiscoveryRow, _trial: int = 1) -> CaseOutcome:
        """Ask for one row's intent.

        Raises:
            InfrastructureError: the engine failed.

        """
        answer = self.engine.search(row.intent, DEPTH)
        record = _record(row, answer)
        if row.category == "wrong_server":
            record["wrongServer"] = is_wrong_server(answer.refs, row.acceptable, self._split)
        if row.category == "semantic" and self._is_shortcut(row):
            record["hygiene"] = LEXICAL_SHORTCUT
        return CaseOutcome(record["pass"], record)

    def close(self) -> None:
        """Do nothing: a search holds no connection."""

    def _split(self, ref: str) -> tuple[str, str]:
        """Return server and name of a tool; either may hold dots, so the catalog is asked."""
        tool = self.catalog.by_ref[ref]
        return tool.server_id, tool.name

    def _is_shortcut(self, row: DiscoveryRow) -> bool:
        best = self.lexical.rank(row.intent, 1)
        return bool(best) and best[0].ref in row.acceptable


def _record(row: DiscoveryRow, answer: EngineAnswer) -> dict[str, Any]:
    rank = first_rank(answer.refs, row.acceptable)
    record: dict[str, Any] = {
        "intent": row.intent,
        "category": row.category,
        "acceptable": list(row.acceptable),
        "pass": _hits(row, answer, rank),
        "rank": rank,
        "expectedRank": _expected_rank(row, answer, rank),
        "decision": answer.decision,
        "confidence": answer.confidence,
        "wrongServer": None,
        "top": list(answer.refs[:SHOWN]),
    }
    if answer.notes:
        record["notes"] = list(answer.notes)
    return record


def _hits(row: DiscoveryRow, answer: EngineAnswer, rank: int | None) -> bool:
    if row.category == "no_match":
        return answer.decision in REFUSALS
    is_open = row.category == "ambiguous" and answer.decision == "ambiguous"
    return rank is not None and rank <= (max(row.k, DEFAULT_LIMIT) if is_open else row.k)


def _expected_rank(row: DiscoveryRow, answer: EngineAnswer, rank: int | None) -> float | None:
    """Return the rank that is to be expected where equal scores stand in random order; None without scores."""
    if answer.scores is None or rank is None:
        return None
    around = answer.scores[max(0, rank - 2) : rank + 1]
    if not any(starmap(ties, pairwise(around))):
        return float(rank)
    return expected_rank(list(zip(answer.refs, answer.scores, strict=True)), row.acceptable)
