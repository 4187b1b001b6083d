"""A thousand turns, 32 at a time, that each look where relative paths lead: in a tool, in a command and in git."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

CONFTEST = """
import os, subprocess, time
from pathlib import Path
from pytest_tooleval.tools.tool import Tool

def where(arguments, context):
    before = os.path.realpath(".")
    time.sleep(0.02)
    text = Path("name.txt").read_text()
    git = subprocess.run(["git", "show", "HEAD:name.txt"], capture_output=True, text=True).stdout
    Path("written.txt").write_text(text)
    if not before == os.path.realpath(".") == str(context.worktree) or git != text:
        return f"crossed: {before} {context.worktree} {git!r} {text!r}"
    return text

def pytest_tooleval_register_tools(tools):
    tools.add(Tool("where", "Tell where this is.", {"type": "object"}, "read", where))
"""


def fixture(number: int) -> dict[str, object]:
    """Return a case whose files, commits and commands speak of its own number."""
    script = [
        {"calls": [{"name": "where", "arguments": {}}]},
        {"calls": [{"name": "run_command", "arguments": {"command": "cat name.txt; git show HEAD:name.txt"}}]},
        {"text": "Done."},
    ]
    name = f"case {number}"
    return {
        "id": f"case-{number}",
        "task": "Tell where this is.",
        "git": True,
        "files": {"name.txt": name},
        "tool_permission": {"bash": "allow"},
        "expected": ["where", "run_command"],
        "verifier": {"exact": ["where", "run_command"], "files": {"written.txt": {"equals": name}}},
        "mock": script,
    }


def main() -> None:
    """Print how many turns passed, and whether any crossed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = root / "evals" / "fixtures"
        folder.mkdir(parents=True)
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "conftest.py").write_text(CONFTEST)
        (folder / "cases.json").write_text(json.dumps([fixture(number) for number in range(options.cases)]))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "evals", "--tooleval-json", "r.json"]
        command += ["--tooleval-concurrency", str(options.concurrency)]
        subprocess.run(command, cwd=root, check=False, stdout=subprocess.DEVNULL, env={**os.environ})
        cases = json.loads((root / "r.json").read_text())["toolUse"]["cases"]
    verdicts = Counter(case["verdict"] for case in cases)
    print(f"{len(cases)} turns, {options.concurrency} at a time: {dict(verdicts)}")
    if verdicts != {"passed": options.cases}:
        sys.exit("some turns crossed")


if __name__ == "__main__":
    main()
