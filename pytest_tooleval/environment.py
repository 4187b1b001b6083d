"""What the cases of a suite run with: its tools, its targets, its gates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import platformdirs
import pytest

from pytest_tooleval.agent.loop import DEFAULT_SYSTEM_PROMPT, AgentSettings
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.cases.registry import FixtureRegistry
from pytest_tooleval.cases.suite import Case, Suite, SuiteCase, load_suite
from pytest_tooleval.errors import CaseError, ConfigError, Problem
from pytest_tooleval.families.budget import Budget, check_prices
from pytest_tooleval.families.first_call import FirstCallTarget
from pytest_tooleval.families.names import BROKER, HYBRID, LEXICAL
from pytest_tooleval.families.target import Target as FamilyTarget
from pytest_tooleval.families.tool_sets import ToolSet, ToolSetVariant, load_pool, open_tool_sets, variants_of
from pytest_tooleval.families.tool_use import ToolUseRunner, ToolUseTarget
from pytest_tooleval.gates.thresholds import THRESHOLDS_FILE, Gate, load_thresholds, unknown_ids
from pytest_tooleval.measures.cost import Billing
from pytest_tooleval.options import FAMILIES
from pytest_tooleval.providers.presets import ProviderRegistry, parse_provider_line
from pytest_tooleval.providers.provider import Provider, ProviderSettings, Sampling
from pytest_tooleval.providers.target import Target, parse_targets
from pytest_tooleval.redaction import Redaction
from pytest_tooleval.settings import IN_SUITE, Settings
from pytest_tooleval.tools.mcp.config import CONFIG_FILE, McpConfig, load_mcp_config, named_values
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.source import OwnToolsOnly, ToolSource
from pytest_tooleval.tools.tool import ToolLimits

if TYPE_CHECKING:
    from pytest_tooleval.families.gold import CorpusTargets, GoldSettings
    from pytest_tooleval.items import Measure
    from pytest_tooleval.providers.replay import CassetteShelf

MOCK = "mock"


@dataclass(frozen=True)
class SuiteEnvironment:
    """A loaded suite, and all that its cases need.

    Attributes:
        suite: the cases and what is wrong with files.
        models: what tool-use cases are run on.
        engines: the names of the searches that are measured.
        gold: what holds for the rows of gold sets, or None where there are none.
        tools: what tool-use cases can be offered.
        gates: the gates of every corpus of the suite.
        trials: how often each tool-use case is run on each model.
        measure: measures an item, or waits for what a thread measures.
        servers: the MCP servers whose tools tool-use cases can name.

    """

    suite: Suite
    models: tuple[ToolUseTarget, ...]
    engines: tuple[str, ...]
    gold: GoldSettings | None
    tools: ToolRegistry
    gates: tuple[Gate, ...]
    trials: int
    measure: Measure
    servers: ToolSource

    @cached_property
    def _targets_by_corpus(self) -> dict[Path, CorpusTargets]:
        return {}

    def targets_of(self, found: SuiteCase) -> Sequence[FamilyTarget]:
        """Return what a case is run on.

        Raises:
            ConfigError: an engine could not be made.

        """
        if found.case.family == "tool_use":
            return self.models
        if self.gold is None:
            raise RuntimeError(f"{found.case.id} is a gold row, and the suite had none when it was loaded")
        corpus = found.corpus
        if corpus.root not in self._targets_by_corpus:
            from pytest_tooleval.families.gold import CorpusTargets

            self._targets_by_corpus[corpus.root] = CorpusTargets(corpus.catalog or Catalog(), self.gold)
        return self._targets_by_corpus[corpus.root].of(found.case.family)

    def target_names(self) -> dict[str, list[str]]:
        """Return the names of what each family is run on."""
        remote = [self.gold.broker.name] if self.gold is not None and self.gold.broker is not None else []
        names = {family: remote or [BROKER] for family in FAMILIES}
        return names | {
            "tool_use": [model.name for model in self.models],
            "discovery": [*remote, *self.engines],
        }

    def without_semantic_leg(self) -> frozenset[str]:
        """Return the targets on which only lexical search runs."""
        if self.gold is None:
            return frozenset({LEXICAL, BROKER})
        is_ours = self.gold.broker is None and self.gold.semantic_leg is None
        return frozenset({LEXICAL, BROKER}) if is_ours else frozenset({LEXICAL})

    def item_count(self) -> int:
        """Return how many items the suite's cases make when nothing is left out."""
        targets = {family: len(names) for family, names in self.target_names().items()}
        return sum(targets[found.case.family] * self.trials_of(found.case) for found in self.suite.cases())

    def gold_provenance(self, targets: Collection[str]) -> dict[str, Any]:
        """Return what gold sets are measured with.

        Args:
            targets: the names of the searches and brokers that are measured.

        """
        if self.gold is None:
            return {}
        with_leg = {HYBRID, BROKER} - self.without_semantic_leg()
        return {
            "model": self.gold.model,
            "semanticRan": not with_leg.isdisjoint(targets),
            "tokenEstimator": self.gold.estimator.name,
        }

    def trials_of(self, case: Case) -> int:
        """Return how often a case is run on each target: what computes its answer gives the same each time."""
        return self.trials if case.family == "tool_use" else 1

    def close(self) -> None:
        """Release what the targets hold."""
        for provider in {id(model.provider): model.provider for model in self.models}.values():
            if provider is not None:
                provider.close()
        for targets in self._targets_by_corpus.values():
            targets.close()
        self.servers.close()


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What all suites of a process have in common.

    Attributes:
        worktrees: where cases' folders are made.
        measure: measures an item, or waits for what a thread measures.
        redaction: keeps secrets out of what is written.
        stop: set when runs are to end because nobody waits for them any more.

    """

    worktrees: WorktreeRoot
    measure: Measure
    redaction: Redaction
    stop: threading.Event


def load_environment(
    folder: Path, config: pytest.Config, hook: Any, settings: Settings, shared: SharedParts
) -> SuiteEnvironment:
    """Load a suite and open what it runs with.

    Args:
        folder: the suite's folder.
        config: the run's configuration.
        hook: the folder's hook caller, which hears the folder's conftest.
        settings: the options.
        shared: what all suites of the process have in common.

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
    mcp = _mcp_config(folder, settings, shown)
    shared.redaction.learn(named_values(mcp))
    _report_unknown_tools(suite, lambda case: [*tools.unknown_names(case), *mcp.unknown_names(case)], shown)
    servers = _servers(mcp)
    gates = list(_load_gates(suite, shown))
    if settings.family:
        _keep_families(suite, settings.family)
        gates = [gate for gate in gates if gate.family in settings.family]
    runner = ToolUseRunner(
        tools=tools,
        worktrees=shared.worktrees,
        servers=servers,
        settings=_agent_settings(settings),
        limits=_limits(settings),
        keep_worktrees=settings.keep_worktrees,
        seconds=settings.timeout,
        stop=shared.stop,
    )
    shelf = _cassettes(folder, settings, shared.redaction, shown)
    return SuiteEnvironment(
        suite=suite,
        models=tuple(_open_models(hook, settings, runner, _tool_sets(settings, tools, shown), shelf)),
        engines=settings.engine_names,
        gold=_gold_settings(suite, config, hook, settings, mcp),
        tools=tools,
        gates=tuple(gates),
        trials=settings.trials,
        measure=shared.measure,
        servers=servers,
    )


