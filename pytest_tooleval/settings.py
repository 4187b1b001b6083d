"""The options of one run, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from pytest_tooleval.families.names import HYBRID, LEXICAL
from pytest_tooleval.options import OPTIONS, given_on_command_line, option_value, suite_folders

CassetteMode: TypeAlias = Literal["record", "replay", "extend"]
IN_SUITE = Path()
"""Stands for the folder beside each suite's cases."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run, checked. The fields are the options of the same names."""

    suites: tuple[Path, ...]
    providers: tuple[str, ...]
    model: str | None
    provider_url: tuple[str, ...]
    add_provider: tuple[str, ...]
    tool_choice: str
    temperature: float | None
    max_output_tokens: int | None
    context_tokens: int | None
    seed: int | None
    system_prompt: str | None
    max_turns: int
    concurrency: int | None
    timeout: float | None
    record: Path | None
    replay: Path | None
    first_call: bool
    max_tokens: int | None
    max_cost: float | None
    tools: tuple[str, ...]
    distractors: tuple[int, ...]
    distractor_catalog: Path | None
    trials: int
    request_timeout: float
    retries: int
    command_timeout: float
    result_chars: int
    family: tuple[str, ...]
    engine: tuple[str, ...]
    semantic: bool
    embedder: str
    embedder_url: str | None
    mcp_config: Path | None
    broker: str | None
    broker_mapping: Path | None
    token_estimator: str
    bundled: bool
    keep_worktrees: bool
    json: Path | None
    snapshot: Path | None
    resume: bool
    no_run_log: bool
    baseline: Path | None
    strict: bool
    defer_gates: bool
    min_measured: float

    @property
    def cassette_mode(self) -> CassetteMode | None:
        """What is done with cassettes, or None where there are to be none."""
        if self.replay is None:
            return None if self.record is None else "record"
        return "replay" if self.record is None else "extend"

    @property
    def engine_names(self) -> tuple[str, ...]:
        """The searches to measure; by default the reference one, unless there is a broker to measure."""
        reference = () if self.broker else (HYBRID if self.semantic else LEXICAL,)
        return self.engine or reference


def read_settings(config: pytest.Config) -> Settings:
    """Read every option.

    Raises:
        UsageError: an ini value is wrong, or options contradict each other.

    """
    values = {option.ini.removeprefix("tooleval_"): option_value(config, option) for option in OPTIONS}
    compare = values.pop("compare")
    providers = tuple(values.pop("provider") or ())
    if compare:
        if providers:
            raise pytest.UsageError("tooleval: --compare and --provider both name targets; use one of them")
        providers = tuple(name.strip() for name in compare.split(",") if name.strip())
        if len(providers) < 2:
            raise pytest.UsageError(
                f"tooleval: --compare {compare!r} names one target; expected two or more, as a,b"
            )
    values["suites"] = suite_folders(config)
    for name in ("provider_url", "add_provider", "family", "engine"):
        values[name] = tuple(values[name] or ())
    values["distractors"] = values["distractors"] or ()
    values["system_prompt"] = _read_prompt(config, values["system_prompt"])
    for name in ("json", "snapshot", "baseline", "distractor_catalog", "mcp_config", "broker_mapping"):
        values[name] = _path(config, name, values[name]) if values[name] else None
    for name in ("record", "replay"):
        values[name] = None if values[name] is None else _optional_path(config, name, values[name])
    _check_tool_sets(values)
    if None not in (values["record"], values["replay"]) and values["record"] != values["replay"]:
        raise pytest.UsageError("tooleval: --tooleval-record and --tooleval-replay name two folders; name one")
    return Settings(providers=providers or ("mock",), **values)


def _check_tool_sets(values: Mapping[str, Any]) -> None:
    catalog: Path | None = values["distractor_catalog"]
    if values["distractors"] and catalog is None:
        raise pytest.UsageError(
            "tooleval: --tooleval-distractors needs a catalog to take them from: --tooleval-distractor-catalog FILE"
        )
    if catalog is not None and not catalog.exists():
        raise pytest.UsageError(f"tooleval: the catalog of distractors {catalog} does not exist")
    if values["first_call"] and "broker" in values["tools"]:
        raise pytest.UsageError(
            "tooleval: --tooleval-first-call judges one reply, and through the broker that is a search: use "
            "--tooleval-tools direct with it"
        )


def _path(config: pytest.Config, option: str, name: str) -> Path:
    """Return the path that an option names; of the ini file it is relative to the root folder."""
    base = config.invocation_params.dir if given_on_command_line(config, option) else config.rootpath
    return base / name


def _optional_path(config: pytest.Config, option: str, name: str) -> Path:
    """Return the path that an option names, or IN_SUITE where it names none."""
    return _path(config, option, name) if name else IN_SUITE


def _read_prompt(config: pytest.Config, name: str | None) -> str | None:
    if name is None:
        return None
    path = _path(config, "system_prompt", name)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"tooleval: the system prompt {path} cannot be read: {error}") from None
