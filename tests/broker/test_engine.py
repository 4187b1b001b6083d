from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from small_broker import CATALOG

from pytest_tooleval.broker.engine import EngineRegistry, ReferenceEngine, UserEngine
from pytest_tooleval.broker.ranking_reader import EngineAnswer
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ConfigError, InfrastructureError

POST, SEARCH, DEPLOY = "chat.post_message", "wiki.search_pages", "cloud.deploy_app"


def answer(listed: object, limit: int = 1000, catalog: Catalog = CATALOG) -> EngineAnswer:
    return UserEngine("mine", lambda _: lambda query: listed, catalog).search("q", limit)


@pytest.mark.parametrize(
    ("listed", "refs", "scores"),
    [
        ([POST, SEARCH], (POST, SEARCH), None),
        ((SEARCH, POST), (SEARCH, POST), None),
        (iter([SEARCH, POST]), (SEARCH, POST), None),
        ([(POST, 2), (SEARCH, 1.5)], (POST, SEARCH), (2.0, 1.5)),
        ([[POST, 2], [SEARCH, 1]], (POST, SEARCH), (2.0, 1.0)),
        ([(np.str_(POST), np.float32(0.5)), (SEARCH, np.int64(0))], (POST, SEARCH), (0.5, 0.0)),
        ([(POST, Fraction(1, 2)), (SEARCH, float("-inf"))], (POST, SEARCH), (0.5, float("-inf"))),
        ([(POST, 2.0), SEARCH], (POST, SEARCH), None),
        ([], (), None),
        (np.array([SEARCH, POST]), (SEARCH, POST), None),
    ],
)
def test_refs_or_pairs(listed, refs, scores):
    found = answer(listed)
    assert (found.refs, found.scores, found.notes) == (refs, scores, ())
    assert {type(ref) for ref in found.refs} <= {str}
    assert {type(score) for score in found.scores or ()} <= {float}


def test_equal_scores_are_ranked_by_ref_whatever_the_order():
    pairs = [(SEARCH, 1.0), (DEPLOY, 1.0), (POST, 1.0)]
    for listed in (pairs, pairs[::-1]):
        assert answer([("vault.read_secret", 2.0), *listed]).refs == ("vault.read_secret", POST, DEPLOY, SEARCH)


def test_equal_scores_are_ranked_before_the_cut():
    assert answer([(SEARCH, 1.0), (POST, 1.0)], limit=1) == EngineAnswer((POST,), (1.0,), "use")


def test_scores_that_rise_do_not_count():
    found = answer([(SEARCH, 0.1), (POST, 0.9), (DEPLOY, 0.9)])
    assert (found.refs, found.scores) == ((SEARCH, POST, DEPLOY), None)
    assert found.notes == ("the engine's scores do not fall: its order counts, not they",)


@pytest.mark.parametrize(
    ("listed", "decision"), [([], "no_good_match"), ([POST], "use"), (["nope"], "no_good_match")]
)
def test_an_answer_without_a_tool_is_a_refusal(listed, decision):
    assert answer(listed).decision == decision


@pytest.mark.parametrize(
    ("listed", "refs", "notes"),
    [
        ([POST, SEARCH, POST, POST], (POST, SEARCH), (f"the engine returned more than once: {POST!r}",)),
        (
            ["post_message", POST, "WIKI.search_pages"],
            (POST,),
            (
                "the engine returned what is not in the catalog: 'post_message' (did you mean 'chat.post_message'?), "
                "'WIKI.search_pages' (did you mean 'wiki.search_pages'?)",
            ),
        ),
        (
            ["a", "b", "c", "d", "e", "a"],
            (),
            ("the engine returned what is not in the catalog: 'a', 'b', 'c' and 2 more",),
        ),
        (
            [POST, POST, SEARCH, SEARCH, DEPLOY, DEPLOY, "cloud.broken", "cloud.broken", "zz"],
            (POST, SEARCH, DEPLOY, "cloud.broken"),
            (
                f"the engine returned more than once: {POST!r}, {SEARCH!r}, {DEPLOY!r} and 1 more",
                "the engine returned what is not in the catalog: 'zz'",
            ),
        ),
        (["\ud800"], (), ("the engine returned what is not in the catalog: '\\ud800'",)),
    ],
)
def test_repeated_and_unknown_refs_are_left_out_and_noted(listed, refs, notes):
    found = answer(listed)
    assert (found.refs, found.notes) == (refs, notes)


def test_of_a_repeated_ref_the_first_score_counts():
    assert answer([(POST, 3.0), (POST, 1.0), (SEARCH, 2.0)]).scores == (3.0, 2.0)


def test_what_is_left_out_does_not_count_for_the_limit():
    assert answer(["nope", POST, POST, SEARCH], limit=2).refs == (POST, SEARCH)


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        (None, "None"),
        ("chat.post_message", "'chat.post_message'"),
        (b"x", "b'x'"),
        ({"chat.post_message": 1.0}, "{'chat.post_message': 1.0}"),
        ([5], "5"),
        ([("chat.post_message", "high")], "('chat.post_message', 'high')"),
        ([("chat.post_message", True)], "('chat.post_message', True)"),
        ([("chat.post_message", float("nan"))], "('chat.post_message', nan)"),
        ([("chat.post_message", 1.0, 2.0)], "('chat.post_message', 1.0, 2.0)"),
        ([None], "None"),
        (["x", ["y" * 200]], f"['{'y' * 97}…"),
    ],
)
def test_an_answer_of_another_shape_is_the_engines_fault(listed, shown):
    with pytest.raises(InfrastructureError) as caught:
        answer(listed)
    assert str(caught.value) == (
        f"the engine 'mine' returned {shown}; expected a list of refs or of (ref, score) pairs"
    )


