"""run_command as a model sees it, with a real shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

import pytest_tooleval
from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.run_command import TOOL
from pytest_tooleval.tools.tool import ToolContext, ToolLimits

SOURCES = str(Path(pytest_tooleval.__file__).parents[1])


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return ToolContext(worktree=folder, environment={"PATH": os.environ["PATH"], "GREETING": "good day"})


def living(program: str) -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [other.pid for other in found if " ".join(other.info["cmdline"] or ()) == program]


@pytest.fixture
def sleeper() -> Iterator[str]:
    program = f"sleep 7{time.monotonic_ns()}"
    yield program
    for pid in living(program):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.txt", "one\ntwo\nexit code 0"),
        ("printf hi", "hi\nexit code 0"),
        ("true", "exit code 0"),
        ("wc -l < a.txt | tr -d ' '", "2\nexit code 0"),
        ("echo out; echo err >&2", "out\nerr\nexit code 0"),
        ("cat", "exit code 0"),
        ('echo "$GREETING, $HOME"', "good day, \nexit code 0"),
        ("sleep 33 & echo hi", "hi\nexit code 0"),
        ("echo new > b.txt; cat b.txt", "new\nexit code 0"),
    ],
)
def test_success(command: str, expected: str, context: ToolContext) -> None:
    assert TOOL.run({"command": command}, context) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo so far; exit 3", "so far\nexit code 3"),
        ("grep three a.txt", "exit code 1"),
        ("kill -9 $$", "exit code 137 (killed by SIGKILL)"),
        ("no-such-program-here 2>/dev/null", "exit code 127"),
        ("printf 'x\\0' ; exit 1", "x\0\nexit code 1"),
    ],
)
def test_failure_is_a_tool_error_with_the_output(command: str, expected: str, context: ToolContext) -> None:
    with pytest.raises(ToolError) as caught:
        TOOL.run({"command": command}, context)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("asked", "limit", "shown"), [(0.2, 60.0, "0.2 s"), (50, 0.3, "0.3 s"), (None, 0.25, "0.25 s")]
)
def test_the_shorter_time_counts(
    asked: float | None, limit: float, shown: str, context: ToolContext, sleeper: str
) -> None:
    bounded = replace(context, limits=ToolLimits(command_seconds=limit))
    arguments: dict[str, Any] = {"command": f"echo early; {sleeper} | cat"}
    if asked is not None:
        arguments["timeout"] = asked
    with pytest.raises(ToolError, match=f"^early\ntimed out after {shown}: .* killed$"):
        TOOL.run(arguments, bounded)
    assert living(sleeper) == []


@pytest.mark.parametrize("most", [100, 400, 5000])
def test_the_result_is_bounded_with_its_exit_code(most: int, context: ToolContext) -> None:
    bounded = replace(context, limits=ToolLimits(result_chars=most))
    result = TOOL.run({"command": "echo first; head -c 90000 /dev/zero | tr '\\0' x; echo; echo last"}, bounded)
    assert result.startswith("first\nxxx")
    assert result.endswith("xxx\nlast\nexit code 0")
    assert "characters left out" in result
    assert len(result) <= max(most, 150)


def test_nothing_is_left_running(context: ToolContext, sleeper: str) -> None:
    command = f"setsid {sleeper} & env -i setsid {sleeper} >/dev/null 2>&1 & nohup {sleeper} & echo started"
    assert TOOL.run({"command": command}, context).endswith("exit code 0")
    assert living(sleeper) == []


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("echo a\0b", "null"),
        ("echo \ud800", "cannot be run"),
        ("echo " + "x" * 3_000_000, "too long"),
    ],
)
def test_commands_that_cannot_be_given_to_a_shell(command: str, part: str, context: ToolContext) -> None:
    with pytest.raises(ToolError, match=part):
        TOOL.run({"command": command}, context)


def test_a_removed_folder_is_named(context: ToolContext) -> None:
    shutil.rmtree(context.worktree)
    with pytest.raises(ToolError, match=r"working folder .*/work cannot be entered: No such file"):
        TOOL.run({"command": "ls"}, context)


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"command": "ls"}, True),
        ({"command": "ls", "timeout": 0.5}, True),
        ({"command": ""}, False),
        ({"command": "ls", "timeout": 0}, False),
        ({"command": "ls", "cwd": "/"}, False),
        ({"timeout": 3}, False),
    ],
)
def test_parameters(arguments: dict[str, Any], valid: bool) -> None:
    assert jsonschema.Draft202012Validator(dict(TOOL.parameters)).is_valid(arguments) is valid


SLOW_TEST = """
from pathlib import Path
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.tools.run_command import TOOL
from pytest_tooleval.tools.tool import ToolContext

def test_slow():
    case = ToolUseCase(id="slow", task="wait", source=Source(Path("slow.json")))
    with WorktreeRoot(Path({parent!r})) as root, root.worktree(case) as worktree:
        context = ToolContext(worktree=worktree.path, environment=worktree.environment)
        TOOL.run({{"command": "{sleeper} & setsid {sleeper} & wait"}}, context)
"""


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_test_that_another_plugin_stops_leaves_nothing_for_long(
    method: str, sleeper: str, tmp_path: Path
) -> None:
    """A plugin's time limit unwinds the test, or ends the process at once: then the next start clears up."""
    parent = tmp_path.resolve() / "temporary"
    parent.mkdir()
    (tmp_path / "test_slow.py").write_text(SLOW_TEST.format(parent=str(parent), sleeper=sleeper))
    options = ["-p", "no:cacheprovider", "-p", "no:tooleval", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    limit = ["--timeout", "0.7", "--timeout-method", method]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *limit, str(tmp_path / "test_slow.py")],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES},
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "Timeout" in done.stdout + done.stderr
    next_start = "from pytest_tooleval.agent.worktree import *; WorktreeRoot(Path({!r}))._open()"
    script = "from pathlib import Path; " + next_start.format(str(parent))
    if method == "thread":
        assert list(parent.iterdir()) != []
        subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": SOURCES}, check=True, timeout=30)
    assert list(parent.iterdir()) == []
    assert living(sleeper) == []
