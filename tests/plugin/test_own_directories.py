"""Cases that see by every way in which folder they are, many at once: a registered tool, commands, git, file tools."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from obedient_model import ObedientModel, obedient_model, task

CONFTEST = '''
import os, pathlib, subprocess, time
from pytest_tooleval.tools.tool import Tool

def look(arguments, context):
    """Look by relative paths, wait for others to come between, and look again."""
    seen = set()
    for _ in range(3):
        seen.add(os.path.realpath("."))
        seen.add(os.getcwd())
        seen.add(os.path.realpath(pathlib.Path("name.txt").resolve().parent))
        seen.add(subprocess.run(["pwd", "-P"], capture_output=True, text=True).stdout.strip())
        pathlib.Path("looked.txt").write_text(pathlib.Path("name.txt").read_text())
        time.sleep(0.002)
    assert seen == {str(context.worktree)}, seen
    return pathlib.Path("name.txt").read_text()

def pytest_tooleval_register_tools(tools):
    tools.add(Tool("look", "Look around.", {"type": "object"}, "read", look))
'''
COMMAND = (
    "cat name.txt && cp name.txt copied.txt && git add copied.txt && git commit -qm $(cat name.txt) && "
    "git log -1 --format=%s > logged.txt && git rev-parse --show-toplevel > top.txt && pwd -P | cmp - top.txt"
)
CASES, AT_A_TIME = 60, 32
NAMES = ["look", "run_command", "look", "file_read", "file_write", "run_command", "look"]


def fixture(number: int) -> dict[str, Any]:
    """Return a case whose files say its number, and which passes when nothing of another case is seen."""
    name = f"case-{number}"
    arguments: dict[str, list[dict[str, Any]]] = {
        "look": [{}, {}, {}],
        "run_command": [{"command": COMMAND}, {"command": "cat looked.txt written.txt"}],
        "file_read": [{"path": "name.txt"}],
        "file_write": [{"path": "written.txt", "content": name}],
    }
    calls = [(tool, arguments[tool].pop(0)) for tool in NAMES]
    own = {"equals": name}
    return {
        "id": name,
        "task": task(*calls, delay=0.01),
        "files": {"name.txt": name},
        "git": True,
        "tool_permission": {"bash": "allow", "edit": "allow"},
        "verifier": {
            "exact": NAMES,
            "files": {
                "looked.txt": own,
                "copied.txt": own,
                "written.txt": own,
                "logged.txt": {"equals": f"{name}\n"},
            },
        },
    }


def run_many(folder: Path, model: ObedientModel, cases: int, concurrency: int) -> Counter[str]:
    """Run so many cases, so many at a time, and return how often each verdict was given, and each outcome of a call."""
    (folder / "evals/fixtures").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "evals/fixtures/all.json").write_text(json.dumps([fixture(number) for number in range(cases)]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--tooleval-json", "r.json"]
    command += ["--tooleval-concurrency", str(concurrency), "--tooleval-no-run-log", *model.options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    path = folder / "r.json"
    assert path.exists(), done.stdout + done.stderr
    found = json.loads(path.read_text())["toolUse"]["cases"]
    outcomes = Counter(f"{entry['name']} {entry['outcome']}" for case in found for entry in case.get("trace", ()))
    return Counter(case["verdict"] for case in found) + outcomes


def test_no_case_sees_the_folder_of_another(tmp_path: Path) -> None:
    with obedient_model() as model:
        seen = run_many(tmp_path, model, CASES, AT_A_TIME)
        assert model.most_at_once > 4
    expected = Counter({f"{name} ok": CASES * count for name, count in Counter(NAMES).items()})
    assert seen == expected + Counter(passed=CASES)
