"""A tool-use case as a pytest item: the model's turn is the set-up, the judgement is the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.cases.suite import SuiteCase
from pytest_tooleval.environment import OpenTarget, SuiteEnvironment, relative_to_root
from pytest_tooleval.families import tool_use
from pytest_tooleval.families.tool_use import ToolUseResult
from pytest_tooleval.measures.measurement import Measurement, Verdict
from pytest_tooleval.reports.failure import failure_text


class MissedError(Exception):
    """The model did not do what the case demands; the item's failure text says what."""


class NotMeasuredError(Exception):
    """The infrastructure kept the case from being measured."""


class ToolUseItem(pytest.Item):
    """One case on one target in one trial."""

    def __init__(
        self, *, found: SuiteCase, target: OpenTarget, trial: int, environment: SuiteEnvironment, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.found = found
        self.target = target
        self.trial = trial
        self.environment = environment
        self.result: ToolUseResult | None = None
        self.extra_keyword_matches.add(self.path.name)
        for tag in found.case.tags:
            self.add_marker(_mark(self.config, tag))

    def setup(self) -> None:
        """Let the model work on the case."""
        case = self.found.case
        self.result = None
        reason = self.target.provider.cannot_run(case)
        if reason is not None:
            pytest.skip(reason)
        self.result = self.environment.runner.run(case, self.target.provider)
        if self.result.run.status not in {"ok", "truncated"}:
            raise NotMeasuredError(self.result.run.detail)

    def runtest(self) -> None:
        """Judge what it did."""
        if self.result is not None and not self.result.passed:
            raise MissedError

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return what was expected and what happened in place of a traceback."""
        if self.result is not None and isinstance(excinfo.value, MissedError):
            return failure_text(self.found.case, tool_use.record(self.found.case, self.result))
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the case's file, its 0-based line, and the item's name."""
        return self.path, self.found.case.source.line - 1, self.name

    def measurement(self, verdict: Verdict, reason: str = "", *, deferred: bool = False) -> Measurement:
        """Return what was measured, for the report that carries it home."""
        case = self.found.case
        result = self.result
        return Measurement(
            family=tool_use.FAMILY,
            nodeid=self.nodeid,
            corpus=relative_to_root(self.found.corpus, self.config).as_posix(),
            file=relative_to_root(case.source.path, self.config).as_posix(),
            index=case.source.index,
            id=case.id,
            target=self.target.name,
            trial=self.trial,
            tags=case.tags,
            verdict=verdict,
            reason=reason,
            deferred=deferred,
            worktree=result.worktree if result else "",
            record=tool_use.record(case, result) if result else {},
        )


def _mark(config: pytest.Config, tag: str) -> pytest.MarkDecorator:
    """Return a tag's mark, declared so that `--strict-markers` knows it."""
    declared = config.getini("markers")
    line = f"{tag}: tag of tool-use cases"
    if line not in declared:
        config.addinivalue_line("markers", line)
    mark: pytest.MarkDecorator = getattr(pytest.mark, tag)
    return mark
