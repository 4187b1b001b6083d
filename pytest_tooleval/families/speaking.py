"""Who speaks for the model in a run: its provider, or a cassette."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_tooleval.agent.worktree import Worktree
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.providers.places import Places
from pytest_tooleval.providers.provider import Provider

if TYPE_CHECKING:
    from pytest_tooleval.providers.replay import CassetteShelf


class Speech(NamedTuple):
    """What answers in one run, and how to keep what it said; `keep` raises ProviderError where it cannot."""

    provider: Provider
    keep: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Speaks for one target in one trial of a case.

    Attributes:
        provider: the opened model API; None where only cassettes are played.
        target: the target's name.
        trial: 1-based repetition of the case.
        shelf: the cassettes, or None where nothing is recorded and nothing replayed.

    """

    provider: Provider | None
    target: str = ""
    trial: int = 1
    shelf: CassetteShelf | None = None

    def open(self, case: ToolUseCase, worktree: Worktree | None = None) -> Speech:
        """Return what answers in a run that works in `worktree`, if in any.

        Raises:
            ValueError: there is neither a provider nor a shelf.

        """
        if self.shelf is not None:
            conversation = self.shelf.conversation(case, self.target, self.trial, self.provider, _places(worktree))
            return Speech(conversation, conversation.save)
        if self.provider is None:
            raise ValueError(f"nobody speaks for {self.target}: there is no provider and no cassette")
        return Speech(self.provider, _keep_nothing)


def _places(worktree: Worktree | None) -> Places:
    if worktree is None:
        return Places()
    return Places(str(worktree.path), worktree.environment["HOME"], worktree.environment["TMPDIR"])


def _keep_nothing() -> None:
    """Stand for keeping what is not recorded."""
