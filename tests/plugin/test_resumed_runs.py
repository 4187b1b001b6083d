"""Runs that are ended and resumed, through a real pytest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNS = ".pytest_cache/d/tooleval/runs"

# A provider that counts what it is asked in a file, and errs once for tasks that say so.
CONFTEST = """
import os, time
from pathlib import Path
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.tools.tool import Tool
from pytest_tooleval.transcript import AssistantMessage, ToolCall

ASKED = Path(__file__).parent / "asked.txt"

class Counting:
    def cannot_run(self, case): return None
    def close(self): pass
    def reply(self, case, request):
        if len(request.messages) > 1:
            return AssistantMessage("done")
        with ASKED.open("a") as file:
            file.write(case.id + "\\n")
        time.sleep(float(os.environ.get("SLOW", "0")))
        if "err" in case.task and "ERR" in os.environ:
            raise ProviderError("HTTP 500")
        name = "glob" if "miss" in case.task else "list_dir"
        return AssistantMessage(calls=(ToolCall("1", name, {"pattern": "*"} if name == "glob" else {}),))

def pytest_tooleval_register_providers(providers):
    providers.add("counting", lambda settings: Counting())

def pytest_tooleval_register_tools(tools):
    tools.add(Tool("mine", os.environ.get("MINE", "Mine."), {"type": "object"}, "read", lambda arguments, context: ""))
