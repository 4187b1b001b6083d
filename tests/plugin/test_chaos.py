"""Runs from which the ground is pulled: processes killed, folders that cannot be written, limits reached."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from obedient_model import ObedientModel, obedient_model, task

LOOK = ("list_dir", {})
FOREVER = {"command": "echo $$ > pid; echo $PPID > parent; exec sleep 77"}


def started(pytester: pytest.Pytester, folder: Path, model: ObedientModel, *options: str) -> subprocess.Popen[str]:
    """Start pytest as a process of its own whose temporary files are in this folder."""
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", *options, *model.options],
        cwd=pytester.path,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def soon(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for what is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.03)
    return found


def written(folder: Path, name: str, least: int = 1) -> list[int]:
    """Return the numbers that commands wrote to files of this name, when there are enough of them."""
    texts = [path.read_text().strip() for path in folder.glob(f"tooleval-*/*/work/{name}")]
    numbers = [int(text) for text in texts if text]
    return numbers if len(numbers) >= least else []


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def cases_of(pytester: pytest.Pytester, name: str = "r.json") -> dict[str, str]:
    document = json.loads((pytester.path / name).read_text())
    verdicts = [(case["id"], case["verdict"]) for case in document["toolUse"]["cases"]]
    assert len(dict(verdicts)) == len(verdicts)
    return dict(verdicts)


def test_a_worker_that_is_killed_costs_the_case_it_was_at(
    suite: Any, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    suite.fixture(
        "forever", task=task(("run_command", FOREVER)), expected=["run_command"], tool_permission={"bash": "allow"}
    )
    for at in range(24):
        suite.fixture(f"g{at:02}", task=task(LOOK, delay=0.05))
    folder = tmp_path / "t"
    with obedient_model() as model:
        run = started(pytester, folder, model, "-n2", "-rf", "--tooleval-json", "r.json")
        (worker,) = soon(lambda: written(folder, "parent"))
        (command,) = written(folder, "pid")
        os.kill(worker, signal.SIGKILL)
        output, _ = run.communicate(timeout=60)
        assert run.returncode == 1, output
        assert (
            output.count("crashed while running 'evals/fixtures/forever.json::forever'") == 2
        )  # report and summary
        assert cases_of(pytester) == {f"g{at:02}": "passed" for at in range(24)}
        assert "not measured: 1 item did not end" in output
        assert json.loads((pytester.path / "r.json").read_text())["verdict"] == "fail"

        env = {**os.environ, "TMPDIR": str(folder)}
        following = [sys.executable, "-m", "pytest", "-q", "-k", "g00", *model.options]
        subprocess.run(following, cwd=pytester.path, env=env, check=True, capture_output=True, timeout=60)
    soon(lambda: not lives(command))
    assert not list(folder.glob("tooleval-*"))


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "workers"])
def test_what_a_killed_run_started_is_gone_at_the_latest_with_the_next_one(
    suite: Any, pytester: pytest.Pytester, tmp_path: Path, workers: list[str]
) -> None:
    for at in range(6):
        suite.fixture(
            f"f{at}",
            task=task(("run_command", FOREVER)),
            expected=["run_command"],
            tool_permission={"bash": "allow"},
        )
    suite.fixture("good", task=task(LOOK))
    folder = tmp_path / "t"
    with obedient_model() as model:
        run = started(pytester, folder, model, "-k", "f", *workers)
        commands = soon(lambda: written(folder, "pid", 4))
        processes = {run.pid, *written(folder, "parent")}
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        soon(lambda: not any(map(lives, processes)))
        if workers:
            soon(lambda: not any(map(lives, commands)))
        env = {**os.environ, "TMPDIR": str(folder)}
        following = [sys.executable, "-m", "pytest", "-q", "-k", "good", *model.options]
        subprocess.run(following, cwd=pytester.path, env=env, check=True, capture_output=True, timeout=60)
    assert not any(map(lives, commands))
    assert not list(folder.glob("tooleval-*"))


def without_rights(command: list[str]) -> list[str]:
    """Return a command that even root runs without the right to write anywhere."""
    if os.geteuid() != 0:
        return command
    program = shutil.which("setpriv")
    if program is None:
        pytest.skip("root can write everywhere here")
    return [program, "--bounding-set=-dac_override,-dac_read_search", *command]


@pytest.mark.parametrize("options", [[], ["--tooleval-resume"], ["--tooleval-record=out/cassettes"]])
def test_a_project_that_cannot_be_written_to_is_measured(
    suite: Any, pytester: pytest.Pytester, tmp_path: Path, options: list[str]
) -> None:
    suite.passing("a")
    (pytester.path / "out").mkdir()
    folders = [path for path in [pytester.path, *pytester.path.rglob("*")] if path.is_dir() and path.name != "out"]
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = subprocess.run(
            without_rights(
                [sys.executable, "-m", "pytest", "--tooleval-json", "out/r.json", "--junitxml", "out/j.xml", *options]
            ),
            cwd=pytester.path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases_of(pytester, "out/r.json") == {"a": "passed"}
    assert "INTERNALERROR" not in done.stdout + done.stderr


FULL = """
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(pytest.main(sys.argv[2:]))
"""


def test_a_full_disk_spoils_no_file_and_is_told(suite: Any, pytester: pytest.Pytester, tmp_path: Path) -> None:
    suite.fixture("large", mock=[{"text": "x" * 300_000}], verifier={"answer": {"contains": ["x"]}})
    suite.passing("good")
    (pytester.path / "r.json").write_text('{"old": true}')
    command = [sys.executable, "-c", FULL, "100000", "-p", "no:randomly", "-o", "junit_logging=no"]
    files = ["--tooleval-json", "r.json", "--tooleval-snapshot", "snap"]
    done = subprocess.run(
        [*command, *files], cwd=pytester.path, capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stdout + done.stderr
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said
    assert done.returncode == 1, said
    assert f"the result file {pytester.path}/r.json could not be written: File too large" in said
    assert "the run log " in said
    assert json.loads((pytester.path / "r.json").read_text()) == {"old": True}
    left = [path.name for path in pytester.path.rglob("*") if path.is_file() and ".tooleval-" in path.name]
    assert left == []
    assert not list((pytester.path / "snap").rglob("*.json"))

    resumed = suite.run("--tooleval-resume", "--tooleval-json", "r.json")
    resumed.stdout.fnmatch_lines(["resumed: 1 case taken from *; 1 had not finished"])
    assert cases_of(pytester) == {"large": "passed", "good": "passed"}


def test_a_case_whose_files_do_not_fit_is_an_error_of_its_own(suite: Any, pytester: pytest.Pytester) -> None:
    suite.passing("big", files={"big.txt": "x" * 300_000})
    suite.passing("good")
    command = [sys.executable, "-c", FULL, "100000", "-p", "no:randomly", "--tooleval-json", "r.json"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=60, check=False)
    assert cases_of(pytester) == {"big": "error", "good": "passed"}
    assert (
        "case big: the file 'big.txt' cannot be written: File too large; free space, or set TMPDIR" in done.stdout
    )


CROWDED = """
import os, resource
from pytest_tooleval.tools.tool import Tool

LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)

def crowd(arguments, context):
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1, LIMITS[1]))
    return "crowded"

def pytest_runtest_teardown(item):
    resource.setrlimit(resource.RLIMIT_NOFILE, LIMITS)

def pytest_tooleval_register_tools(tools):
    tools.add(Tool("crowd", "Use all that there is.", {"type": "object"}, "read", crowd))
"""


def test_no_room_for_a_command_is_an_error_of_that_case_only(suite: Any, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CROWDED)
    calls = [{"name": "crowd"}, {"name": "run_command", "arguments": {"command": "echo hi"}}]
    suite.fixture("crowded", mock=[{"calls": calls}], expected=["crowd"], tool_permission={"bash": "allow"})
    suite.fixture(
        "following", mock=[{"calls": calls[1:]}], expected=["run_command"], tool_permission={"bash": "allow"}
    )
    result = suite.run("--tooleval-json", "r.json")
    assert cases_of(pytester) == {"crowded": "error", "following": "passed"}
    result.stdout.fnmatch_lines(["not measured: no process can be started: Too many open files*ulimit*"])


DIES_ONCE = """
import os
from pathlib import Path
from pytest_tooleval.tools.tool import Tool

DIED = Path(__file__).parent / "died"

def die(arguments, context):
    if not DIED.exists():
        DIED.touch()
        os._exit(9)
    return "alive"

def pytest_tooleval_register_tools(tools):
    tools.add(Tool("die", "Die, the first time.", {"type": "object"}, "read", die))
"""


def test_a_case_that_a_crash_and_a_rerun_had_counts_once(suite: Any, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(DIES_ONCE)
    suite.fixture("killer", ["die"], expected=["die"])
    suite.missing("miss")
    for name in "abcdef":
        suite.passing(name)
    result = suite.run("-n2", "--reruns", "1", "--tooleval-json", "r.json")
    found = cases_of(pytester)
    assert found == {**dict.fromkeys("abcdef", "passed"), "killer": "passed", "miss": "missed"}
    document = json.loads((pytester.path / "r.json").read_text())
    assert document["toolUse"]["byTarget"]["mock"]["n"] == 8
    result.stdout.no_fnmatch_line("*did not end*")