def _cassettes(folder: Path, settings: Settings, redaction: Redaction, shown: Any) -> CassetteShelf | None:
    mode = settings.cassette_mode
    if mode is None:
        return None
    from pytest_tooleval.providers.replay import CassetteShelf

    named = settings.record if mode == "record" else settings.replay
    where = folder / "cassettes" if named is None or named == IN_SUITE else named
    if where == named and sum(suite.is_dir() for suite in settings.suites) > 1:
        where = named / shown(folder)  # cases of two suites may have one id
    return CassetteShelf(where, mode, redaction.text, redaction.holds_secret, shown(where))


def _keep_families(suite: Suite, families: Collection[str]) -> None:
    suite.registered[:] = [found for found in suite.registered if found.case.family in families]
    for path, cases in suite.local.items():
        suite.local[path] = [found for found in cases if found.case.family in families]


def _mcp_config(folder: Path, settings: Settings, shown: Any) -> McpConfig:
    """Return the servers of the file that the options name, or of the one beside the suite's cases."""
    path = settings.mcp_config or folder / CONFIG_FILE
    if settings.mcp_config is None and not path.is_file():
        return McpConfig(shown=shown(path))
    try:
        return load_mcp_config(path, shown(path))
    except CaseError as error:
        raise ConfigError(str(error)) from None