def failing(query: str) -> list[str]:
    raise ValueError("no index")


def failing_late(query: str):
    yield POST
    raise KeyError("late")


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        (failing, "the engine 'mine' raised ValueError: no index"),
        (failing_late, "the engine 'mine' raised KeyError: 'late'"),
    ],
)
def test_what_an_engine_raises(ranking, message):
    engine = UserEngine("mine", lambda _: ranking, CATALOG)
    with pytest.raises(InfrastructureError) as caught:
        engine.search("q", 5)
    assert str(caught.value) == message


def test_a_factory_gets_the_catalog_once_and_the_ranking_each_query():
    seen: list[object] = []

    def factory(catalog: Catalog):
        seen.append(catalog)
        return lambda query: seen.append(query) or [POST]

    engine = UserEngine("mine", factory, CATALOG)
    engine.search("one", 5)
    engine.search("two", 5)
    assert seen == [CATALOG, "one", "two"]


def not_made(catalog: Catalog):
    raise OSError("no model file")


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (not_made, "the engine 'mine' could not be made: OSError: no model file"),
        (lambda: None, "the engine 'mine' could not be made: TypeError: "),
        (lambda _: [POST], f"the engine 'mine' gave [{POST!r}] for a catalog; expected a callable"),
        (lambda _: None, "the engine 'mine' gave None for a catalog; expected a callable"),
    ],
)
def test_an_engine_that_cannot_be_made(factory, message):
    with pytest.raises(ConfigError) as caught:
        UserEngine("mine", factory, CATALOG)
    assert str(caught.value).startswith(message)


def test_unknown_refs_cost_no_look_at_every_tool():
    tools = tuple(CatalogTool(f"s.tool_{n}", "s", f"tool_{n}", description="x") for n in range(20_000))
    engine = UserEngine("mine", lambda _: lambda query: [f"{query}_{n}" for n in range(20)], Catalog((), tools))
    started = time.process_time()
    for number in range(500):
        engine.search(f"q{number}", 5)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("query", "decision", "first"),
    [
        ("post a message to a channel", "use", POST),
        ("zzz", "no_good_match", None),
        ("", "empty_query", None),
        ("search wiki pages", "use", SEARCH),
    ],
)
def test_the_reference_search_as_an_engine(query, decision, first):
    search = ToolSearch(CATALOG)
    found = ReferenceEngine(search).search(query, 1000)

    assert found.decision == decision
    assert (found.refs[0] if found.refs else None) == first
    assert len(found.scores) == len(found.refs)
    assert list(found.scores) == sorted(found.scores, reverse=True)
    assert list(found.refs) == [hit.ref for hit in search.rank(query, 1000)]


def test_the_reference_search_over_no_tool():
    found = ReferenceEngine(ToolSearch(Catalog())).search("post a message", 5)
    assert (found.refs, found.decision) == ((), "catalog_empty")


def some_factory(catalog: Catalog):
    return lambda query: []


def test_engines_by_name_and_by_module():
    registry = EngineRegistry(["lexical"])
    registry.add("mine", some_factory)
    registry.add("a", some_factory)

    assert registry.names == ("a", "lexical", "mine")
    assert registry.factory("mine") is some_factory
    assert registry.factory("textwrap:dedent")("  x") == "x"


@pytest.mark.parametrize("name", ["mine", "lexical", "a:b", ""])
def test_names_that_cannot_be_given(name):
    registry = EngineRegistry(["lexical"])
    registry.add("mine", some_factory)
    with pytest.raises(ConfigError) as caught:
        registry.add(name, some_factory)
    assert str(caught.value) == f"{name!r} cannot name an engine: it is taken, empty or holds a colon"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lexcal", "no engine 'lexcal' (did you mean 'lexical'?); known: lexical, mine; or give module:attr"),
        ("zzz", "no engine 'zzz'; known: lexical, mine; or give module:attr"),
        ("textwrap:", "no engine 'textwrap:'; known: lexical, mine; or give module:attr"),
        (":attr", "no engine ':attr'; known: lexical, mine; or give module:attr"),
        (
            "no_such_module_here:x",
            "the engine 'no_such_module_here:x' cannot be imported: No module named 'no_such_module_here'; "
            "its folder has to be on Python's path: see pytest's ini option 'pythonpath'",
        ),
        ("math:pi", "the engine 'math:pi' is 3.141592653589793; expected what takes a catalog"),
        ("builtins:None", "the engine 'builtins:None' is None; expected what takes a catalog"),
        (
            "textwrap:nope",
            "the engine 'textwrap:nope' cannot be imported: AttributeError: module 'textwrap' has no attribute 'nope'",
        ),
    ],
)
def test_engines_that_cannot_be_found(name, message):
    registry = EngineRegistry(["lexical"])
    registry.add("mine", some_factory)
    with pytest.raises(ConfigError) as caught:
        registry.factory(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("engine_unclosed", "x = (", "SyntaxError: '(' was never closed"),
        ("engine_dividing", "1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported(tmp_path, monkeypatch, name, text, message):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as caught:
        EngineRegistry().factory(f"{name}:x")
    assert str(caught.value).startswith(f"the engine '{name}:x' cannot be imported: {message}")
