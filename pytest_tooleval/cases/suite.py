"""A suite: the corpora of one folder, every case in them, and what is wrong with any file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.catalog import Catalog, load_catalog, merge_catalogs
from pytest_tooleval.cases.files import case_files
from pytest_tooleval.cases.gold import GoldCase
from pytest_tooleval.cases.gold_files import load_discovery, load_ergonomics, load_invocation, load_workloads
from pytest_tooleval.cases.load import load_fixture_file
from pytest_tooleval.cases.registry import FixtureRegistry
from pytest_tooleval.cases.workload import default_workloads
from pytest_tooleval.errors import CaseError, Problem

Case: TypeAlias = ToolUseCase | GoldCase
Shown: TypeAlias = Callable[[Path], Path]

FIXTURES = "fixtures"
CATALOG = "catalog"
WORKLOADS = "workloads"
SUFFIX_OF_FOLDER = {
    FIXTURES: ".json",
    CATALOG: ".json",
    "discovery": ".jsonl",
    "invocation": ".json",
    "ergonomics": ".json",
    WORKLOADS: ".json",
}
_UNIQUE_ID = "ids are unique in a {}, give one another"
_NEVER_SEARCHED = frozenset({"__pycache__", "node_modules", "venv"})


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of cases that share a catalog and gates.

    Attributes:
        root: the folder.
        catalog: the tools that gold rows speak of, or None when there is no catalog.

    """

    root: Path
    catalog: Catalog | None = None


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A case and the corpus whose gates govern it."""

    case: Case
    corpus: Corpus


@dataclass(slots=True)
class Suite:
    """Everything that was found in a suite's folder and registered for it.

    Attributes:
        root: the suite's folder.
        corpora: the corpora at or below it, sorted.
        local: the cases of each local file that could be loaded, in file order.
        registered: the cases from the global folder and from plugins that no local case replaces.
        faults: for each file that could not be loaded, why.

    """

    root: Path
    corpora: tuple[Corpus, ...] = ()
    local: dict[Path, list[SuiteCase]] = field(default_factory=dict)
    registered: list[SuiteCase] = field(default_factory=list)
    faults: dict[Path, CaseError] = field(default_factory=dict)

    @property
    def case_folders(self) -> tuple[Path, ...]:
        """The folders that hold local cases."""
        return tuple(corpus.root / name for corpus in self.corpora for name in SUFFIX_OF_FOLDER)

    def cases(self) -> Iterator[SuiteCase]:
        """Yield every case: registered ones first, then local ones in the order of their files."""
        yield from self.registered
        for cases in self.local.values():
            yield from cases


def load_suite(root: Path, shown: Shown, registries: Sequence[FixtureRegistry] = ()) -> Suite:
    """Load every case of a suite.

    Args:
        root: the suite's folder.
        shown: gives a file's name in messages.
        registries: fixtures from elsewhere; a later registry wins over an earlier one, local files over all.

    """
    suite = Suite(root)
    for folder in sorted(find_corpora(root)):
        _load_corpus(suite, folder, shown)
    local_ids = {found.case.id for found in suite.cases() if found.case.family == "tool_use"}
    own = next((corpus for corpus in suite.corpora if corpus.root == root), Corpus(root))
    merged = {case.id: case for registry in registries for case in registry.cases.values()}
    suite.registered += [SuiteCase(case, own) for case in merged.values() if case.id not in local_ids]
    for registry in registries:
        _add_faults(suite.faults, registry.problems)
    return suite


def find_corpora(root: Path) -> Iterator[Path]:
    """Yield the folders at or below `root` that hold a folder of cases; links are not followed."""
    for folder, subfolders, _ in os.walk(root):
        if not SUFFIX_OF_FOLDER.keys().isdisjoint(subfolders):
            yield Path(folder)
        subfolders[:] = [name for name in subfolders if _is_searched(name)]


def _is_searched(name: str) -> bool:
    return name not in SUFFIX_OF_FOLDER and name not in _NEVER_SEARCHED and not name.startswith(".")


def _load_corpus(suite: Suite, root: Path, shown: Shown) -> None:
    catalogs = case_files(root / CATALOG, ".json")
    corpus = Corpus(root, _load_catalogs(suite, catalogs, shown))
    suite.corpora = (*suite.corpora, corpus)
    taken = {found.case.id: found.case for found in suite.cases() if found.case.family == "tool_use"}
    load_fixtures = _unique(
        lambda path: load_fixture_file(path, shown(path)), shown, _UNIQUE_ID.format("suite"), taken
    )
    _load_files(suite, corpus, FIXTURES, load_fixtures)
    if not catalogs:
        _refuse_rows_without_catalog(suite, corpus, shown)
        return
    if corpus.catalog is None:
        return
    refs, own_id = corpus.catalog.by_ref, _UNIQUE_ID.format("corpus")
    _load_files(suite, corpus, "discovery", lambda path: load_discovery(path, shown(path), refs))
    for folder, load, rule in (
        ("invocation", load_invocation, own_id),
        ("ergonomics", load_ergonomics, own_id),
        (WORKLOADS, load_workloads, "a corpus has one workload of a kind, keep one of them"),
    ):
        _load_files(suite, corpus, folder, _unique(partial(_load, load, shown, refs), shown, rule))
    if not case_files(root / WORKLOADS, ".json"):
        defaults = default_workloads(corpus.catalog, catalogs[0])
        suite.local[catalogs[0]] = [SuiteCase(case, corpus) for case in defaults]


def _load_catalogs(suite: Suite, paths: Sequence[Path], shown: Shown) -> Catalog | None:
    loaded: list[tuple[Path, Catalog]] = []
    for path in paths:
        try:
            loaded.append((shown(path), load_catalog(path, shown(path))))
        except CaseError as error:
            suite.faults[path] = error
    if not loaded or len(loaded) < len(paths):
        return None
    try:
        return merge_catalogs(loaded)
    except CaseError as error:
        suite.faults[paths[-1]] = error
        return None


def _load_files(suite: Suite, corpus: Corpus, folder: str, load: Callable[[Path], Iterable[Case]]) -> None:
    for path in case_files(corpus.root / folder, SUFFIX_OF_FOLDER[folder]):
        try:
            suite.local[path] = [SuiteCase(case, corpus) for case in load(path)]
        except CaseError as error:
            suite.faults[path] = error


def _load(
    load: Callable[[Path, Path, Collection[str]], Iterable[Case]], shown: Shown, refs: Collection[str], path: Path
) -> Iterable[Case]:
    return load(path, shown(path), refs)


def _unique(
    load: Callable[[Path], Iterable[Case]],
    shown: Shown,
    rule: str,
    taken: Mapping[str, Case] = MappingProxyType({}),
) -> Callable[[Path], Iterable[Case]]:
    """Return a loader that refuses ids which another file has taken."""
    first = dict(taken)

    def load_new(path: Path) -> Iterable[Case]:
        cases = list(load(path))
        problems = [_taken(case, first[case.id], shown, rule) for case in cases if case.id in first]
        if problems:
            raise CaseError(problems)
        first.update((case.id, case) for case in cases)
        return cases

    return load_new


def _taken(case: Case, earlier: Case, shown: Shown, rule: str) -> Problem:
    place = f"{shown(earlier.source.path)}:{earlier.source.line}"
    message = f"the id {case.id!r} is taken by {place}; {rule}"
    return Problem(shown(case.source.path), message, case.source.line)


def _refuse_rows_without_catalog(suite: Suite, corpus: Corpus, shown: Shown) -> None:
    for folder, suffix in SUFFIX_OF_FOLDER.items():
        if folder == FIXTURES:
            continue
        for path in case_files(corpus.root / folder, suffix):
            message = (
                f"the corpus has no catalog; put the tools that it speaks of into {shown(corpus.root)}/{CATALOG}/"
            )
            suite.faults[path] = CaseError([Problem(shown(path), message)])


def _add_faults(faults: dict[Path, CaseError], problems: Iterable[Problem]) -> None:
    by_path: dict[Path, list[Problem]] = {}
    for problem in problems:
        by_path.setdefault(problem.path, []).append(problem)
    for path, found in by_path.items():
        faults[path] = CaseError(found)