"""


@pytest.fixture
def counted(suite, pytester, monkeypatch):
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\ntooleval_provider = counting\n")
    for number in range(6):
        suite.fixture(f"c{number}", expected=["list_dir"], tags=["even"] if number % 2 == 0 else [])
    suite.fixture("missing", task="Please miss.", expected=["list_dir"])
    return suite


def asked(pytester) -> list[str]:
    """Return what was asked since the last time, sorted."""
    path = pytester.path / "asked.txt"
    ids = sorted(path.read_text().split()) if path.exists() else []
    path.unlink(missing_ok=True)
    return ids


ALL = ["c0", "c1", "c2", "c3", "c4", "c5", "missing"]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_finished_cases_are_taken_and_judged_as_before(counted, pytester, workers):
    first = counted.run("--tooleval-json", "first.json", *workers)
    assert asked(pytester) == ALL
    again = counted.run("--tooleval-json", "again.json", "--tooleval-resume", *workers)
    assert asked(pytester) == []
    for result in (first, again):
        result.assert_outcomes(passed=6, failed=1)
    again.stdout.fnmatch_lines(["resumed: 7 cases taken from the run of 20??-??-?? ??:??:?? UTC"])
    first, again = (json.loads((pytester.path / name).read_text()) for name in ("first.json", "again.json"))
    assert again["toolUse"] == first["toolUse"]


def test_a_run_without_the_option_measures_everything(counted, pytester):
    counted.run()
    asked(pytester)
    result = counted.run()
    assert asked(pytester) == ALL
    result.stdout.no_fnmatch_line("resumed: *")


def test_without_a_log_everything_is_run_and_it_is_said(counted, pytester):
    result = counted.run("--tooleval-resume")
    assert asked(pytester) == ALL
    line = "resumed: nothing, for no earlier run of these suites left a log; every case is run"
    result.stdout.fnmatch_lines([line])


def test_what_changed_is_run_again_and_it_is_said_why(counted, pytester, monkeypatch):
    monkeypatch.setenv("ERR", "1")
    counted.fixture("c5", task="Look, or err.", expected=["list_dir"])
    counted.run()
    asked(pytester)
    monkeypatch.delenv("ERR")
    counted.fixture("c1", task="Look again.", expected=["list_dir"])
    counted.fixture("c2", expected=["list_dir"], description="Only words.", tags=["other"])
    counted.fixture("c3", expected=["list_dir"], files={"new.txt": "1"})
    result = counted.run("--tooleval-resume")
    assert asked(pytester) == ["c1", "c3", "c5"]
    result.stdout.fnmatch_lines(
        ["resumed: 4 cases taken from *; 3 run again: error (1), files changed (1), task changed (1)"]
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--tooleval-temperature", "0.5"], "temperature changed"),
        (["--tooleval-max-turns", "3"], "max turns changed"),
        (["--tooleval-result-chars", "500"], "result chars changed"),
    ],
)
def test_an_option_that_is_sent_or_scored_counts(counted, pytester, options, reason):
    counted.run()
    asked(pytester)
    result = counted.run("--tooleval-resume", *options)
    assert asked(pytester) == ALL
    result.stdout.fnmatch_lines([f"resumed: 0 cases taken from *; 7 run again: {reason} (7)"])


def test_a_tool_of_the_user_counts_by_its_schema(counted, pytester, monkeypatch):
    counted.run()
    asked(pytester)
    monkeypatch.setenv("MINE", "Says something else.")
    result = counted.run("--tooleval-resume")
    assert asked(pytester) == ALL
    result.stdout.fnmatch_lines(["resumed: 0 cases taken from *; 7 run again: tool mine changed (7)"])


@pytest.mark.parametrize(
    "options",
    [
        ["-n", "2"],
        ["--tooleval-concurrency", "1"],
        ["--tooleval-strict"],
        ["-k", "c1"],
        ["--tooleval-json", "x.json"],
    ],
)
def test_an_option_of_output_selection_or_speed_does_not_count(counted, pytester, options):
    counted.run()
    asked(pytester)
    counted.run("--tooleval-resume", *options)
    assert asked(pytester) == []


def test_a_run_of_a_few_cases_between_does_not_matter(counted, pytester):
    counted.run()
    counted.run("-k", "c1")
    asked(pytester)
    counted.run("--tooleval-resume")
    assert asked(pytester) == []


def test_more_trials_are_added_to_those_that_are_there(counted, pytester):
    counted.run("--tooleval-trials", "2")
    asked(pytester)
    result = counted.run("--tooleval-resume", "--tooleval-trials", "3")
    assert asked(pytester) == ALL
    result.stdout.fnmatch_lines(["resumed: 14 cases taken from *; 7 had not finished"])


def start(pytester, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "--tooleval-concurrency", "1", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        command,
        cwd=pytester.path,
        env={**kept, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_when_asked(pytester, process: subprocess.Popen[bytes], number: int) -> None:
    path: Path = pytester.path / "asked.txt"
    deadline = time.monotonic() + 60
    while not path.exists() or len(path.read_text().split()) < number:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_run_is_resumed_as_often_as_it_is_killed(counted, pytester):
    kill_when_asked(pytester, start(pytester, SLOW="0.3"), 3)
    assert asked(pytester) == ["c0", "c1", "c2"]
    kill_when_asked(pytester, start(pytester, "--tooleval-resume", SLOW="0.3"), 2)
    assert asked(pytester) == ["c2", "c3"]
    result = counted.run("--tooleval-resume")
    assert asked(pytester) == ["c3", "c4", "c5", "missing"]
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["resumed: 3 cases taken from *; 4 had not finished"])


def test_old_logs_are_removed_and_collecting_writes_none(counted, pytester):
    for _ in range(6):
        counted.run("-k", "c0")
    left = {path.name for path in (pytester.path / RUNS).iterdir()}
    assert len(left) == 4  # three old ones and the last
    counted.run("--collect-only")
    assert {path.name for path in (pytester.path / RUNS).iterdir()} <= left


def test_without_the_cache_there_is_no_log(counted, pytester):
    counted.run("-p", "no:cacheprovider").assert_outcomes(passed=6, failed=1)
    result = counted.run("-p", "no:cacheprovider", "--tooleval-resume")
    result.assert_outcomes(passed=6, failed=1)
    assert not (pytester.path / ".pytest_cache").exists()


def test_a_log_that_cannot_be_written_is_one_line_and_no_failure(counted, pytester):
    folder = pytester.path / ".pytest_cache/d/tooleval"
    folder.mkdir(parents=True)
    (folder / "runs").write_text("in the way")
    result = counted.run()
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["the run log *: Not a directory; cases that it lacks cannot be resumed"])


def test_secrets_do_not_reach_the_log(counted, pytester, monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", "sk-test-0123456789abcdef")
    counted.fixture("leak", task="It is sk-test-0123456789abcdef.", verifier={"answer": {"contains": "done"}})
    counted.run("-k", "leak", "--provider-url", "http://me:pa55word@localhost:1/v1")
    for path in (pytester.path / RUNS).rglob("*.jsonl"):
        assert "sk-test" not in path.read_text()
        assert "pa55word" not in path.read_text()


def test_a_repeated_failure_is_measured_anew(counted, pytester):
    pytest.importorskip("pytest_rerunfailures")
    counted.run()
    asked(pytester)
    counted.run("--tooleval-resume", "--reruns", "1")
    assert asked(pytester) == ["missing"]
