from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_broker import CATALOG, MESSAGE, broker_over, one_tool

from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.broker.surface import OPERATIONS
from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.gold import CacheWorkload, PerformanceWorkload, Request, TokensWorkload
from pytest_tooleval.families.workloads import (
    CacheTarget,
    PerformanceTarget,
    TokensTarget,
    arguments_of,
    startup_tokens,
    timings,
)

SOURCE = Source(Path("f"))
POST, SEARCH = "chat.post_message", "wiki.search_pages"
FIND = Request("find", query="post a message")


class Characters:
    """An estimator that counts characters."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


def tokens(catalog: Catalog = CATALOG, ref: str = POST, arguments: dict | None = None) -> dict:
    workload = TokensWorkload("post a message", ref, arguments, SOURCE)
    outcome = TokensTarget("broker", broker_over(catalog=catalog), Characters()).measure(workload)
    assert outcome.passed is True
    return dict(outcome.record)


def compact(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def test_startup_tokens_are_those_of_name_description_and_schema():
    definitions = [{"name": "a", "description": "é", "inputSchema": {"type": "object"}}, {"name": "b"}]
    assert startup_tokens(definitions, Characters()) == compact(definitions[0]) + compact(definitions[1])
    assert startup_tokens([], Characters()) == 0


def test_the_token_economy_of_a_task():
    record = tokens(arguments=dict(MESSAGE))
    broker = broker_over()
    requests = [{"query": "post a message"}, {"toolRef": POST}, {"toolRef": POST, "arguments": dict(MESSAGE)}]
    answers = [
        broker.find_tool("post a message"),
        broker.describe_tool(POST),
        broker.call_tool(POST, MESSAGE),
    ]
    direct = sum(
        compact({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
        for tool in CATALOG.tools
    )
    brokered = sum(compact(definition) for definition in OPERATIONS.values())

    assert record == {
        "pass": True,
        "estimator": "characters",
        "directStartupTokens": direct,
        "brokerStartupTokens": brokered,
        "startupReductionRatio": 1 - brokered / direct,
        "directTokensToSuccess": direct + compact(requests[2]) + compact(answers[2]),
        "brokerTokensToSuccess": brokered + sum(map(compact, [*requests, *answers])),
        "largestPayloadTokens": max(map(compact, answers)),
        "brokerCalls": 3,
    }


def test_a_small_catalog_costs_more_behind_a_broker():
    record = tokens(one_tool({"type": "object"}), "s.t", {})
    assert record["startupReductionRatio"] < 0


@pytest.mark.parametrize(
    ("ref", "arguments", "error"),
    [("mail.send_email", {"query": "x"}, "DOWNSTREAM_SERVER_OFFLINE"), (POST, {}, "ARGUMENT_VALIDATION_FAILED")],
)
def test_a_call_that_fails_is_no_success(ref, arguments, error):
    record = tokens(ref=ref, arguments=arguments)
    assert (record["directTokensToSuccess"], record["brokerTokensToSuccess"]) == (None, None)
    assert record["notes"] == [f"the call of {ref} failed with {error}: there is no success to count to"]
    assert record["startupReductionRatio"] > 0


@pytest.mark.parametrize(
    ("ref", "given", "arguments"),
    [
        (POST, {"a": 1}, {"a": 1}),
        (POST, {}, {}),
        ("cloud.broken", None, {}),
    ],
)
def test_the_arguments_of_a_workload(ref, given, arguments):
    assert arguments_of(CATALOG, ref, given) == arguments


def test_arguments_that_are_left_out_are_made_from_the_schema():
    made = arguments_of(CATALOG, POST, None)
    assert {"channel", "text"} <= made.keys()
    assert broker_over().call_tool(POST, made)["ok"] is True


def served(*requests: Request, catalog: Catalog = CATALOG) -> tuple[int, int, int, float | None]:
    target = CacheTarget("broker", broker_over(catalog=catalog), Characters())
    record = target.measure(CacheWorkload(requests, SOURCE)).record
    assert record["delegatedOps"] == record["operations"] - record["servedFromCache"]
    assert record["tokensAvoided"] == record["workloadResponseTokens"] - record["executedResponseTokens"]
    fields = ("operations", "cacheableOps", "servedFromCache", "redundantCallReduction")
    return tuple(record[field] for field in fields)


def call(ref: str, **arguments: object) -> Request:
    return Request("call", tool_ref=ref, arguments=arguments or None)


@pytest.mark.parametrize(
    ("requests", "counts"),
    [
        ((FIND, FIND), (2, 2, 1, 0.5)),
        ((FIND, Request("find", query="search wiki pages"), FIND), (3, 3, 1, 1 / 3)),
        ((Request("describe", tool_ref=POST),) * 4, (4, 4, 3, 0.75)),
        ((call(SEARCH, query="x"),) * 2, (2, 2, 1, 0.5)),
        ((call(SEARCH, query="x"), call(SEARCH, query="y")), (2, 2, 0, 0.0)),
        ((call(SEARCH),) * 2, (2, 2, 1, 0.5)),
        ((call(POST, **MESSAGE),) * 2, (2, 0, 0, None)),
        ((call(SEARCH, limit=5),) * 2, (2, 0, 0, None)),
        ((call("vault.read_secret", query="x"),) * 2, (2, 0, 0, None)),
        ((Request("describe", tool_ref="chat.nope"),) * 2, (2, 0, 0, None)),
        ((FIND, call(POST, **MESSAGE), FIND, call(POST, **MESSAGE)), (4, 2, 1, 0.5)),
    ],
)
def test_what_a_cache_may_serve(requests, counts):
    assert served(*requests) == counts


def test_the_cache_is_empty_at_the_start_of_each_measurement():
    target = CacheTarget("broker", broker_over(), Characters())
    workload = CacheWorkload((FIND, FIND), SOURCE)
    assert target.measure(workload).record == target.measure(workload).record


def test_tokens_avoided_are_those_of_what_was_served():
    target = CacheTarget("broker", broker_over(), Characters())
    record = target.measure(CacheWorkload((FIND, FIND, FIND), SOURCE)).record
    size = compact(broker_over().find_tool(FIND.query))
    assert record["estimator"] == "characters"
    assert (record["workloadResponseTokens"], record["executedResponseTokens"], record["tokensAvoided"]) == (
        3 * size,
        size,
        2 * size,
    )


class Ranking:
    """A semantic leg that remembers what it was asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        self.queries.append(query)
        return []


