"""Which tools the runs of a target are given, and on which way: offered all at once, or behind a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tooleval.agent.desk import DirectDesk, OpenDesk
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import Provider
from pytest_tooleval.tools.distractors import DistractorPool
from pytest_tooleval.tools.registry import Offer

if TYPE_CHECKING:
    from pytest_tooleval.agent.brokered import BrokerCatalogs

DIRECT, BROKER = "direct", "broker"


@dataclass(frozen=True, slots=True)
class ToolSetVariant:
    """What one target of a model has that the others have not.

    Attributes:
        way: how tools are reached, `direct` or `broker`.
        distractors: how many tools stand beside those of the case.

    """

    way: str = DIRECT
    distractors: int = 0

    @property
    def suffix(self) -> str:
        """What the target's name ends with: `+100+broker`; nothing for the tools of the case, offered at once."""
        count = f"+{self.distractors}" if self.distractors else ""
        return f"{count}+{BROKER}" if self.is_brokered else count

    @property
    def is_brokered(self) -> bool:
        """Whether tools are found, described and called through a broker."""
        return self.way == BROKER


def variants_of(ways: Sequence[str], distractors: Sequence[int]) -> tuple[ToolSetVariant, ...]:
    """Return every variant that is measured: on each way the tools of the case alone, then with distractors."""
    return tuple(ToolSetVariant(way, count) for way in ways for count in (0, *distractors))


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of one target's runs.

    Attributes:
        variant: what is told of them.
        pool: where distractors come from, None where there are none.
        catalogs: the broker's, None where tools are offered at once.

    """

    variant: ToolSetVariant = ToolSetVariant()
    pool: DistractorPool | None = None
    catalogs: BrokerCatalogs | None = None

    def of_case(self, own: Offer) -> Offer:
        """Return the tools of a case with the distractors.

        Raises:
            ToolUnavailableError: there are not enough of these.

        """
        return own if self.pool is None else self.pool.added_to(own, self.variant.distractors)

    @property
    def open_desk(self) -> OpenDesk:
        """What puts the tools before the model."""
        return DirectDesk if self.catalogs is None else self.catalogs.open_desk

    def played(self, provider: Provider, offer: Offer) -> Provider:
        """Return the provider, or where it plays a script one that plays it through the broker."""
        if self.catalogs is None or not isinstance(provider, MockProvider):
            return provider
        from pytest_tooleval.agent.brokered import ScriptThroughBroker

        return ScriptThroughBroker(provider, offer)
