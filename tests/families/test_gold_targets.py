from __future__ import annotations

import pytest
from small_broker import CATALOG, HUGE_SCHEMA, one_tool

from pytest_tooleval.broker.engine import ReferenceEngine, UserEngine
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.families.discovery import DiscoveryTarget
from pytest_tooleval.families.ergonomics import ErgonomicsTarget
from pytest_tooleval.families.gold import CorpusTargets, GoldSettings, broken_schemas
from pytest_tooleval.families.invocation import InvocationTarget
from pytest_tooleval.families.workloads import CacheTarget, PerformanceTarget, TokensTarget
from pytest_tooleval.measures.token_estimates import CharacterEstimator


def factory(catalog: Catalog):
    return lambda query: [tool.ref for tool in catalog.tools]


def targets(**keys) -> CorpusTargets:
    settings = {"engines": {"lexical": None}, "semantic_leg": None, "estimator": CharacterEstimator(), **keys}
    return CorpusTargets(CATALOG, GoldSettings(**settings))


@pytest.mark.parametrize(
    ("family", "kind", "name"),
    [
        ("discovery", DiscoveryTarget, "lexical"),
        ("invocation", InvocationTarget, "broker"),
        ("ergonomics", ErgonomicsTarget, "broker"),
        ("tokens", TokensTarget, "broker"),
        ("cache", CacheTarget, "broker"),
        ("performance", PerformanceTarget, "broker"),
    ],
)
def test_the_target_of_a_family(family, kind, name):
    made = targets()
    (target,) = made.of(family)
    assert (type(target), target.name) == (kind, name)
    assert made.of(family) == (target,)
    made.close()


def test_engines_are_targets_side_by_side_in_their_order():
    mine, lexical = targets(engines={"m:rank": factory, "lexical": None}).of("discovery")
    assert (mine.name, type(mine.engine)) == ("m:rank", UserEngine)
    assert (lexical.name, type(lexical.engine)) == ("lexical", ReferenceEngine)
    assert mine.engine.search("x", 3).refs == tuple(tool.ref for tool in CATALOG.tools[:3])


def test_an_engine_is_made_once_and_only_when_rows_ask_for_it():
    made: list[Catalog] = []

    def counted(catalog: Catalog):
        made.append(catalog)
        return lambda query: []

    corpus = targets(engines={"mine": counted})
    corpus.of("invocation")
    assert made == []
    corpus.of("discovery")
    corpus.of("discovery")
    assert made == [CATALOG]


def test_an_engine_that_cannot_be_made():
    with pytest.raises(ConfigError, match="could not be made"):
        targets(engines={"mine": lambda catalog: 1 / 0}).of("discovery")


def test_why_nothing_can_be_timed():
    (target,) = targets(no_timing="others run").of("performance")
    assert target.refusal == "others run"


def test_broken_schemas_are_found_by_tool():
    assert [ref for ref, _ in broken_schemas(CATALOG)] == ["cloud.broken"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({}, None),
        (HUGE_SCHEMA, None),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, None),
        ({"type": "object", "required": "name"}, "'name'"),
        ({"properties": {"a": {"type": "strin"}}}, "'strin'"),
        ({"properties": []}, "[]"),
    ],
)
def test_a_schema_that_is_no_schema(schema, problem):
    found = dict(broken_schemas(one_tool(schema)))
    assert (problem is None) == (found == {})
    assert problem is None or problem in found["s.t"]
