from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.measures.cost import (
    PROVIDER_IDS,
    UNBILLED,
    Billing,
    CostTotals,
    cost_totals,
    has_price,
    prices_are_installed,
    run_cost,
)
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.providers.presets import PRESETS
from pytest_tooleval.transcript import AssistantMessage, Run, Usage, UserMessage

genai_prices = pytest.importorskip("genai_prices")
data_snapshot = pytest.importorskip("genai_prices.data_snapshot")
types = pytest.importorskip("genai_prices.types")


def model(name: str, **prices: Any) -> Any:
    found = {
        key: value if isinstance(value, types.TieredPrices) else Decimal(value) for key, value in prices.items()
    }
    return types.ModelInfo(id=name, match=types.ClauseEquals(name), prices=types.ModelPrice(**found))


def dearer_above(tokens: int, base: str, price: str) -> Any:
    return types.TieredPrices(base=Decimal(base), tiers=[types.Tier(start=tokens, price=Decimal(price))])


OPENAI = [
    model("large", input_mtok="2", cache_read_mtok="0.5", cache_write_mtok="2.5", output_mtok="8"),
    model("small", input_mtok="1", output_mtok="4"),
    model(
        "long",
        input_mtok=dearer_above(200_000, "3", "6"),
        output_mtok=dearer_above(200_000, "15", "22.5"),
    ),
    model("no-prices"),
    model("no-output", input_mtok="1"),
    model("gift:free"),
]


@pytest.fixture(scope="module")
def price_list() -> Iterator[None]:
    providers = [
        types.Provider("openai", "OpenAI", r"https://api\.openai\.com", models=OPENAI),
        types.Provider("groq", "Groq", r"https://api\.groq\.com", models=[model("small", input_mtok="7", output_mtok="9")]),
        types.Provider("google", "Google", r"https://(.*\.)?googleapis\.com", models=[model("flash", input_mtok="3", output_mtok="5")]),
    ]  # fmt: skip
    data_snapshot.set_custom_snapshot(data_snapshot.DataSnapshot(providers, from_auto_update=False))
    yield
    data_snapshot.set_custom_snapshot(None)


pytestmark = pytest.mark.usefixtures("price_list")

LARGE = Billing("openai", "large")
MILLION = 1_000_000


def run(*usages: Usage | None, **keys: Any) -> Run:
    replies = tuple(AssistantMessage("x", usage=usage) for usage in usages)
    return Run("ok", (UserMessage("t"), *replies), turns=len(replies), **keys)


def reply_cost(billing: Billing, usage: Usage) -> float | None:
    return run_cost(billing, run(usage))


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input=MILLION), 2.0),
        (Usage(output=MILLION), 8.0),
        (Usage(cache_read=MILLION), 0.5),
        (Usage(cache_write=MILLION), 2.5),
        (Usage(input=MILLION, cache_read=MILLION, cache_write=MILLION, output=MILLION), 13.0),
        # Reasoning is a part of the output, and a provider's own total changes nothing.
        (Usage(output=MILLION, reasoning=900_000), 8.0),
        (Usage(input=MILLION, reported_total=5 * MILLION), 2.0),
        # 4,100 input tokens, 3,072 of them cached; 250 output tokens, 120 of them reasoning.
        (Usage(input=1_028, cache_read=3_072, output=250, reasoning=120), 0.005592),
        (Usage(), 0.0),
    ],
)
def test_each_token_is_billed_once_at_its_own_price(usage, dollars):
    assert reply_cost(LARGE, usage) == dollars


def test_cached_tokens_without_a_price_of_their_own_cost_what_input_costs():
    usage = Usage(input=MILLION, cache_read=MILLION, cache_write=MILLION)
    assert reply_cost(Billing("openai", "small"), usage) == 3.0


@given(st.builds(Usage, *[st.integers(0, 10**7)] * 4))
def test_the_price_of_a_reply_is_the_sum_of_its_parts(usage):
    parts = (
        2 * usage.input + Decimal("0.5") * usage.cache_read + Decimal("2.5") * usage.cache_write + 8 * usage.output
    )
    assert reply_cost(LARGE, usage) == float(parts / MILLION)


@pytest.mark.parametrize(
    ("billing", "dollars"),
    [
        (Billing("openai", "small"), 5.0),
        (Billing("openai", "SMALL"), 5.0),
        (Billing("openai-responses", "small"), 5.0),
        (Billing("groq", "small"), 16.0),
        (Billing("gemini", "flash"), 8.0),
        (Billing("openai", "gift:free"), 0.0),
        # Whose URL it is tells who bills.
        (Billing("openai", "small", "https://api.groq.com/openai/v1"), 16.0),
        (Billing("lab", "small", "https://api.openai.com/v1"), 5.0),
        (Billing("openai", "small", "http://localhost:8080/v1"), None),
        (Billing("openai", "small", "https://gateway.example/v1"), None),
        (Billing("openai", "small", ""), None),
        (Billing("openai", "small-2"), None),
        (Billing("openai", ""), None),
        (Billing("openai", "flash"), None),
        (Billing("openai", "no-prices"), None),
        (Billing("openai", "no-output"), None),
        (Billing("lab", "small"), None),
        (Billing("mistral", "small"), None),
        (Billing("mock", ""), None),
        (Billing("ollama", "small"), None),
        (Billing("llamacpp", "small", "https://api.openai.com/v1"), None),
    ],
)
def test_who_bills_what(billing, dollars):
    assert reply_cost(billing, Usage(input=MILLION, output=MILLION)) == dollars
    assert has_price(billing) is (dollars is not None)