def _servers(config: McpConfig) -> ToolSource:
    if not config.servers:
        return OwnToolsOnly()
    from pytest_tooleval.tools.mcp.servers import McpServers

    return McpServers(config)


def _gold_settings(
    suite: Suite, config: pytest.Config, hook: Any, settings: Settings, mcp: McpConfig
) -> GoldSettings | None:
    if all(found.case.family == "tool_use" for found in suite.cases()):
        return None
    from pytest_tooleval.gold_environment import gold_settings

    return gold_settings(config, hook, settings, mcp.servers)


def relative_to_root(path: Path, config: pytest.Config) -> Path:
    """Return a file's name in messages and results: relative to the root folder where it lies below it."""
    return _relative(path, config.rootpath)


@lru_cache(maxsize=4096)
def _relative(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def targets_of(settings: Settings) -> tuple[Target, ...]:
    """Return the targets that the options name.

    Raises:
        ConfigError: they cannot be told apart.

    """
    return parse_targets(
        settings.providers,
        settings.model,
        settings.provider_url,
        ProviderSettings(
            timeout=settings.request_timeout, retries=settings.retries, context_tokens=settings.context_tokens
        ),
    )


def targets_with_tools(settings: Settings) -> tuple[tuple[str, Target, ToolSetVariant], ...]:
    """Return every target with every set of tools that it is given, under the name that this is measured by.

    Raises:
        ConfigError: two have one name.

    """
    variants = variants_of(settings.tools, settings.distractors)
    found = {
        f"{each.name}{variant.suffix}": (each, variant) for each in targets_of(settings) for variant in variants
    }
    if len(found) < len(targets_of(settings)) * len(variants):
        raise ConfigError("a model is named as a target with other tools would be: measure it in a run of its own")
    return tuple((name, *pair) for name, pair in found.items())


def _open_models(
    hook: Any,
    settings: Settings,
    runner: ToolUseRunner,
    tool_sets: Mapping[ToolSetVariant, ToolSet],
    shelf: CassetteShelf | None,
) -> Iterator[ToolUseTarget]:
    """Yield what tool-use cases are run on; the targets of one model share its provider."""
    make_target = FirstCallTarget if settings.first_call else ToolUseTarget
    providers = dict(open_providers(hook, settings))
    for name, target, variant in targets_with_tools(settings):
        given = replace(runner, tool_set=tool_sets[variant])
        recorded = None if target.provider == MOCK else shelf
        yield make_target(name, providers.get(target), given, billing_of(target), recorded)


def _tool_sets(settings: Settings, tools: ToolRegistry, shown: Any) -> dict[ToolSetVariant, ToolSet]:
    variants = variants_of(settings.tools, settings.distractors)
    path = settings.distractor_catalog
    pool = None
    if path is not None and settings.distractors:
        pool = load_pool(path, shown(path), tools.tools, max(settings.distractors))
    return open_tool_sets(variants, pool)


def billing_of(target: Target) -> Billing:
    """Return who bills a target's tokens."""
    return Billing(target.provider, target.settings.model, target.settings.url)


def open_budget(settings: Settings, ledger: Path | None) -> Budget:
    """Return what the run may spend.

    Args:
        settings: the options.
        ledger: the file in which the processes of the run note what they spend, None where there is only one.

    Raises:
        ConfigError: the cost is limited, and the price of a target is not known.

    """
    unbilled: frozenset[str] = frozenset()
    if settings.max_cost is not None:
        unbilled = check_prices((name, billing_of(target)) for name, target, _ in targets_with_tools(settings))
    return Budget(settings.max_tokens, settings.max_cost, unbilled, ledger)


def open_providers(hook: Any, settings: Settings) -> Iterator[tuple[Target, Provider]]:
    """Yield every target with its opened provider; where only cassettes are played, none but `mock` is opened.

    Raises:
        ConfigError: a provider is unknown, or its key, model or URL is missing or wrong.

    """
    registry = _known_providers(hook, settings)
    for target in targets_of(settings):
        if _is_opened(target, settings):
            yield target, registry.open(target.provider, target.settings)


def _is_opened(target: Target, settings: Settings) -> bool:
    return settings.cassette_mode != "replay" or target.provider == MOCK


def _known_providers(hook: Any, settings: Settings) -> ProviderRegistry:
    registry = ProviderRegistry()
    hook.pytest_tooleval_register_providers(providers=registry)
    for line in settings.add_provider:
        registry.add_preset(parse_provider_line(line))
    return registry


def _global_fixtures() -> FixtureRegistry:
    registry = FixtureRegistry()
    folder = platformdirs.user_config_path("pytest-tooleval", appauthor=False) / "fixtures"
    if folder.is_dir():
        registry.add_folder(folder)
    return registry


def _report_unknown_tools(suite: Suite, unknown: Callable[[ToolUseCase], Iterable[str]], shown: Any) -> None:
    """Move cases that name tools or servers which do not exist to the faults: they would measure something else."""
    for path, cases in list(suite.local.items()):
        problems = [p for found in cases for p in _unknown_tools(found.case, unknown, shown)]
        if problems:
            suite.faults[path] = CaseError(problems)
            del suite.local[path]
    for found in list(suite.registered):
        problems = list(_unknown_tools(found.case, unknown, shown))
        if problems:
            suite.faults[found.case.source.path] = CaseError(problems)
            suite.registered.remove(found)


def _unknown_tools(case: Case, unknown: Callable[[ToolUseCase], Iterable[str]], shown: Any) -> Iterator[Problem]:
    for message in unknown(case) if isinstance(case, ToolUseCase) else ():
        yield Problem(shown(case.source.path), f"{case.id}: {message}", case.source.line)


def _load_gates(suite: Suite, shown: Any) -> Iterator[Gate]:
    """Load the gates of each corpus; a threshold file that is wrong is one of the suite's faults."""
    for corpus in dict.fromkeys([*(corpus.root for corpus in suite.corpora), suite.root]):
        path = corpus / THRESHOLDS_FILE
        if not path.is_file():
            continue
        try:
            gates = load_thresholds(path, shown(path), shown(corpus).as_posix())
            if not suite.faults:
                _check_ids(gates, _tool_use_ids(suite, corpus))
        except CaseError as error:
            suite.faults[path] = error
        else:
            yield from gates


def _tool_use_ids(suite: Suite, corpus: Path) -> Iterator[str]:
    for found in suite.cases():
        if found.corpus.root == corpus and found.case.family == "tool_use":
            yield found.case.id


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
    unheard = [f for f in settings.suites if _has_unheard_conftest(config, f)]
    try:
        registry = _known_providers(config.hook, settings)
        for target in targets_of(settings):
            if _is_opened(target, settings) and (target.provider in registry.names or not unheard):
                registry.open(target.provider, target.settings).close()
    except ConfigError as error:
        raise pytest.UsageError(f"tooleval: {error}") from None


def _has_unheard_conftest(config: pytest.Config, folder: Path) -> bool:
    conftest = folder / "conftest.py"
    return conftest.is_file() and not config.pluginmanager.has_plugin(str(conftest))
