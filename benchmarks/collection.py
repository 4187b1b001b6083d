"""Collecting fixtures: many in one file over bare parametrised tests, and many files over a minimal plugin; CPU."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

from scripted_cases import command, cpu_seconds, fixture

BARE = """
import pytest

@pytest.mark.parametrize("number", range({cases}))
def test_bare(number):
    pass
"""
MINIMAL = """
import json
import pytest

class Case(pytest.Item):
    def runtest(self):
        pass

class CaseFile(pytest.File):
    def collect(self):
        value = json.loads(self.path.read_text())
        yield Case.from_parent(self, name=value["id"])

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".json":
        return CaseFile.from_parent(parent, path=file_path)
"""


def collect_seconds(root: Path, folder: str) -> float:
    """Return the CPU seconds of collecting a folder and nothing else."""
    return cpu_seconds([*command(root / folder), "--collect-only"], root / folder)


def write(root: Path, cases: int, files: int) -> None:
    """Write the four folders, each a project of its own."""
    for name in ("list", "bare", "files", "minimal"):
        (root / name).mkdir()
        (root / name / "pytest.ini").write_text("[pytest]\n")
    fixtures = root / "list" / "evals" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "cases.json").write_text(json.dumps([fixture(number) for number in range(cases)]))
    (root / "bare" / "test_bare.py").write_text(BARE.format(cases=cases))
    (root / "minimal" / "conftest.py").write_text(MINIMAL)
    for folder in (root / "files" / "evals" / "fixtures", root / "minimal" / "cases"):
        folder.mkdir(parents=True)
        for number in range(files):
            (folder / f"case-{number}.json").write_text(json.dumps(fixture(number)))


def main() -> None:
    """Print both ratios, medians of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    in_one: list[float] = []
    in_many: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root, options.cases, options.files)
        for _ in range(options.rounds):
            in_one.append(collect_seconds(root, "list") / collect_seconds(root, "bare"))
            in_many.append(collect_seconds(root, "files") / collect_seconds(root, "minimal"))
    print(f"{options.cases} fixtures in one file over bare tests: {median(in_one):.2f} (at most 1.5)")
    print(f"{options.files} fixture files over a minimal plugin: {median(in_many):.2f} (at most 1.0)")


if __name__ == "__main__":
    main()
