"""Scripted cases with the run log over the same without it, CPU; and the peak memory of many cases."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from scripted_cases import cpu_seconds, fixture

PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def write(root: Path, cases: int) -> None:
    """Write the suite."""
    folder = root / "evals" / "fixtures"
    folder.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n")
    (folder / "cases.json").write_text(json.dumps([fixture(number) for number in range(cases)]))


def run(root: Path, *more: str) -> list[str]:
    """Return the command of a run."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", str(root / "evals"), *more]


def peak_megabytes(command: list[str], root: Path) -> float:
    """Return the peak resident memory of a command."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command], cwd=root, check=True, capture_output=True, text=True
    )
    return int(re.findall(r"\d+", done.stdout)[-1]) / 1024


def main() -> None:
    """Print the ratio, the median of the rounds, and the peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=20_000, help="cases of the memory measurement")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root, options.cases)
        pairs = [
            cpu_seconds(run(root), root) / cpu_seconds(run(root, "--tooleval-no-run-log"), root)
            for _ in range(options.rounds)
        ]
    print(f"run log on over off, {options.cases} cases: {median(pairs):.2f} (at most 1.05)")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root, options.many)
        peak = peak_megabytes(run(root, "--tooleval-json", "result.json"), root)
    print(f"peak memory of {options.many} cases with their result file: {peak:.0f} MB (at most 500)")


if __name__ == "__main__":
    main()
