"""What a run is about to do, as plain data that a worker sends home."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_tooleval.gates.plan import PlannedGate
from pytest_tooleval.measures.fingerprint import content_hash
from pytest_tooleval.reports.whole_run import WholeCorpus, WholeRun

if TYPE_CHECKING:
    from pytest_tooleval.cases.suite import SuiteCase
    from pytest_tooleval.environment import SuiteEnvironment
    from pytest_tooleval.settings import Settings

Shown: TypeAlias = Callable[[Path], str]

# Options of output, of waiting, and those that a field of its own in the plan stands for. All others have to be the
# same in the parts of a run.
_NOT_COMPARED = frozenset(
    {
        "suites",
        "concurrency",
        "record",
        "replay",
        "max_tokens",
        "max_cost",
        "request_timeout",
        "retries",
        "keep_worktrees",
        "json",
        "snapshot",
        "baseline",
        "resume",
        "no_run_log",
        "defer_gates",
        "trials",
        "strict",
        "min_measured",
    }
)
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The same in every process of a run, since each collects the same items.

    Attributes:
        gates: the gates on each target, and how much of their scope is selected.
        found: cases in the suites that were collected.
        items: items of ours that are selected.
        targets: the targets' names in the order of the options.
        suites: the suites that were collected, relative to the root folder.
        notes: what the summary should say about the cases themselves.
        gold_targets: the names of the searches and brokers that are measured, likewise in order.
        left_out: what of the suites is not to be run, in words; empty when everything is.
        provenance: what gold sets are measured with, JSON values by their keys in the result file.
        whole: the run that this one may be a part of, where a result file is to say so, else None.

    """

    gates: tuple[PlannedGate, ...] = ()
    found: int = 0
    items: int = 0
    targets: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gold_targets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    whole: WholeRun | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {
            "gates": [gate.to_plain() for gate in self.gates],
            "found": self.found,
            "items": self.items,
            "targets": list(self.targets),
            "suites": list(self.suites),
            "notes": list(self.notes),
            "gold_targets": list(self.gold_targets),
            "left_out": list(self.left_out),
            "provenance": dict(self.provenance),
            "whole": None if self.whole is None else self.whole.to_json(),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RunPlan:
        """Rebuild what `to_plain` gave."""
        return cls(
            gates=tuple(map(PlannedGate.from_plain, plain["gates"])),
            found=plain["found"],
            items=plain["items"],
            targets=tuple(plain["targets"]),
            suites=tuple(plain["suites"]),
            notes=tuple(plain["notes"]),
            gold_targets=tuple(plain["gold_targets"]),
            left_out=tuple(plain["left_out"]),
            provenance=plain["provenance"],
            whole=None if plain["whole"] is None else WholeRun.from_json(plain["whole"]),
        )


def whole_run(
    environments: Iterable[SuiteEnvironment], shown: Shown, settings: Settings, *, strict: bool
) -> WholeRun:
    """Return what the parts of a run have in common, whatever is selected of it.

    Args:
        environments: the suites that were collected.
        shown: gives a folder's name relative to the root folder.
        settings: the options.
        strict: whether every miss fails, be it by our option or by pytest's.

    """
    listed = list(environments)
    corpora = {folder: corpus for environment in listed for folder, corpus in _corpora(environment, shown)}
    return WholeRun(
        suites=tuple(sorted(shown(environment.suite.root) for environment in listed)),
        corpora=dict(sorted(corpora.items())),
        targets=_targets(listed),
        trials=settings.trials,
        min_measured=settings.min_measured,
        strict=strict,
        options=dict(_compared_options(settings)),
    )


def _corpora(environment: SuiteEnvironment, shown: Shown) -> Iterator[tuple[str, WholeCorpus]]:
    by_corpus: dict[Path, list[SuiteCase]] = {}
    for found in environment.suite.cases():
        by_corpus.setdefault(found.corpus.root, []).append(found)
    targets = {family: len(names) for family, names in environment.target_names().items()}
    for folder, cases in by_corpus.items():
        catalog = cases[0].corpus.catalog
        items = sum(targets[found.case.family] * environment.trials_of(found.case) for found in cases)
        digest = content_hash([content_hash(found.case) for found in cases] + [content_hash(catalog)])
        yield shown(folder), WholeCorpus(items, digest, catalog.version if catalog else None)


def _targets(environments: Iterable[SuiteEnvironment]) -> dict[str, tuple[str, ...]]:
    names: dict[str, dict[str, None]] = {}
    for environment in environments:
        families = {found.case.family for found in environment.suite.cases()}
        for family, known in environment.target_names().items():
            if family in families:
                names.setdefault(family, {}).update(dict.fromkeys(known))
    return {family: tuple(known) for family, known in names.items()}


def _compared_options(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the options that have to be the same in every part, by their names."""
    for option in fields(settings):
        value = getattr(settings, option.name)
        if option.name not in _NOT_COMPARED and value not in (None, (), False):
            yield option.name.replace("_", "-"), _told(value)


def _told(value: Any) -> Any:
    """Return an option's value as JSON; of a path the name, of a text that is long or may hold secrets a hash."""
    if isinstance(value, tuple | list):
        return [_told(member) for member in value]
    if isinstance(value, Path):
        return value.name
    if isinstance(value, str) and (len(value) > _LONGEST_SHOWN or "://" in value):
        return f"hash {content_hash(value)}"
    return value if isinstance(value, str | int | float) else content_hash(value)
