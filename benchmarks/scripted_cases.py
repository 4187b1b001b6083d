"""Fixtures of one scripted call under `mock` against bare tests that make and remove a folder with a file."""

from __future__ import annotations

import argparse
import json
import pstats
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

BARE = """
import pathlib, shutil, tempfile
import pytest

@pytest.mark.parametrize("number", range({cases}))
def test_bare(number):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "notes.txt").write_text("one line\\n")
    shutil.rmtree(folder)
"""


def fixture(number: int) -> dict[str, object]:
    """Return a fixture of one scripted call."""
    return {
        "id": f"case-{number}",
        "task": "Read notes.txt.",
        "files": {"notes.txt": "one line\n"},
        "expected": ["file_read"],
        "mock": [
            {"calls": [{"name": "file_read", "arguments": {"path": "notes.txt"}}]},
            {"text": "It holds one line."},
        ],
    }


def command(folder: Path) -> list[str]:
    """Return the command that runs pytest in a folder, other plugins left out where they would add work."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(folder)]


def cpu_seconds(arguments: list[str], cwd: Path) -> float:
    """Return user and system seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write(root: Path, cases: int) -> tuple[Path, Path]:
    """Write both suites; return their folders."""
    (root / "pytest.ini").write_text("[pytest]\n")
    ours, bare = root / "evals", root / "bare"
    (ours / "fixtures").mkdir(parents=True)
    for number in range(cases):
        (ours / "fixtures" / f"case-{number}.json").write_text(json.dumps(fixture(number)))
    bare.mkdir()
    (bare / "test_bare.py").write_text(BARE.format(cases=cases))
    return ours, bare


def profile(folder: Path, root: Path) -> None:
    """Print where the time of one run of ours goes."""
    path = root / "profile"
    subprocess.run([sys.executable, "-m", "cProfile", "-o", str(path), *command(folder)[1:]], cwd=root, check=False)
    pstats.Stats(str(path)).sort_stats("cumulative").print_stats(60)


def main() -> None:
    """Print the ratio and the difference a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ours, bare = write(root, options.cases)
        if options.profile:
            profile(ours, root)
            return
        pairs = [
            (cpu_seconds(command(ours), root), cpu_seconds(command(bare), root)) for _ in range(options.rounds)
        ]
    mine, theirs = median(a for a, _ in pairs), median(b for _, b in pairs)
    above = (mine - theirs) / options.cases * 1000
    print(
        f"{options.cases} cases: ours {mine:.2f} s CPU, bare {theirs:.2f} s, ratio "
        f"{median(a / b for a, b in pairs):.2f}"
    )
    print(f"above a bare item: {above:.2f} ms a case")


if __name__ == "__main__":
    main()
