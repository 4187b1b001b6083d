"""What is measured: a model, a search or a broker, each able to measure the cases of its family."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_tooleval.measures.outcome import CaseOutcome


class Target(Protocol):
    """One thing to measure. A target gets only cases of the family that it is made for."""

    @property
    def name(self) -> str:
        """How the target is called in item names, results and gates."""
        ...

    def cannot_run(self, case: Any) -> str | None:
        """Return the reason why this case has to be skipped here, or None."""
        ...

    def measure(self, case: Any, trial: int, /) -> CaseOutcome:
        """Measure a case once; what goes wrong with the infrastructure is an outcome with an error.

        Args:
            case: what to measure.
            trial: 1-based repetition, 1 for what gives the same each time.

        Raises:
            InfrastructureError: the case could not be measured.

        """
        ...

    def close(self) -> None:
        """Release what was opened."""
        ...
