"""Run the fuzz tests with many examples, new ones each time; the tests have few, and always the same ones."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Return pytest's exit code; hypothesis prints the example that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="examples of each test")
    parser.add_argument("-k", default="", help="only tests that match, as for pytest")
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "tests/fuzz"]
    command += ["-k", options.k] if options.k else []
    command += ["-n", str(options.workers)] if options.workers else []
    environment = {**os.environ, "TOOLEVAL_FUZZ_EXAMPLES": str(options.examples)}
    return subprocess.run([*command, "--durations=20"], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
