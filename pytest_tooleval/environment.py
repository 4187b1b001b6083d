"""What the cases of a suite run with: its tools, its targets, its gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import platformdirs
import pytest

from pytest_tooleval.agent.loop import DEFAULT_SYSTEM_PROMPT, AgentSettings
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.registry import FixtureRegistry
from pytest_tooleval.cases.suite import Suite, load_suite
from pytest_tooleval.errors import CaseError, ConfigError, Problem
from pytest_tooleval.families.tool_use import ToolUseRunner
from pytest_tooleval.gates.thresholds import THRESHOLDS_FILE, Gate, load_thresholds, unknown_ids
from pytest_tooleval.providers.presets import ProviderRegistry
from pytest_tooleval.providers.provider import Provider, Sampling
from pytest_tooleval.providers.target import Target, parse_targets
from pytest_tooleval.settings import Settings
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import ToolLimits


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target and its opened provider."""

    name: str
    provider: Provider


@dataclass(frozen=True, slots=True)
class SuiteEnvironment:
    """A loaded suite, and all that its cases need.

    Attributes:
        suite: the cases and what is wrong with files.
        targets: what is measured.
        runner: runs a case.
        gates: the gates of every corpus of the suite.
        trials: how often each case is run on each target.

    """

    suite: Suite
    targets: tuple[OpenTarget, ...]
    runner: ToolUseRunner
    gates: tuple[Gate, ...]
    trials: int

    def close(self) -> None:
        """Release the providers' connections."""
        for target in self.targets:
            target.provider.close()


def load_environment(
    folder: Path, config: pytest.Config, hook: Any, settings: Settings, worktrees: WorktreeRoot
) -> SuiteEnvironment:
    """Load a suite and open what it runs with.

    Args:
        folder: the suite's folder.
        config: the run's configuration.
        hook: the folder's hook caller, which hears the folder's conftest.
        settings: the options.
        worktrees: where cases' folders are made.

    Raises:
        ConfigError: a target cannot be opened, or a registration is wrong.

    """

    def shown(path: Path) -> Path:
        return relative_to_root(path, config)

    contributed = FixtureRegistry(bundled=settings.bundled)
    hook.pytest_tooleval_register_fixtures(fixtures=contributed)
    suite = load_suite(folder, shown, (contributed, _global_fixtures()))
    tools = ToolRegistry()
    hook.pytest_tooleval_register_tools(tools=tools)
    _report_unknown_tools(suite, tools, shown)
    runner = ToolUseRunner(tools, worktrees, _agent_settings(settings), _limits(settings), settings.keep_worktrees)
    gates = tuple(_load_gates(suite, shown))
    return SuiteEnvironment(suite, tuple(open_targets(hook, settings)), runner, gates, settings.trials)


def relative_to_root(path: Path, config: pytest.Config) -> Path:
    """Return a file's name in messages and results: relative to the root folder where it lies below it."""
    return path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path


def targets_of(settings: Settings) -> tuple[Target, ...]:
    """Return the targets that the options name.

    Raises:
        ConfigError: they cannot be told apart.

    """
    return parse_targets(
        settings.providers, settings.model, settings.provider_url, settings.request_timeout, settings.retries
    )


def open_targets(hook: Any, settings: Settings) -> Iterator[OpenTarget]:
    """Open the providers of every target.

    Raises:
        ConfigError: a provider is unknown, or its key, model or URL is missing or wrong.

    """
    registry = ProviderRegistry()
    hook.pytest_tooleval_register_providers(providers=registry)
    for target in targets_of(settings):
        yield OpenTarget(target.name, registry.open(target.provider, target.settings))


def _global_fixtures() -> FixtureRegistry:
    registry = FixtureRegistry()
    folder = platformdirs.user_config_path("pytest-tooleval", appauthor=False) / "fixtures"
    if folder.is_dir():
        registry.add_folder(folder)
    return registry


def _report_unknown_tools(suite: Suite, tools: ToolRegistry, shown: Any) -> None:
    """Move cases that deny tools which do not exist to the faults: they would measure something else."""
    for path, cases in list(suite.local.items()):
        problems = [problem for found in cases for problem in _unknown_tools(found.case, tools, shown)]
        if problems:
            suite.faults[path] = CaseError(problems)
            del suite.local[path]
    for found in list(suite.registered):
        problems = list(_unknown_tools(found.case, tools, shown))
        if problems:
            suite.faults[found.case.source.path] = CaseError(problems)
            suite.registered.remove(found)


def _unknown_tools(case: ToolUseCase, tools: ToolRegistry, shown: Any) -> Iterator[Problem]:
    for message in tools.unknown_names(case):
        yield Problem(shown(case.source.path), f"{case.id}: {message}", case.source.line)


def _load_gates(suite: Suite, shown: Any) -> Iterator[Gate]:
    """Load the gates of each corpus; a threshold file that is wrong is one of the suite's faults."""
    for corpus in dict.fromkeys([*suite.corpora, suite.root]):
        path = corpus / THRESHOLDS_FILE
        if not path.is_file():
            continue
        try:
            gates = load_thresholds(path, shown(path), shown(corpus).as_posix())
            if not suite.faults:
                _check_ids(gates, (found.case.id for found in suite.cases() if found.corpus == corpus))
        except CaseError as error:
            suite.faults[path] = error
        else:
            yield from gates


def _check_ids(gates: list[Gate], known: Iterable[str]) -> None:
    problems = unknown_ids(gates, list(known))
    if problems:
        raise CaseError(problems)


def _agent_settings(settings: Settings) -> AgentSettings:
    tool_choice = cast(Literal["auto", "required", "none"], settings.tool_choice)
    sampling = Sampling(tool_choice, settings.temperature, settings.max_output_tokens, settings.seed)
    return AgentSettings(settings.system_prompt or DEFAULT_SYSTEM_PROMPT, sampling, settings.max_turns)


def _limits(settings: Settings) -> ToolLimits:
    return ToolLimits(result_chars=settings.result_chars, command_seconds=settings.command_timeout)


def check_targets_early(config: pytest.Config, settings: Settings) -> None:
    """Refuse targets of the command line that cannot be opened before anything is collected.

    A provider that only a suite's conftest registers, and that conftest is not loaded yet, is let pass here.

    Raises:
        UsageError: a provider is unknown, or its key, model or URL is missing or wrong.

    """
    registry = ProviderRegistry()
    unheard = [f for f in settings.suites if _has_unheard_conftest(config, f)]
    try:
        config.hook.pytest_tooleval_register_providers(providers=registry)
        for target in targets_of(settings):
            if target.provider in registry.names or not unheard:
                registry.open(target.provider, target.settings).close()
    except ConfigError as error:
        raise pytest.UsageError(f"tooleval: {error}") from None


def _has_unheard_conftest(config: pytest.Config, folder: Path) -> bool:
    conftest = folder / "conftest.py"
    return conftest.is_file() and not config.pluginmanager.has_plugin(str(conftest))
