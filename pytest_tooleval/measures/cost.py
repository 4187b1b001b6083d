"""What runs cost: tokens always, money where the price list knows the model.

The list is the package `genai-prices` (extra `prices`). It comes with the package: nothing is fetched. An unknown
price is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from math import fsum
from typing import TYPE_CHECKING

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.transcript import AssistantMessage, Run, Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

PRICE_PACKAGE = "genai-prices"
UNBILLED = frozenset({"mock", "ollama", "llamacpp", "vllm", "lmstudio"})
"""Providers that nobody bills by the token: the scripted one, and servers of one's own."""

PROVIDER_IDS = {
    "anthropic": "anthropic",
    "azure": "azure",
    "deepseek": "deepseek",
    "gemini": "google",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openai-responses": "openai",
    "openrouter": "openrouter",
    "together": "together",
    "xai": "x-ai",
}
"""The price list's ids of providers, by the names that `--provider` takes."""


@dataclass(frozen=True, slots=True)
class Billing:
    """Who bills a target's tokens, and by which model's prices.

    Attributes:
        provider: the provider's registered name.
        model: the model's name, as the provider is asked for it.
        url: base URL that is asked in place of the provider's own, or None. Then it alone tells who bills: a hosted
            API that the price list knows, or nobody that is known.

    """

    provider: str
    model: str
    url: str | None = None

    @property
    def is_unbilled(self) -> bool:
        """Whether nobody bills the target by the token."""
        return self.provider in UNBILLED


@dataclass(frozen=True, slots=True)
class CostTotals:
    """What the runs of one target cost, each trial a run of its own.

    Attributes:
        runs: runs in which the model replied, those included that errored later.
        priced: those whose cost is known.
        cost: US dollars of all of them; None when one is not known, or there is none.
        solved: measured runs that passed.
        cost_per_solved: US dollars of all measured runs, divided by those that passed; None when one is not known,
            or none passed.
        tokens_per_solved: their tokens, likewise.

    """

    runs: int = 0
    priced: int = 0
    cost: float | None = None
    solved: int = 0
    cost_per_solved: float | None = None
    tokens_per_solved: float | None = None


def prices_are_installed() -> bool:
    """Whether the price list is there."""
    return find_spec("genai_prices") is not None


def has_price(billing: Billing) -> bool:
    """Whether the price of a target's tokens is known."""
    return _price(billing, Usage(input=1, output=1)) is not None


def run_cost(billing: Billing, run: Run) -> float | None:
    """Return the US dollars of a run's replies at today's list prices.

    Tokens read from or written to a cache have prices of their own, and the input's where the list has none.
    Reasoning is part of the output. Each reply is priced by itself: some prices rise with the length of one
    request's input.

    Returns:
        The sum; None when there is no reply, or one of which the usage or the price is not known.

    """
    usages = [message.usage for message in run.messages if isinstance(message, AssistantMessage)]
    prices = [None if usage is None else _price(billing, usage) for usage in usages]
    known = [price for price in prices if price is not None]
    return float(sum(known, Decimal())) if known and len(known) == len(prices) else None


def cost_totals(measurements: Iterable[Measurement]) -> CostTotals:
    """Add up what the runs of one target cost.

    Args:
        measurements: of their records `turns`, `cost` and `tokens` are read.

    """
    found = list(measurements)
    replied = [each.record.get("cost") for each in found if each.record.get("turns")]
    measured = [each.record for each in found if each.measured]
    solved = sum(each.verdict == "passed" for each in found)
    return CostTotals(
        runs=len(replied),
        priced=sum(cost is not None for cost in replied),
        cost=_sum(replied),
        solved=solved,
        cost_per_solved=_per_solved([record.get("cost") for record in measured], solved),
        tokens_per_solved=_per_solved([record.get("tokens") for record in measured], solved),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) if known and len(known) == len(values) else None


def _per_solved(values: Sequence[float | None], solved: int) -> float | None:
    total = _sum(values)
    return None if total is None or not solved else total / solved


def _price(billing: Billing, usage: Usage) -> Decimal | None:
    """Return the price of one reply in US dollars, or None."""
    provider = PROVIDER_IDS.get(billing.provider)
    if billing.is_unbilled or (provider is None and billing.url is None):
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
    try:
        if billing.url is not None:
            found = genai_prices.calc_price(tokens, billing.model, provider_api_url=billing.url)
        else:
            found = genai_prices.calc_price(tokens, billing.model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return found.total_price if _is_complete(found) else None


def _is_complete(found: PriceCalculation) -> bool:
    """Whether the list has both prices of a model: it has empty entries too, which are free only by the name."""
    prices = found.model_price
    return found.model.id.endswith(":free") or None not in (prices.input_mtok, prices.output_mtok)
