from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean

import pytest

from pytest_tooleval.broker.engine import ReferenceEngine
from pytest_tooleval.broker.ranking_reader import EngineAnswer
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.cases.gold import DiscoveryRow
from pytest_tooleval.errors import InfrastructureError
from pytest_tooleval.families.discovery import LEXICAL_SHORTCUT, DiscoveryTarget
from pytest_tooleval.measures.ranking import first_rank


def catalog(*named: tuple[str, str, str]) -> Catalog:
    servers = tuple(CatalogServer(server) for server in dict.fromkeys(server for server, _, _ in named))
    return Catalog(servers, tuple(CatalogTool(f"{s}.{n}", s, n, description=text) for s, n, text in named))


CATALOG = catalog(
    ("chat", "post_message", "Post a message to a channel"),
    ("chat", "search_messages", "Search messages"),
    ("wiki", "search_pages", "Search wiki pages by text"),
    ("wiki", "delete_page", "Delete a page"),
    ("jira", "search_issues", "Search issues of a project"),
    ("jira", "create_issue", "Create an issue"),
    ("mail", "send_email", "Send an email to a recipient"),
)
REFS = tuple(tool.ref for tool in CATALOG.tools)


@dataclass
class Scripted:
    """An engine that gives one answer."""

    answer: EngineAnswer
    asked: tuple[str, int] = ("", 0)

    def search(self, query: str, limit: int) -> EngineAnswer:
        self.asked = query, limit
        return self.answer


def row(category: str = "lexical", acceptable: tuple[str, ...] = ("wiki.search_pages",), **keys) -> DiscoveryRow:
    fields = {"id": "r", "intent": "search the wiki", "rationale": "why", "source": Source(Path("f")), **keys}
    return DiscoveryRow(category=category, acceptable=acceptable, **fields)


def measure(found: DiscoveryRow, answer: EngineAnswer, tools: Catalog = CATALOG):
    return DiscoveryTarget("mine", tools, Scripted(answer), ToolSearch(tools)).measure(found)


def test_the_record_of_a_row():
    answer = EngineAnswer(REFS, tuple(range(7, 0, -1)), "use", 0.8, ("a note",))
    outcome = measure(row(), answer)

    assert outcome.passed is False
    assert outcome.record == {
        "intent": "search the wiki",
        "category": "lexical",
        "acceptable": ["wiki.search_pages"],
        "pass": False,
        "rank": 3,
        "expectedRank": 3.0,
        "decision": "use",
        "confidence": 0.8,
        "wrongServer": None,
        "top": list(REFS[:5]),
        "notes": ["a note"],
    }
    assert "notes" not in measure(row(), EngineAnswer(REFS, None, "use")).record


def test_a_row_is_asked_for_by_its_intent():
    engine = Scripted(EngineAnswer((), None, "no_good_match"))
    DiscoveryTarget("mine", CATALOG, engine, ToolSearch(CATALOG)).measure(row(intent="  Find it! "))
    assert engine.asked == ("  Find it! ", 1000)


@pytest.mark.parametrize(
    ("category", "acceptable", "k", "refs", "decision", "passed"),
    [
        ("lexical", ("wiki.search_pages",), 1, ["wiki.search_pages"], "use", True),
        ("lexical", ("wiki.search_pages",), 1, ["jira.search_issues", "wiki.search_pages"], "use", False),
        ("lexical", ("wiki.search_pages",), 2, ["jira.search_issues", "wiki.search_pages"], "use", True),
        ("lexical", ("wiki.search_pages",), 2, ["jira.search_issues", "wiki.search_pages"], "ambiguous", True),
        ("lexical", ("wiki.search_pages",), 1, ["jira.search_issues", "wiki.search_pages"], "ambiguous", False),
        ("semantic", ("mail.send_email", "wiki.search_pages"), 1, ["wiki.search_pages"], "use", True),
        ("wrong_server", ("wiki.search_pages",), 1, [], "no_good_match", False),
        ("lexical", ("wiki.search_pages",), 1, ["wiki.search_pages"], "no_good_match", True),
        ("no_match", (), 1, [], "no_good_match", True),
        ("no_match", (), 1, ["wiki.search_pages"], "no_good_match", True),
        ("no_match", (), 1, [], "catalog_empty", True),
        ("no_match", (), 1, [], "empty_query", False),
        ("no_match", (), 1, ["wiki.search_pages"], "use", False),
        ("no_match", (), 1, ["wiki.search_pages"], "ambiguous", False),
        ("ambiguous", ("wiki.search_pages",), 1, ["wiki.search_pages"], "use", True),
        ("ambiguous", ("wiki.search_pages",), 1, ["jira.search_issues", "wiki.search_pages"], "use", False),
        ("ambiguous", ("wiki.search_pages",), 1, ["jira.search_issues", "wiki.search_pages"], "ambiguous", True),
        ("ambiguous", ("mail.send_email",), 1, [*REFS[:4], "mail.send_email"], "ambiguous", True),
        ("ambiguous", ("mail.send_email",), 1, REFS, "ambiguous", False),
        ("ambiguous", ("mail.send_email",), 7, REFS, "ambiguous", True),
        ("ambiguous", ("mail.send_email",), 1, ["wiki.search_pages"], "ambiguous", False),
    ],
)
def test_when_a_row_is_hit(category, acceptable, k, refs, decision, passed):
    found = measure(row(category, acceptable, k=k), EngineAnswer(tuple(refs), None, decision))
    assert (found.passed, found.record["pass"]) == (passed, passed)


