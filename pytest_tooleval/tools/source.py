"""Where the tools of one case come from: the suite's own, and those of servers that the case names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import ToolContext


@dataclass(frozen=True, slots=True)
class CaseTools:
    """The tools of one case.

    Attributes:
        offer: those of the suite and those of the case's servers.
        notes: what was odd about the servers; whole when the case has given them back.

    """

    offer: Offer
    notes: list[str] = field(default_factory=list)


class ToolSource(Protocol):
    """Adds to a suite's tools what a case names beyond them."""

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return why a case cannot be run here, with what mends it, or None."""
        ...

    def offer(
        self, case: ToolUseCase, base: Offer, context: ToolContext
    ) -> contextlib.AbstractContextManager[CaseTools]:
        """Give a case's tools for the time of one run.

        Raises:
            ToolUnavailableError: a server cannot be started or used, or what the case says of its tools is wrong.

        """
        ...

    def close(self) -> None:
        """Release what was started."""
        ...


class OwnToolsOnly:
    """Adds nothing: the suite has no servers."""

    def cannot_run(self, case: ToolUseCase) -> None:
        """Return None: a case that names a server is a fault of its file here."""
        del case

    @contextlib.contextmanager
    def offer(self, case: ToolUseCase, base: Offer, context: ToolContext) -> Iterator[CaseTools]:
        """Give the suite's own tools."""
        del case, context
        yield CaseTools(base)

    def close(self) -> None:
        """Do nothing: nothing was started."""
