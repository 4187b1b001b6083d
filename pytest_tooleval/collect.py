"""From a suite's folder to pytest items."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tooleval.cases.files import is_case_file
from pytest_tooleval.cases.suite import SuiteCase
from pytest_tooleval.environment import SuiteEnvironment
from pytest_tooleval.errors import CaseError, ConfigError
from pytest_tooleval.items import CaseItem
from pytest_tooleval.measures.text import printable

if TYPE_CHECKING:
    from pytest_tooleval.session import EvalSession


class Folder(pytest.Directory):
    """A folder whose entries are collected as pytest's own folders do, but for what a subclass takes."""

    def collect_entries(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield what the folder's entries hold, in the order of their names."""
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            path = self.path / entry.name
            if entry.is_dir() and not self._is_ignored(path, is_folder=True):
                yield from self.collect_folder(path, entry)
            elif (entry.is_file() or self.takes(entry.name)) and not self._is_ignored(path, is_folder=False):
                yield from self.collect_file(path)

    def takes(self, _: str) -> bool:
        """Whether an entry that is no file, such as a dangling link, is to be reported all the same."""
        return False

    def collect_folder(self, path: Path, _: os.DirEntry[str]) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the collector of a folder, if there is one."""
        collector = self.ihook.pytest_collect_directory(path=path, parent=self)
        if collector is not None:
            yield collector

    def collect_file(self, path: Path) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the collectors of a file."""
        yield from self.ihook.pytest_collect_file(file_path=path, parent=self)

    def _is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        if self.session.isinitpath(path, with_parents=is_folder):
            return False
        return bool(self.ihook.pytest_ignore_collect(collection_path=path, config=self.config))


class SuiteFolder(Folder):
    """A suite's folder: beside what lies in it, it holds the cases that come from elsewhere."""

    def __init__(self, *, tooleval: EvalSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tooleval = tooleval

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield cases from plugins and the global folder, broken files, then what lies in the folder."""
        try:
            environment = self.tooleval.open_suite(self.path, self.ihook)
        except ConfigError as error:
            raise self.CollectError(printable(str(error))) from None
        for found in environment.suite.registered:
            yield from case_items(self, found, environment, self.nodeid)
        for path, fault in environment.suite.faults.items():
            if not any(path.is_relative_to(folder) for folder in environment.suite.case_folders):
                yield BrokenFile.from_parent(self, path=path, error=fault)
        yield from self.collect_entries()


class CasesFolder(Folder):
    """A folder of case files: their cases are items of this node, without a collector for each file."""

    def __init__(self, *, environment: SuiteEnvironment, suffix: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.environment = environment
        self.suffix = suffix

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the cases of the case files, and what else lies in the folder."""
        yield from self.collect_entries()

    def collect_folder(self, path: Path, entry: os.DirEntry[str]) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the folder's own node; case files are not searched behind links and in hidden folders."""
        if not entry.is_symlink() and not entry.name.startswith("."):
            yield CasesFolder.from_parent(self, path=path, environment=self.environment, suffix=self.suffix)

    def takes(self, name: str) -> bool:
        """Whether the name is a case file's."""
        return is_case_file(name, self.suffix)

    def collect_file(self, path: Path) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the cases of a case file, or what other plugins make of another file."""
        if is_case_file(path.name, self.suffix):
            yield from self._collect_cases(path)
        else:
            yield from super().collect_file(path)

    def _collect_cases(self, path: Path) -> Iterator[pytest.Item | pytest.Collector]:
        error = self.environment.suite.faults.get(path)
        if error is not None:
            yield BrokenFile.from_parent(self, path=path, error=error)
        elif self._is_addressed(path):
            yield CaseFile.from_parent(self, path=path, environment=self.environment)
        else:
            yield from file_items(self, path, self.environment)

    def _is_addressed(self, path: Path) -> bool:
        """Whether the command line names a case of this file, which takes a node for the file to find."""
        prefix = f"{path.name}::"
        return any(prefix in argument for argument in self.config.args)


class CaseFile(pytest.File):
    """A case file of which the command line names a case."""

    def __init__(self, *, environment: SuiteEnvironment, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.environment = environment

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the file's cases."""
        return file_items(self, self.path, self.environment)


class BrokenFile(pytest.File):
    """A file that could not be loaded: collecting it is the error."""

    def __init__(self, *, error: CaseError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def collect(self) -> Iterator[pytest.Item]:
        """Report every fault of the file."""
        raise self.CollectError(printable(str(self.error)))


def file_items(parent: pytest.Collector, path: Path, environment: SuiteEnvironment) -> Iterator[pytest.Item]:
    """Yield an item for each case of a file, target and trial."""
    prefix = parent.nodeid if parent.path == path else f"{parent.nodeid}/{path.name}"
    for found in environment.suite.local.get(path, ()):
        yield from case_items(parent, found, environment, prefix)


def case_items(
    parent: pytest.Collector, found: SuiteCase, environment: SuiteEnvironment, prefix: str
) -> Iterator[pytest.Item]:
    """Yield an item for each target and trial of a case.

    Raises:
        CollectError: a target could not be made.

    """
    try:
        targets = environment.targets_of(found)
    except ConfigError as error:
        raise parent.CollectError(printable(str(error))) from None
    trials = environment.trials_of(found.case)
    for target in targets:
        for trial in range(1, trials + 1):
            name = item_name(found.case.id, target.name, trial, targets=len(targets), trials=trials)
            yield CaseItem.from_parent(
                parent,
                name=name,
                nodeid=f"{prefix}::{name}",
                path=found.case.source.path,
                found=found,
                target=target,
                trial=trial,
                environment=environment,
            )


def item_name(case_id: str, target: str, trial: int, *, targets: int, trials: int) -> str:
    """Return `id`, `id[target]` when there are several targets, `id[target-t2]` when there are several trials."""
    if trials > 1:
        return f"{case_id}[{_in_brackets(target)}-t{trial}]"
    return f"{case_id}[{_in_brackets(target)}]" if targets > 1 else case_id


def _in_brackets(name: str) -> str:
    """Replace what pytest, JUnit or `-k` would read as structure."""
    return name.replace("::", "--").replace("[", "(").replace("]", ")")
