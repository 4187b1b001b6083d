from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from obedient_model import obedient_model, task

LOOK = ("list_dir", {})
WHERE_AM_I = """
import os, pathlib, threading, time
from pytest_tooleval.tools.tool import Tool

def where(arguments, context):
    time.sleep(0.01)
    own = os.path.realpath(".") == str(context.worktree) and pathlib.Path("name.txt").read_text()
    return f"{own} {threading.current_thread() is threading.main_thread()}"

def hang(arguments, context):
    time.sleep(60)

def pytest_tooleval_register_tools(tools):
    parameters = {"type": "object", "properties": {}}
    tools.add(Tool("where", "Tell where I am.", parameters, "read", where))
    tools.add(Tool("hang", "Never return.", parameters, "read", hang))
"""

# A parent that was started with nohup or in the background would hand its deafness down.
HEARS_SIGNALS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""


def without_times(document):
    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in {"latencySeconds", "generatedAt"}}
        return [strip(member) for member in value] if isinstance(value, list) else value

    return strip(document)


def test_so_many_cases_run_at_a_time_and_items_keep_their_order(suite):
    for number in range(12):
        suite.fixture(f"c{number:02}", task=task(LOOK, delay=0.3 if number % 4 == 0 else 0.05))
    with obedient_model() as model:
        result = suite.run("-v", "--tooleval-concurrency", "5", *model.options)
        assert model.most_at_once == 5
        assert model.asked == 24
    named = [line.split("::")[1].split()[0] for line in result.outlines if "PASSED" in line]
    assert named == [f"c{number:02}" for number in range(12)]


def test_eight_run_at_a_time_unless_told_otherwise(suite):
    for number in range(20):
        suite.fixture(f"c{number:02}", task=task(LOOK, delay=0.1))
    with obedient_model() as model:
        suite.run(*model.options).assert_outcomes(passed=20)
        assert model.most_at_once == 8


def test_the_result_file_is_the_same_for_one_and_for_many(suite):
    for number in range(9):
        suite.fixture(f"c{number}", task=task(*[LOOK] * (number % 3), delay=0.02))
    suite.thresholds(overall={"passRateMin": 0.2})
    with obedient_model() as model:
        documents = [
            without_times(suite.result(*model.options, *options))
            for options in (
                ["--tooleval-concurrency", "1"],
                ["--tooleval-concurrency", "6"],
                ["-n2"],
                ["-n2", "--dist", "worksteal", "--tooleval-concurrency", "3"],
                ["-n2", "--dist", "loadfile"],
            )
        ]
    assert documents[0]["toolUse"]["byTarget"]["openai:obedient"]["passRate"] == pytest.approx(3 / 9)
    assert all(document == documents[0] for document in documents[1:])


def test_a_worker_runs_ahead_in_the_items_that_it_was_given(suite):
    for number in range(24):
        suite.fixture(f"c{number:02}", task=task(LOOK, delay=0.2))
    with obedient_model() as model:
        suite.run("-n2", "--tooleval-concurrency", "4", *model.options).assert_outcomes(passed=24)
        assert 4 < model.most_at_once <= 8


def test_nothing_new_is_begun_after_the_failure_that_ends_the_run(suite):
    for number in range(30):
        suite.fixture(f"c{number:02}", task=task(*[LOOK] * (number != 1), delay=0.1))
    with obedient_model() as model:
        result = suite.run("-x", "--tooleval-concurrency", "2", *model.options)
        time.sleep(0.3)
        assert model.asked <= 12
    result.assert_outcomes(passed=1, failed=1)


def test_a_thread_has_a_working_directory_of_its_own(suite, pytester):
    pytester.makeconftest(WHERE_AM_I)
    for number in range(40):
        suite.fixture(
            f"c{number:02}",
            task=task(("where", {}), ("run_command", {"command": "cat name.txt"}), delay=0.01),
            files={"name.txt": f"file of {number}"},
            tool_permission={"bash": "allow"},
            expected=["where", "run_command"],
            git=number % 5 == 0,
        )
    with obedient_model() as model:
        document = suite.result("--tooleval-concurrency", "16", *model.options)
        assert model.most_at_once > 4
    cases = document["toolUse"]["cases"]
    assert [case["verdict"] for case in cases] == ["passed"] * 40


@pytest.mark.parametrize(
    ("calls", "limit", "verdict", "words"),
    [
        pytest.param([("run_command", {"command": "sleep 30"})], 0.6, "missed", "in run_command", id="tool"),
        pytest.param([("hang", {})], 0.3, "error", "could not be ended from outside", id="hanging tool"),
    ],
)
def test_a_run_past_its_time_limit_is_ended(suite, pytester, calls, limit, verdict, words):
    pytester.makeconftest(WHERE_AM_I)
    suite.fixture(
        "slow", task=task(*calls), timeout=limit, expected=[calls[0][0]], tool_permission={"bash": "allow"}
    )
    started = time.monotonic()
    with obedient_model() as model:
        case = suite.result(*model.options)["toolUse"]["cases"][0]
    assert case["verdict"] == verdict
    assert words in case["reason"]
    assert time.monotonic() - started < limit + 9


def test_a_model_that_does_not_answer_in_time_is_the_infrastructures_fault(suite):
    suite.fixture("slow", task=task(LOOK, delay=3.0))
    suite.fixture("swift", task=task(LOOK))
    with obedient_model() as model:
        slow, swift = suite.result("--tooleval-timeout", "0.5", *model.options)["toolUse"]["cases"]
    assert (slow["verdict"], swift["verdict"]) == ("error", "passed")
    assert "time limit" in slow["reason"]


def test_a_scripted_case_has_a_time_limit_too(suite):
    turn = {"calls": [{"name": "run_command", "arguments": {"command": "sleep 30"}}]}
    suite.fixture("slow", mock=[turn], expected=["run_command"], tool_permission={"bash": "allow"}, timeout=0.4)
    case = suite.result()["toolUse"]["cases"][0]
    assert case["verdict"] == "missed"
    assert case["trace"][0]["outcome"] == "error"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "workers"])
def test_an_interrupted_run_ends_soon_and_leaves_nothing_behind(suite, pytester, tmp_path, number, workers):
    for at in range(12):
        suite.fixture(f"a{at:02}", task=task(LOOK))
    for at in range(12):
        suite.fixture(
            f"b{at:02}",
            task=task(("run_command", {"command": "echo $$ > pid; exec sleep 77"})),
            expected=["run_command"],
            tool_permission={"bash": "allow"},
        )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", HEARS_SIGNALS, "-p", "no:randomly", "--tooleval-json", "result.json", *workers]
    with obedient_model() as model:
        process = subprocess.Popen(
            [*command, *model.options],
            cwd=pytester.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        pids = wait_for_commands(tmp_path, 4)
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)  # the commands would go on for longer
    assert process.returncode == 2, output
    assert "a00" in output
    document = json.loads((pytester.path / "result.json").read_text())
    assert document["interrupted"] is True
    assert document["verdict"] == "fail"
    assert {case["id"] for case in document["toolUse"]["cases"]} >= {"a00", "a01"}
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not list(tmp_path.glob("tooleval-*"))


def wait_for_commands(folder: Path, least: int) -> list[str]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        pids = [text for path in folder.glob("tooleval-*/*/work/pid") if (text := path.read_text().strip())]
        if len(pids) >= least:
            return pids
        time.sleep(0.05)
    raise AssertionError(f"no {least} commands came up in {tempfile.gettempdir()}")