@pytest.mark.parametrize(
    ("refs", "scores", "acceptable", "rank", "expected"),
    [
        (("chat.post_message", "wiki.search_pages"), None, ("wiki.search_pages",), 2, None),
        (("chat.post_message", "wiki.search_pages"), (2.0, 1.0), ("wiki.search_pages",), 2, 2.0),
        (REFS[:5], (0.5,) * 5, ("wiki.search_pages",), 3, 3.0),
        (REFS[:5], (0.5,) * 5, (REFS[0],), 1, 3.0),
        (REFS[:5], (0.5,) * 5, (REFS[4],), 5, 3.0),
        (REFS[:4], (9.0, 0.5, 0.5, 0.5), (REFS[1], REFS[3]), 2, 1 + 4 / 3),
        (REFS[:3], (0.1 + 0.2, 0.3, 0.1), (REFS[1],), 2, 1.5),
        (REFS[:3], (3e6, 2e6, 1e6), (REFS[1],), 2, 2.0),
        (REFS[:3], (3e-7, 2e-7, 1e-7), (REFS[1],), 2, 2.0),
        (("chat.post_message",), (1.0,), ("wiki.search_pages",), None, None),
        ((), (), ("wiki.search_pages",), None, None),
    ],
)
def test_the_rank_and_the_rank_that_is_expected_under_ties(refs, scores, acceptable, rank, expected):
    record = measure(row(acceptable=acceptable), EngineAnswer(refs, scores, "use")).record
    assert record["rank"] == rank
    assert record["expectedRank"] == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("acceptable", [(REFS[1],), (REFS[1], REFS[4]), (REFS[2], REFS[3], REFS[5])])
def test_the_expected_rank_is_the_mean_over_all_orders_of_what_is_tied(acceptable):
    tied = REFS[1:6]
    ranks = [first_rank([REFS[0], *order], acceptable) for order in permutations(tied)]
    record = measure(row(acceptable=acceptable), EngineAnswer(REFS[:6], (2.0, *[1.0] * 5), "use")).record
    assert record["expectedRank"] == pytest.approx(fmean(rank for rank in ranks if rank), abs=1e-9)


@pytest.mark.parametrize(
    ("category", "refs", "wrong"),
    [
        ("wrong_server", ["jira.search_issues", "wiki.search_pages"], True),
        ("wrong_server", ["chat.search_messages"], True),
        ("wrong_server", ["jira.create_issue"], False),
        ("wrong_server", ["wiki.delete_page"], False),
        ("wrong_server", ["wiki.search_pages", "jira.search_issues"], False),
        ("wrong_server", [], False),
        ("lexical", ["jira.search_issues"], None),
    ],
)
def test_the_right_operation_on_the_wrong_server(category, refs, wrong):
    assert measure(row(category), EngineAnswer(tuple(refs), None, "use")).record["wrongServer"] is wrong


def test_servers_and_names_with_dots_are_told_apart_by_the_catalog():
    dotted = catalog(("io.a", "search_x", ""), ("io.b", "search_y", ""))
    found = row("wrong_server", ("io.b.search_y",))
    assert measure(found, EngineAnswer(("io.a.search_x",), None, "use"), dotted).record["wrongServer"] is True


@pytest.mark.parametrize(
    ("category", "intent", "flagged"),
    [
        ("semantic", "search wiki pages", True),
        ("semantic", "look something up", False),
        ("semantic", "send an email", False),
        ("lexical", "search wiki pages", False),
    ],
)
def test_a_semantic_row_that_words_alone_win_is_flagged_whatever_is_measured(category, intent, flagged):
    nothing = EngineAnswer((), None, "no_good_match")
    record = measure(row(category, intent=intent), nothing).record
    assert record.get("hygiene") == (LEXICAL_SHORTCUT if flagged else None)


@pytest.mark.parametrize(
    "query", ["", "???", "the of", "\ud800", "search \udc00 pages", "x" * 10_000, "国際標準化"]
)
def test_no_intent_breaks_the_reference_search(query):
    search = ToolSearch(CATALOG)
    record = DiscoveryTarget("lexical", CATALOG, ReferenceEngine(search), search).measure(row(intent=query)).record
    assert record["decision"] in {"empty_query", "no_good_match", "use"}


def test_the_order_of_the_catalog_changes_no_record():
    backwards = Catalog(CATALOG.servers, CATALOG.tools[::-1])
    rows = [row(intent=intent, id=intent) for intent in ("search", "page", "issue message", "send a text")]
    records = []
    for tools in (CATALOG, backwards):
        search = ToolSearch(tools)
        target = DiscoveryTarget("lexical", tools, ReferenceEngine(search), search)
        records.append([target.measure(found).record for found in rows])
    assert records[0] == records[1]


def test_a_constant_scorer_is_expected_in_the_middle_wherever_the_gold_stands():
    tied = EngineAnswer(REFS, (0.5,) * 7, "use")
    records = [measure(row(acceptable=(ref,)), tied).record for ref in REFS]
    assert [record["expectedRank"] for record in records] == [4.0] * 7
    assert [record["rank"] for record in records] == [1, 2, 3, 4, 5, 6, 7]


def test_what_the_engine_raises_is_not_swallowed():
    class Broken:
        def search(self, query: str, limit: int) -> EngineAnswer:
            raise InfrastructureError("gone")

    with pytest.raises(InfrastructureError, match="gone"):
        DiscoveryTarget("mine", CATALOG, Broken(), ToolSearch(CATALOG)).measure(row())
