"""Which tools the runs of a target are given, and on which way: offered all at once, or behind a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tooleval.agent.desk import DirectDesk, OpenDesk
from pytest_tooleval.cases.catalog import load_catalog, load_catalogs
from pytest_tooleval.errors import CaseError, ConfigError
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import Provider
from pytest_tooleval.tools.distractors import DistractorPool
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool

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


def load_pool(path: Path, shown: Path, own: Mapping[str, Tool], most: int) -> DistractorPool:
    """Return the tools of a catalog file, or of a folder of them, as distractors.

    Args:
        path: the file or folder.
        shown: its name in messages.
        own: the suite's own tools, by name.
        most: how many are needed beside these.

    Raises:
        ConfigError: a file is wrong, or there are not so many.

    """
    try:
        pool = DistractorPool(load_catalogs([path]) if path.is_dir() else load_catalog(path, shown))
    except CaseError as error:
        raise ConfigError(str(error)) from None
    there = pool.count_beside(Offer(own, {}))
    if there < most:
        raise ConfigError(
            f"{shown} has {there} tools that can stand beside the suite's own, and --tooleval-distractors asks for "
            f"{most}: tools of one name count once, and none may have the name of one of the suite's"
        )
    return pool


def open_tool_sets(
    variants: Sequence[ToolSetVariant], pool: DistractorPool | None
) -> dict[ToolSetVariant, ToolSet]:
    """Return the tools of each variant; those behind a broker share their catalogs."""
    catalogs = None
    if any(variant.is_brokered for variant in variants):
        from pytest_tooleval.agent.brokered import BrokerCatalogs

        catalogs = BrokerCatalogs()
    return {
        variant: ToolSet(variant, pool if variant.distractors else None, catalogs if variant.is_brokered else None)
        for variant in variants
    }
