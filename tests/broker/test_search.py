from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pytest_tooleval.broker.decision import Limits
from pytest_tooleval.broker.search import Found, Hit, ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogTool

TOOLS = (
    CatalogTool("chat.post_message", "chat", "post_message", "", "Post a message to a channel."),
    CatalogTool("chat.search_messages", "chat", "search_messages", "", "Search the history of messages."),
    CatalogTool("git.search_code", "git", "search_code", "", "Search source code."),
    CatalogTool("hub.search_code", "hub", "search_code", "", "Search source code."),
    CatalogTool("files.read_file", "files", "read_file", "", "Read the contents of a file."),
    CatalogTool("calendar.list_events", "calendar", "list_events", "", "List upcoming events."),
)
SEARCH = ToolSearch(Catalog(tools=TOOLS))


class Meaning:
    """A semantic leg of fixed answers."""

    def __init__(self, *pairs: tuple[str, float]) -> None:
        self._pairs = pairs

    def rank(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        return self._pairs[:limit]


def hybrid(*pairs: tuple[str, float]) -> ToolSearch:
    return ToolSearch(Catalog(tools=TOOLS), Meaning(*pairs))


@pytest.mark.parametrize(
    ("query", "decision", "first"),
    [
        ("post a message to the channel", "use", "chat.post_message"),
        ("read_file", "use", "files.read_file"),
        ("search source code", "ambiguous", "git.search_code"),
        ("search code on hub", "use", "hub.search_code"),
        ("bake a chocolate cake and post it to grandmother", "no_good_match", "chat.post_message"),
        ("zzz", "no_good_match", None),
        ("", "empty_query", None),
        (" \n", "empty_query", None),
        ("what can you do for me?", "empty_query", None),
        ("?!", "empty_query", None),
        ("🙂", "no_good_match", None),
        ("读取文件", "no_good_match", None),
    ],
)
def test_decisions(query, decision, first):
    found = SEARCH.decide(query, 3)
    assert (found.decision, found.hits[0].ref if found.hits else None) == (decision, first)
    assert 0 <= found.confidence <= 1
    assert found.reason
    assert list(found.hits) == SEARCH.rank(query, 3)


@pytest.mark.parametrize("query", ["search code", "", "the of"])
def test_an_empty_catalog_has_its_own_answer(query):
    search = ToolSearch(Catalog())
    assert search.decide(query, 3) == Found("catalog_empty", (), 0.0, "the catalog holds no tool")
    assert search.rank(query, 3) == []


def test_tools_without_any_text():
    search = ToolSearch(Catalog(tools=(CatalogTool("s.a", "", "", "", ""), CatalogTool("s.b", "", "", "", ""))))
    assert search.decide("search code", 3).decision == "no_good_match"
    assert search.rank("search code", 3) == []


def test_the_only_tool_of_a_catalog_is_used():
    search = ToolSearch(Catalog(tools=TOOLS[:1]))
    assert search.decide("post a message", 3).decision == "use"
    assert search.decide("paint a house", 3).decision == "no_good_match"


@pytest.mark.parametrize(("limit", "count"), [(-3, 0), (0, 0), (1, 1), (2, 2), (99, 3)])
def test_at_most_as_many_as_asked_for(limit, count):
    assert len(SEARCH.rank("search", limit)) == count
    found = SEARCH.decide("search source code", limit)
    assert len(found.hits) == min(count, 3)
    assert found.decision == "ambiguous"


def test_shuffling_the_catalog_changes_nothing():
    queries = ["search source code", "message", "list the contents of a file", "read events code"]
    answers = [SEARCH.decide(query, 10) for query in queries]
    for seed in range(5):
        shuffled = [*TOOLS]
        random.Random(seed).shuffle(shuffled)
        assert [ToolSearch(Catalog(tools=tuple(shuffled))).decide(query, 10) for query in queries] == answers


def test_legs_are_fused_by_rank():
    search = hybrid(("calendar.list_events", 0.7), ("files.read_file", 0.3))
    assert search.rank("read", 10) == [Hit("files.read_file", 1 / 61 + 1 / 62), Hit("calendar.list_events", 1 / 61)]


def test_meaning_alone_finds_what_shares_no_word():
    found = hybrid(("calendar.list_events", 0.7), ("files.read_file", 0.3)).decide("appointments tomorrow", 3)
    assert (found.decision, found.hits[0].ref) == ("use", "calendar.list_events")


def test_legs_that_disagree_leave_the_choice_open():
    found = hybrid(("hub.search_code", 0.9), ("git.search_code", 0.5)).decide("search source code", 3)
    assert (found.decision, found.hits[0].ref) == ("ambiguous", "git.search_code")


def test_little_meaning_is_no_match():
    found = hybrid(("calendar.list_events", 0.2), ("files.read_file", 0.1)).decide("appointments tomorrow", 3)
    assert found.decision == "no_good_match"
    assert found.reason.endswith("similarity 0.20, needed 0.40)")


def test_meaning_can_part_what_words_cannot():
    pairs = (("git.search_code", 0.9), ("hub.search_code", 0.5))
    assert hybrid(*pairs).decide("search source code", 3).decision == "use"
    assert (
        ToolSearch(Catalog(tools=TOOLS), Meaning(*pairs), Limits(similarity_lead=1.0))
        .decide("search source code", 3)
        .decision
        == "ambiguous"
    )


@pytest.mark.parametrize("query", ["", "the of"])
def test_no_meaning_is_asked_of_an_empty_query(query):
    search = hybrid(("calendar.list_events", 0.9))
    assert search.rank(query, 3) == []
    assert search.decide(query, 3).decision == "empty_query"


def test_a_leg_that_repeats_or_invents_refs():
    search = hybrid(("calendar.list_events", 0.9), ("no.such", 0.8), ("calendar.list_events", 0.7))
    assert [hit.ref for hit in search.rank("appointments", 5)] == ["calendar.list_events"]
