"""Kill a run of 300 cases at random moments, resume it each time, and compare the end with a run left alone."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from concurrent_cases import ServerProcess, write_suite

TIMES = ("generatedAt", "latencySeconds")


def command(url: str, *more: str) -> list[str]:
    """Return the command of a run against the server."""
    asked = ["--provider", "openai:slow", "--provider-url", url, "--tooleval-concurrency", "16"]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "evals", *asked, *more]


def without_times(value: Any) -> Any:
    """Return a result file's content without what differs from run to run."""
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in TIMES}
    return [without_times(member) for member in value] if isinstance(value, list) else value


def result(root: Path, name: str) -> Any:
    """Return a result file without its times."""
    return without_times(json.loads((root / name).read_text()))


def finished_in_log(root: Path) -> int:
    """Return how many finished turns stand in the logs of the newest run."""
    folder = root / ".pytest_cache/d/tooleval/runs"
    runs = sorted(folder.iterdir()) if folder.is_dir() else []
    if not runs:
        return 0
    return sum(line.startswith(b'{"key"') for file in runs[-1].glob("*") for line in file.read_bytes().splitlines())


def run_killed(root: Path, url: str, moment: float, *, resume: bool, workers: list[str]) -> bool:
    """Run until the moment, then kill; return whether the run was over before."""
    more = ["--tooleval-resume"] if resume else []
    process = subprocess.Popen(
        command(url, *more, *workers),
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(moment)
    is_over = process.poll() is not None
    if not is_over:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return is_over


def left_behind(folder: Path) -> list[str]:
    """Return the commands of processes that work in the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder) in str((entry / "cwd").readlink()):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def main() -> None:
    """Print what was run again, and whether the results are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    workers = ["-n", str(options.workers)] if options.workers else []
    chance = random.Random(options.seed)
    server = ServerProcess(options.delay)
    try:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            write_suite(root, options.cases)
            alone = command(server.url, "--tooleval-no-run-log", "--tooleval-json", "whole.json")
            subprocess.run(alone, cwd=root, check=True, capture_output=True)
            asked_whole = len(server.asked())
            kills = 0
            for number in range(options.kills):
                moment = chance.uniform(0.5, 4.0)
                over = run_killed(root, server.url, moment, resume=number > 0, workers=workers)
                kills += not over
                print(f"kill {number + 1} after {moment:.1f} s: {finished_in_log(root)} finished turns in the log")
            last = subprocess.run(
                command(server.url, "--tooleval-resume", "--tooleval-json", "resumed.json", *workers),
                cwd=root,
                check=True,
                capture_output=True,
                text=True,
            )
            time.sleep(3)
            asked = len(server.asked())
            print(next(line for line in last.stdout.splitlines() if line.startswith("resumed:")))
            print(f"{kills} kills; {asked} requests, and {asked_whole} of a run left alone: the rest was under way")
            same = result(root, "whole.json") == result(root, "resumed.json")
            print(f"results equal but for times: {same}; processes left: {left_behind(root) or 'none'}")
            if not same:
                sys.exit(1)
    finally:
        server.close()


if __name__ == "__main__":
    main()
