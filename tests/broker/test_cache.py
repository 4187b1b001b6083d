"""The caching broker: what is served, for how long, and what is counted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from small_broker import CATALOG, MESSAGE, broker_over

from pytest_tooleval.broker.broker import Broker
from pytest_tooleval.broker.cache import CachedBroker, CacheEvent
from pytest_tooleval.broker.downstream import InProcessDownstream
from pytest_tooleval.broker.envelope import error_type, json_size
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool

QUERY = "search wiki pages"


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Behind:
    """A broker that counts what reaches it."""

    catalog: Catalog = CATALOG
    asked: list[Any] = field(default_factory=list)
    is_failing: bool = False

    def find_tool(self, query: str, limit: int = 5) -> dict[str, Any]:
        return self._answer("find", query, limit)

    def describe_tool(self, ref: str, part: str | None = None) -> dict[str, Any]:
        return self._answer("describe", ref, part)

    def call_tool(self, ref: str, arguments: Any) -> dict[str, Any]:
        return self._answer("call", ref, arguments)

    def _answer(self, *asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {"ok": not self.is_failing, "number": len(self.asked), "list": []}


def test_a_find_is_served_from_memory_and_equals_the_first_answer() -> None:
    broker = CachedBroker(broker_over())

    first, second = broker.find_tool(QUERY), broker.find_tool(QUERY)

    assert first == second == broker_over().find_tool(QUERY)
    assert (broker.counts.operations, broker.counts.cacheable, broker.counts.served, broker.counts.delegated) == (
        2,
        2,
        1,
        1,
    )
    assert broker.counts.response_bytes == 2 * json_size(first)
    assert broker.counts.delegated_bytes == json_size(first)


def test_every_part_of_a_request_is_in_the_key() -> None:
    behind = Behind()
    broker = CachedBroker(behind)

    for _ in range(2):
        broker.find_tool("a")
        broker.find_tool("a", 6)
        broker.find_tool("A")
        broker.describe_tool("a")
        broker.describe_tool("a", "/x")
        broker.call_tool("wiki.search_pages", {"query": 1})
        broker.call_tool("wiki.search_pages", {"query": True})
        broker.call_tool("wiki.search_pages", {"query": 1.0})

    assert len(behind.asked) == 8


def test_no_arguments_are_an_empty_object_and_order_does_not_matter() -> None:
    behind = Behind()
    broker = CachedBroker(behind)

    broker.call_tool("wiki.search_pages", None)
    broker.call_tool("wiki.search_pages", {})
    broker.call_tool("wiki.search_pages", {"a": 1, "b": 2})
    broker.call_tool("wiki.search_pages", {"b": 2, "a": 1})

    assert len(behind.asked) == 2


@pytest.mark.parametrize("ref", ["chat.post_message", "no.such"])
def test_calls_that_may_change_things_always_go_through(ref: str) -> None:
    behind = Behind()
    broker = CachedBroker(behind)

    for _ in range(3):
        broker.call_tool(ref, MESSAGE)

    assert len(behind.asked) == 3
    assert (broker.counts.cacheable, broker.counts.served) == (0, 0)


def test_arguments_that_are_not_json_go_through() -> None:
    behind = Behind()
    broker = CachedBroker(behind)

    for _ in range(2):
        broker.call_tool("wiki.search_pages", {"query": {1, 2}})

    assert len(behind.asked) == 2


def test_failures_are_never_served() -> None:
    broker = CachedBroker(broker_over())

    for _ in range(2):
        assert error_type(broker.describe_tool("wiki.nothing")) == "TOOL_NOT_FOUND"
        assert error_type(broker.call_tool("wiki.search_pages", {})) == "ARGUMENT_VALIDATION_FAILED"

    assert (broker.counts.operations, broker.counts.cacheable, broker.counts.served) == (4, 0, 0)


def test_an_error_about_a_tool_makes_its_answers_forgotten() -> None:
    behind = Behind()
    broker = CachedBroker(behind)
    broker.describe_tool("wiki.search_pages")
    broker.describe_tool("chat.post_message")
    behind.is_failing = True
    broker.call_tool("wiki.search_pages", {"query": "x"})
    behind.is_failing = False

    assert broker.describe_tool("wiki.search_pages")["number"] == 4
    assert broker.describe_tool("chat.post_message")["number"] == 2


def test_answers_grow_old() -> None:
    clock = Clock()
    behind = Behind()
    broker = CachedBroker(behind, ttl_seconds=10, clock=clock)

    broker.find_tool("a")
    clock.now = 9.9
    broker.find_tool("a")
    assert len(behind.asked) == 1
    clock.now = 10
    broker.find_tool("a")
    assert len(behind.asked) == 2


def test_the_least_recently_used_goes_first() -> None:
    behind = Behind()
    broker = CachedBroker(behind, most_entries=2)

    for query in ("a", "b", "a", "c", "a", "b"):
        broker.find_tool(query)

    assert [asked[1] for asked in behind.asked] == ["a", "b", "c", "b"]


def test_a_cache_of_no_entries_keeps_nothing() -> None:
    behind = Behind()
    broker = CachedBroker(behind, most_entries=0)

    broker.find_tool("a")
    broker.find_tool("a")

    assert len(behind.asked) == 2


def test_another_generation_of_the_catalog_is_another_key() -> None:
    behind = Behind()
    broker = CachedBroker(behind)
    broker.find_tool("a")
    broker.describe_tool("wiki.search_pages")
    behind.catalog = Catalog((CatalogServer("wiki"),), (CatalogTool("wiki.search_pages", "wiki", "search_pages"),))

    broker.find_tool("a")
    broker.describe_tool("wiki.search_pages")

    assert len(behind.asked) == 4


def test_a_call_is_keyed_by_the_schema() -> None:
    behind = Behind()
    broker = CachedBroker(behind)
    for schema in ({"type": "object"}, {"type": "object", "properties": {}}, {"type": "object"}):
        tool = CatalogTool("s.t", "s", "t", input_schema=schema, read_only=True)
        behind.catalog = Catalog((CatalogServer("s"),), (tool,))
        broker.call_tool("s.t", {})

    assert len(behind.asked) == 2


def test_what_a_caller_does_to_an_answer_stays_with_it() -> None:
    broker = CachedBroker(Behind())

    broker.find_tool("a")["list"].append(1)
    broker.find_tool("a")["list"].append(2)

    assert broker.find_tool("a")["list"] == []


def test_forgetting_keeps_the_counts() -> None:
    behind = Behind()
    broker = CachedBroker(behind)
    broker.find_tool("a")
    broker.clear()
    broker.find_tool("a")

    assert len(behind.asked) == 2
    assert broker.counts.operations == 2


def test_every_operation_is_told() -> None:
    events: list[CacheEvent] = []
    broker = CachedBroker(Behind(), on_event=events.append)

    broker.find_tool("a")
    broker.find_tool("a")
    broker.call_tool("chat.post_message", MESSAGE)

    assert [(event.operation, event.cacheable, event.served) for event in events] == [
        ("find", True, False),
        ("find", True, True),
        ("call", False, False),
    ]
    assert events[0].text == events[1].text == '{"ok":true,"number":1,"list":[]}'


def test_many_threads() -> None:
    broker = CachedBroker(Broker(CATALOG, ToolSearch(CATALOG), InProcessDownstream(CATALOG)), most_entries=3)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: broker.find_tool(f"search wiki pages {number % 5}"), range(200)))

    assert all(answer["selectedToolRef"] == "wiki.search_pages" for answer in answers)
    assert broker.counts.operations == 200
    assert broker.counts.served + broker.counts.delegated == 200