@pytest.mark.parametrize("provider", [preset.name for preset in PRESETS])
def test_of_every_preset_it_is_known_who_bills(provider):
    assert (provider in PROVIDER_IDS) != (provider in UNBILLED)


def test_the_price_list_knows_every_provider():
    found = subprocess.run(
        [sys.executable, "-c", "from genai_prices.data import providers; print(*(p.id for p in providers))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(PROVIDER_IDS.values()) <= set(found.stdout.split())


def test_without_the_package_no_price_is_known(monkeypatch):
    assert prices_are_installed()
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert not prices_are_installed()
    assert not has_price(LARGE)
    assert reply_cost(LARGE, Usage(input=5)) is None


def test_the_price_list_is_not_loaded_before_it_is_needed():
    code = "import sys, pytest_tooleval.measures.cost; print('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_a_run_costs_what_its_replies_cost():
    assert run_cost(LARGE, run(Usage(input=1_000), Usage(input=2_000, output=100))) == 0.0068


def test_a_price_that_rises_with_the_input_is_that_of_each_request():
    """Added up, the inputs would be beyond the bound; no request is."""
    long = Billing("openai", "long")
    assert run_cost(long, run(*[Usage(input=150_000)] * 4)) == 1.8
    assert run_cost(long, run(Usage(input=150_000), Usage(input=200_001))) == 1.650006
    assert run_cost(long, run(Usage(cache_read=150_000, input=60_000, output=1_000))) == 1.2825


@pytest.mark.parametrize(
    ("billing", "usages"),
    [
        (LARGE, ()),
        (LARGE, (None,)),
        (LARGE, (Usage(input=5), None)),
        (Billing("openai", "unknown"), (Usage(input=5),)),
        (Billing("mock", ""), (Usage(input=5),)),
    ],
)
def test_the_cost_of_a_run_is_unknown_when_that_of_one_reply_is(billing, usages):
    assert run_cost(billing, run(*usages)) is None


def test_the_replies_of_a_run_that_errored_later_are_billed():
    errored = Run("error", (UserMessage("t"), AssistantMessage("x", usage=Usage(output=MILLION))), turns=1)
    assert run_cost(LARGE, errored) == 8.0


def measured(verdict: Any, cost: float | None, tokens: int | None = 100, turns: int = 1) -> Measurement:
    record = {"cost": cost, "tokens": tokens, "turns": turns}
    return Measurement("tool_use", "n", "evals", "f", 0, "c", "m", verdict=verdict, record=record)


def test_totals_of_nothing_are_unknown_and_not_zero():
    assert cost_totals([]) == CostTotals(0, 0, None, 0, None, None)


def test_misses_are_paid_for_by_the_cases_that_are_solved():
    totals = cost_totals(
        [measured("passed", 0.25, 100), measured("missed", 0.5, 300), measured("passed", 0.25, 200)]
    )
    assert totals == CostTotals(3, 3, 1.0, 2, 0.5, 300.0)


def test_where_nothing_is_solved_there_is_no_cost_per_solved_case():
    assert cost_totals([measured("missed", 0.5)]) == CostTotals(1, 1, 0.5, 0, None, None)


def test_a_total_is_unknown_when_one_run_is_and_it_is_told_how_many_are_known():
    totals = cost_totals([measured("passed", 0.25), measured("passed", None), measured("missed", 0.25)])
    assert (totals.runs, totals.priced, totals.cost, totals.cost_per_solved) == (3, 2, None, None)
    assert totals.tokens_per_solved == 150.0


def test_tokens_per_solved_case_are_unknown_when_one_run_does_not_say():
    totals = cost_totals([measured("passed", 0.25, None), measured("passed", 0.25)])
    assert (totals.cost, totals.cost_per_solved, totals.tokens_per_solved) == (0.5, 0.25, None)


def test_what_errored_is_paid_and_yet_not_measured():
    totals = cost_totals(
        [
            measured("passed", 0.25),
            measured("error", 0.75),
            measured("error", None, None, turns=0),
            Measurement("tool_use", "n", "evals", "f", 0, "c", "m", verdict="skipped"),
        ]
    )
    assert totals == CostTotals(2, 2, 1.0, 1, 0.25, 100.0)


@pytest.fixture
def own_price_list() -> Iterator[None]:
    others = data_snapshot.get_snapshot()
    data_snapshot.set_custom_snapshot(None)
    yield
    data_snapshot.set_custom_snapshot(others)


def test_with_the_list_that_comes_with_the_package(own_price_list):
    usage = Usage(input=86, cache_read=1_920, output=300, reasoning=100)
    prices = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai").model_price
    expected = 86 * prices.input_mtok + 1_920 * prices.cache_read_mtok + 300 * prices.output_mtok
    assert reply_cost(Billing("openai", "gpt-4o"), usage) == float(expected / MILLION)
    assert prices.cache_read_mtok < prices.input_mtok
    for billing in (
        Billing("anthropic", "claude-sonnet-4-5"),
        Billing("openrouter", "anthropic/claude-sonnet-4.5"),
    ):
        assert has_price(billing)
    assert has_price(Billing("azure", "gpt-4o", "https://mine.openai.azure.com/openai/v1"))
    assert not has_price(Billing("azure", "my-deployment", "https://mine.openai.azure.com/openai/v1"))
