"""A case as a pytest item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.suite import Case, SuiteCase
from pytest_tooleval.environment import SuiteEnvironment, relative_to_root
from pytest_tooleval.errors import InfrastructureError
from pytest_tooleval.families.budget import Budget
from pytest_tooleval.families.target import Target
from pytest_tooleval.families.tool_use import ToolUseTarget
from pytest_tooleval.measures.measurement import Measurement, Verdict
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.failure import failure_text
from pytest_tooleval.reports.gold_failure import gold_failure_text


class MissedError(Exception):
    """The target did not do what the case demands; the item's failure text says what."""


class NotMeasuredError(Exception):
    """The infrastructure kept the case from being measured."""


class CaseItem(pytest.Item):
    """One case on one target in one trial: measuring is the set-up, judging is the test."""

    def __init__(
        self, *, found: SuiteCase, target: Target, trial: int, environment: SuiteEnvironment, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.found = found
        self.target = target
        self.trial = trial
        self.environment = environment
        self.outcome: CaseOutcome | None = None
        self.extra_keyword_matches.add(self.path.name)
        for tag in found.case.tags:
            self.add_marker(_mark(self.config, tag))

    def setup(self) -> None:
        """Measure the case."""
        self.outcome = None
        reason = self.target.cannot_run(self.found.case)
        if reason is not None:
            pytest.skip(reason)
        try:
            outcome = self.environment.measure(self)
        except InfrastructureError as error:
            raise NotMeasuredError(str(error)) from None
        if outcome.skipped:
            pytest.skip(outcome.skipped)
        self.outcome = outcome
        if outcome.error:
            raise NotMeasuredError(outcome.error)

    def runtest(self) -> None:
        """Judge what was measured."""
        if self.outcome is not None and not self.outcome.passed:
            raise MissedError

    def teardown(self) -> None:
        """Let go of what was measured: the report has it."""
        self.outcome = None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return what was expected and what happened in place of a traceback."""
        if self.outcome is not None and isinstance(excinfo.value, MissedError):
            return _explanation(self.found.case, self.outcome.record)
        return super().repr_failure(excinfo, *args, **kwargs)

    def _repr_failure_py(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the reason where nothing was measured: pytest would format a traceback, for 0.1 s an item."""
        if isinstance(excinfo.value, NotMeasuredError):
            return str(excinfo.value)
        return super()._repr_failure_py(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the case's file, its 0-based line, and a headline.

        That is the item's name; one with a dot is not told alone, or pytest would show `::` for the dot under `-v`.
        """
        headline = f"case {self.name}" if "." in self.name.partition("[")[0] else self.name
        return self.path, self.found.case.source.line - 1, headline

    @property
    def time_limit(self) -> float | None:
        """The most seconds that measuring the case may take, or None."""
        case, target = self.found.case, self.target
        return (
            target.time_limit(case) if isinstance(case, ToolUseCase) and isinstance(target, ToolUseTarget) else None
        )

    def known_skip(self) -> str:
        """Return why it is known before the run that the item will not be measured, else an empty string."""
        if self.get_closest_marker("skip") is not None:
            return "marked skip"
        return self.target.cannot_run(self.found.case) or ""

    @property
    def key(self) -> tuple[str, Path, str, str]:
        """What the trials of one case on one target have in common."""
        case = self.found.case
        return case.family, case.source.path, case.id, self.target.name

    @property
    def is_gold(self) -> bool:
        """Whether the case is a gold set's."""
        return self.found.case.family != "tool_use"

    def measurement(self, verdict: Verdict, reason: str = "", *, deferred: bool = False) -> Measurement:
        """Return what was measured, for the report that carries it home."""
        case = self.found.case
        outcome = self.outcome or CaseOutcome(passed=False)
        return Measurement(
            family=case.family,
            nodeid=self.nodeid,
            corpus=relative_to_root(self.found.corpus.root, self.config).as_posix(),
            file=relative_to_root(case.source.path, self.config).as_posix(),
            index=case.source.index,
            id=case.id,
            target=self.target.name,
            trial=self.trial,
            tags=tuple(case.tags),
            verdict=verdict,
            reason=reason,
            deferred=deferred,
            worktree=outcome.worktree,
            record=outcome.record,
        )


Measure: TypeAlias = Callable[[CaseItem], CaseOutcome]


def measure(item: CaseItem) -> CaseOutcome:
    """Measure an item, in whatever thread; raises what its target raises."""
    return item.target.measure(item.found.case, item.trial)


def measure_within(budget: Budget, item: CaseItem) -> CaseOutcome:
    """Measure an item where the budget allows it: gold rows cost nothing."""
    if item.is_gold:
        return measure(item)
    return budget.measured(item.target.name, lambda: measure(item))


def _explanation(case: Case, record: Mapping[str, Any]) -> str:
    return failure_text(case, record) if isinstance(case, ToolUseCase) else gold_failure_text(case, record)


def _mark(config: pytest.Config, tag: str) -> pytest.MarkDecorator:
    """Return a tag's mark, declared so that `--strict-markers` knows it."""
    declared = config.getini("markers")
    line = f"{tag}: tag of cases that tooleval runs"
    if line not in declared:
        config.addinivalue_line("markers", line)
    mark: pytest.MarkDecorator = getattr(pytest.mark, tag)
    return mark
