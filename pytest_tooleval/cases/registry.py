"""Fixtures from elsewhere than the local suite: plugins and the user's global folder."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.files import case_files
from pytest_tooleval.cases.jsontext import decode_document
from pytest_tooleval.cases.load import cases_of, load_fixture_file
from pytest_tooleval.errors import CaseError, Problem

BUNDLED_FOLDER = Path(__file__).parent / "bundled"


class FixtureRegistry:
    """Collects the fixtures that `pytest_tooleval_register_fixtures` implementations contribute.

    Faults do not raise here: they are kept, and reported when the suite is collected.

    Args:
        bundled: whether the suite wants the fixtures that come with the package.

    """

    def __init__(self, *, bundled: bool = False) -> None:
        self._bundled = bundled
        self._cases: dict[str, ToolUseCase] = {}
        self._problems: list[Problem] = []

    @property
    def cases(self) -> Mapping[str, ToolUseCase]:
        """The cases by id, in the order of registration."""
        return self._cases

    @property
    def problems(self) -> list[Problem]:
        """Everything that is wrong with what was registered."""
        return self._problems

    def add(self, fixture: Mapping[str, Any]) -> None:
        """Add one fixture, a mapping in the format of a fixture file; `id` is required."""
        origin, line = _caller()
        try:
            document = decode_document(json.dumps(fixture, indent=2), origin)
            cases = cases_of(document, origin)
        except (TypeError, ValueError, RecursionError) as error:
            self._problems.append(Problem(origin, f"a registered fixture is not JSON: {error}", line))
        except CaseError as error:
            self._problems += [replace(problem, line=line) for problem in error.problems]
        else:
            if "id" in fixture:
                self._extend([replace(case, source=replace(case.source, line=line)) for case in cases])
            else:
                self._problems.append(Problem(origin, "a registered fixture has no 'id'", line))

    def add_file(self, path: Path) -> None:
        """Add the fixtures of one JSON file."""
        try:
            self._extend(load_fixture_file(path, path))
        except CaseError as error:
            self._problems.extend(error.problems)

    def add_folder(self, folder: Path) -> None:
        """Add the fixtures of every JSON file below a folder, in the order of their paths."""
        for path in case_files(folder, ".json"):
            self.add_file(path)

    def add_bundled(self) -> None:
        """Add the fixtures that come with the package, if this suite wants them."""
        if self._bundled:
            self.add_folder(BUNDLED_FOLDER)

    def _extend(self, cases: list[ToolUseCase]) -> None:
        for case in cases:
            earlier = self._cases.setdefault(case.id, case)
            if earlier is not case:
                message = f"the id {case.id!r} is registered already, by {earlier.source.path}"
                self._problems.append(Problem(case.source.path, message, case.source.line))


def _caller() -> tuple[Path, int]:
    """Return file and line of the call into this module."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (Path(frame.f_code.co_filename), frame.f_lineno) if frame else (Path("unknown"), 1)
