"""A suite: the corpora of one folder, every case in them, and what is wrong with any file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.load import load_fixture_file
from pytest_tooleval.cases.registry import FixtureRegistry, fixture_files
from pytest_tooleval.errors import CaseError, Problem

FIXTURES = "fixtures"
_NEVER_SEARCHED = frozenset({"__pycache__", "node_modules", "venv"})


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A case and the corpus whose gates govern it."""

    case: ToolUseCase
    corpus: Path


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that was found in a suite's folder and registered for it.

    Attributes:
        root: the suite's folder.
        corpora: folders that hold `fixtures/`, sorted.
        local: the cases of each local file that could be loaded, in file order.
        registered: the cases from the global folder and from plugins that no local case replaces.
        faults: for each file that could not be loaded, why.

    """

    root: Path
    corpora: tuple[Path, ...]
    local: dict[Path, list[SuiteCase]]
    registered: list[SuiteCase]
    faults: dict[Path, CaseError]

    @property
    def fixture_folders(self) -> tuple[Path, ...]:
        """The folders of the local case files."""
        return tuple(corpus / FIXTURES for corpus in self.corpora)

    def cases(self) -> Iterator[SuiteCase]:
        """Yield every case: registered ones first, then local ones in the order of their files."""
        yield from self.registered
        for cases in self.local.values():
            yield from cases


def load_suite(root: Path, shown: Callable[[Path], Path], registries: Sequence[FixtureRegistry] = ()) -> Suite:
    """Load every case of a suite.

    Args:
        root: the suite's folder.
        shown: gives a file's name in messages.
        registries: fixtures from elsewhere; a later registry wins over an earlier one, local files over all.

    """
    corpora = tuple(sorted(find_corpora(root)))
    local: dict[Path, list[SuiteCase]] = {}
    faults: dict[Path, CaseError] = {}
    first: dict[str, ToolUseCase] = {}
    for corpus in corpora:
        for path in fixture_files(corpus / FIXTURES):
            try:
                cases = load_fixture_file(path, shown(path))
                _claim_ids(cases, first, shown)
            except CaseError as error:
                faults[path] = error
            else:
                local[path] = [SuiteCase(case, corpus) for case in cases]
    merged = {case.id: case for registry in registries for case in registry.cases.values()}
    registered = [SuiteCase(case, root) for case in merged.values() if case.id not in first]
    for registry in registries:
        _add_faults(faults, registry.problems)
    return Suite(root, corpora, local, registered, faults)


def find_corpora(root: Path) -> Iterator[Path]:
    """Yield the folders at or below `root` that hold `fixtures/`; links are not followed."""
    for folder, subfolders, _ in os.walk(root):
        if FIXTURES in subfolders:
            yield Path(folder)
        subfolders[:] = [
            name for name in subfolders if name != FIXTURES and name not in _NEVER_SEARCHED and name[0] != "."
        ]


def _claim_ids(cases: list[ToolUseCase], first: dict[str, ToolUseCase], shown: Callable[[Path], Path]) -> None:
    problems = []
    for case in cases:
        earlier = first.get(case.id)
        if earlier is not None:
            place = f"{shown(earlier.source.path)}:{earlier.source.line}"
            message = f"the id {case.id!r} is taken by {place}; ids are unique in a suite, give one another"
            problems.append(Problem(shown(case.source.path), message, case.source.line))
    if problems:
        raise CaseError(problems)
    first.update((case.id, case) for case in cases)


def _add_faults(faults: dict[Path, CaseError], problems: list[Problem]) -> None:
    by_path: dict[Path, list[Problem]] = {}
    for problem in problems:
        by_path.setdefault(problem.path, []).append(problem)
    for path, found in by_path.items():
        faults[path] = CaseError(found)