def test_every_path_is_timed_as_often_as_asked():
    target = PerformanceTarget("broker", broker_over(), ToolSearch(CATALOG))
    record = target.measure(PerformanceWorkload(("post", "search"), 7, SOURCE)).record

    assert list(record) == ["pass", "lexical", "fusion", "endToEnd"]
    for path in ("lexical", "fusion", "endToEnd"):
        assert record[path]["n"] == 7
        assert 0 < record[path]["p50Micros"] <= record[path]["p95Micros"]
        assert record[path]["opsPerSec"] > 0


def test_queries_are_asked_in_turn():
    leg = Ranking()
    target = PerformanceTarget("broker", broker_over(), ToolSearch(CATALOG), leg)
    record = target.measure(PerformanceWorkload(("a", "b"), 5, SOURCE)).record
    assert leg.queries == ["a", "b", "a", "b", "a"]
    assert record["semantic"]["n"] == 5


@pytest.mark.parametrize("refusal", [None, "others run"])
def test_a_reason_not_to_time(refusal):
    target = PerformanceTarget("broker", broker_over(), ToolSearch(CATALOG), refusal=refusal)
    assert target.cannot_run(PerformanceWorkload(("a",), 1, SOURCE)) == refusal


@pytest.mark.parametrize(
    ("seconds", "p50", "p95", "rate"),
    [
        ([0.002], 2000, 2000, 500),
        ([0.003, 0.001], 1000, 3000, 500),
        ([n / 1000 for n in range(1, 21)], 10_000, 19_000, 20 / 0.21),
        ([n / 1000 for n in range(100, 0, -1)], 50_000, 95_000, 100 / 5.05),
        ([0.0, 0.0], 0, 0, None),
    ],
)
def test_nearest_rank_percentiles(seconds, p50, p95, rate):
    found = timings(seconds)
    assert found["n"] == len(seconds)
    assert (found["p50Micros"], found["p95Micros"]) == (pytest.approx(p50), pytest.approx(p95))
    assert found["opsPerSec"] == (None if rate is None else pytest.approx(rate))
