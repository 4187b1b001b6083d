"""What a run may spend in all, over every target and every process of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.measures.cost import PRICE_PACKAGE, Billing, has_price, prices_are_installed
from pytest_tooleval.measures.outcome import CaseOutcome


class Budget:
    """Begins no case once so many tokens or dollars are spent. Safe to use from many threads and processes.

    Runs that are under way when the budget is spent go on, so more may be spent than it allows. A target whose runs
    do not say what they used, or what they cost, is not run any further: the budget could not be kept.

    Args:
        max_tokens: most tokens, or None.
        max_cost: most US dollars, or None.
        unbilled: names of targets that cost nothing, as `check_prices` gives them.
        ledger: file that every process of the run appends to; None for one process. It is made when it is needed.

    """

    def __init__(
        self,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        unbilled: Collection[str] = (),
        ledger: Path | None = None,
    ) -> None:
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._unbilled = frozenset(unbilled)
        self._ledger = None if ledger is None else _Ledger(ledger)
        self._guard = threading.Lock()
        self._tokens = 0
        self._cost = 0.0
        self._untold: dict[str, str] = {}
        self._broken = ""

    def measured(self, target: str, measure: Callable[[], CaseOutcome]) -> CaseOutcome:
        """Measure a case and count what it spent, or skip it because the budget does not allow it.

        Args:
            target: the target's name.
            measure: measures the case; of the outcome's record `turns`, `attempts`, `tokens` and `cost` are read.

        """
        if self._max_tokens is None and self._max_cost is None:
            return measure()
        reason = self.why_spent(target)
        if reason:
            return CaseOutcome(passed=False, skipped=reason)
        outcome = measure()
        self._spend(target, outcome.record)
        return outcome

    def why_spent(self, target: str) -> str:
        """Return why no more cases are begun on a target, else an empty string."""
        with self._guard:
            self._catch_up()
            return self._broken or self._untold.get(target, "") or self._why_over()

    def _why_over(self) -> str:
        if self._max_tokens is not None and self._tokens >= self._max_tokens:
            return f"the budget of {self._max_tokens} tokens is spent: {self._tokens} used"
        if self._max_cost is not None and self._cost >= self._max_cost:
            return f"the budget of ${self._max_cost:g} is spent: ${self._cost:.4g} used"
        return ""

    def _spend(self, target: str, record: Mapping[str, Any]) -> None:
        if not record.get("turns") or record.get("attempts") == 0:
            return  # nothing came back that would say what it used, or nothing was sent
        cost = 0.0 if target in self._unbilled else record.get("cost")
        entry = {"target": target, "tokens": record.get("tokens"), "cost": cost}
        with self._guard:
            if self._ledger is None:
                self._add(entry)
            else:
                self._note(self._ledger, entry)

    def _note(self, ledger: _Ledger, entry: Mapping[str, Any]) -> None:
        try:
            ledger.append(entry)
        except OSError as error:
            self._broken = f"the budget cannot be kept: what is spent cannot be noted: {error}"

    def _catch_up(self) -> None:
        if self._ledger is None:
            return
        try:
            for entry in self._ledger.news():
                self._add(entry)
        except (OSError, ValueError) as error:
            self._broken = f"the budget cannot be kept: what was spent cannot be read: {error}"

    def _add(self, entry: Mapping[str, Any]) -> None:
        tokens, cost, target = entry["tokens"], entry["cost"], entry["target"]
        self._tokens += tokens or 0
        self._cost += cost or 0.0
        if self._max_tokens is not None and tokens is None:
            self._untold[target] = (
                f"the budget of {self._max_tokens} tokens cannot be kept: {target} does not say how many it uses"
            )
        elif self._max_cost is not None and cost is None:
            self._untold[target] = (
                f"the budget of ${self._max_cost:g} cannot be kept: what a run of {target} costs is not known"
            )


class _Ledger:
    """A file of JSON lines that several processes append to, and each reads on from where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line; raises OSError when it cannot be written whole."""
        line = f"{json.dumps(entry)}\n".encode()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            written = os.write(descriptor, line)  # one write at the end of the file: lines do not mix
        finally:
            os.close(descriptor)
        if written < len(line):
            raise OSError(f"there is no room for {self._path}")

    def news(self) -> list[dict[str, Any]]:
        """Return the whole lines that were added since the last time.

        Raises:
            OSError: the file cannot be read, or what was read of it is gone.
            ValueError: it holds something else.

        """
        size = self._path.stat().st_size if self._path.exists() else 0
        if size < self._position:
            raise OSError(f"{self._path} was removed or cut")
        if size == self._position:
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            whole = file.read().rpartition(b"\n")[0]
        self._position += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]


def check_prices(targets: Iterable[tuple[str, Billing]]) -> frozenset[str]:
    """Return the names of the targets that cost nothing, for a run whose cost is limited.

    Args:
        targets: the name of each target, and who bills it.

    Raises:
        ConfigError: the price of a target is not known, so its cost cannot be limited.

    """
    found = list(targets)
    unbilled = frozenset(name for name, billing in found if billing.is_unbilled)
    unknown = [name for name, billing in found if name not in unbilled and not has_price(billing)]
    if not unknown:
        return unbilled
    if not prices_are_installed():
        raise ConfigError(
            f"--tooleval-max-cost needs the price list {PRICE_PACKAGE}: pip install 'pytest-tooleval[prices]'"
        )
    raise ConfigError(
        f"--tooleval-max-cost: no price is known for {', '.join(unknown)}; limit the tokens with "
        f"--tooleval-max-tokens, or update {PRICE_PACKAGE}"
    )
