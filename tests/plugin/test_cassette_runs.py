from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from obedient_model import obedient_model, task

LOOK = ("list_dir", {})
NO_SOCKETS = """
import socket

def refused(*_, **__):
    raise AssertionError("a socket was opened")

socket.socket.connect = socket.create_connection = refused
"""


def without_times(document):
    document = json.loads(json.dumps(document))
    del document["generatedAt"]
    for case in document["toolUse"]["cases"]:
        del case["latencySeconds"]
    for totals in document["toolUse"]["byTarget"].values():
        del totals["latencySeconds"]
    return document


def write_cases(suite):
    for number in range(6):
        suite.fixture(
            f"c{number}",
            task=task(*[LOOK] * (number % 3), ("file_read", {"path": "a.txt"}), answer=f"Done {number}."),
            files={"a.txt": f"text {number}\n"},
            expected=["list_dir", "file_read"],
        )


def test_a_replayed_run_gives_the_same_result_file_without_a_key(suite):
    write_cases(suite)
    with obedient_model() as model:
        recorded = suite.result("--tooleval-record", "evals", *model.options)
        asked = model.asked
        options = model.options
    assert recorded["toolUse"]["byTarget"]["openai:obedient"]["passRate"] == pytest.approx(1 / 3)
    assert len(list((suite.root / "cassettes").rglob("*.json"))) == 6
    replayed = suite.result("--tooleval-replay", *options)
    assert without_times(replayed) == without_times(recorded)
    workers = suite.result("--tooleval-replay", "-n2", *options)
    assert without_times(workers) == without_times(recorded)
    assert asked == sum(case["attempts"] for case in replayed["toolUse"]["cases"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda suite: suite.write("conftest.py", "x = 1"), None),
        (lambda suite: suite.fixture("c0", task=task(answer="Other."), expected=["list_dir"]), "task changed"),
        (
            lambda suite: suite.fixture(
                "c0", task=task(LOOK, answer="Done."), files={"b.txt": ""}, expected=["list_dir"]
            ),
            "result of list_dir (turn 1) changed",
        ),
    ],
    ids=["nothing", "task", "result"],
)
def test_a_recording_that_no_longer_fits_is_an_error_that_says_what_changed(suite, change, words):
    suite.fixture("c0", task=task(LOOK, answer="Done."), files={"a.txt": ""}, expected=["list_dir"])
    with obedient_model() as model:
        suite.run("--tooleval-record", *model.options).assert_outcomes(passed=1)
    change(suite)
    case = suite.result("--tooleval-replay", "--provider", "openai:obedient")["toolUse"]["cases"][0]
    assert case["verdict"] == ("error" if words else "passed")
    assert (words or "") in case["reason"]


def test_with_both_options_only_what_is_new_is_asked(suite):
    suite.fixture("old", task=task(LOOK), expected=["list_dir"])
    with obedient_model() as model:
        suite.run("--tooleval-record=tapes", *model.options).assert_outcomes(passed=1)
        asked = model.asked
        suite.fixture("new", task=task(LOOK), expected=["list_dir"])
        suite.run("--tooleval-record=tapes", "--tooleval-replay=tapes", *model.options).assert_outcomes(passed=2)
        assert model.asked == asked + 2
    suite.run("--tooleval-replay=tapes", "--provider", "openai:obedient").assert_outcomes(passed=2)
    result = suite.run("--tooleval-record=tapes", "--tooleval-replay=others", "--provider", "openai:obedient")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_trials_and_first_calls_have_recordings_of_their_own(suite):
    suite.fixture("a", task=task(LOOK), expected=["list_dir"])
    with obedient_model() as model:
        suite.run("--tooleval-record", "--tooleval-trials", "3", *model.options).assert_outcomes(passed=3)
        assert model.asked == 6
    names = sorted(path.name for path in (suite.root / "cassettes").rglob("*.json"))
    assert names == ["a.json", "a.t2.json", "a.t3.json"]
    replay = ("--tooleval-replay", "--tooleval-trials", "3", "--provider", "openai:obedient")
    suite.run(*replay).assert_outcomes(passed=3)
    suite.run(*replay, "--tooleval-first-call").assert_outcomes(passed=3)


def test_a_key_never_reaches_a_cassette(suite, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key-1")
    suite.fixture("a", task=task(LOOK), files={"sk-very-secret-key-1": ""}, expected=["list_dir"])
    with obedient_model() as model:
        suite.run("--tooleval-record", *model.options).assert_outcomes(passed=1)
    texts = [path.read_text() for path in (suite.root / "cassettes").rglob("*.json")]
    assert texts
    assert not [text for text in texts if "sk-very-secret" in text]


@pytest.mark.parametrize("way", ["namespace", "refusal"])
def test_a_replay_needs_no_network_at_all(suite, pytester, way):
    isolated = ["unshare", "-rn"] if way == "namespace" else []
    if isolated and subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this system gives no network namespaces to processes: unshare -rn is refused")
    write_cases(suite)
    with obedient_model() as model:
        suite.run("--tooleval-record", *model.options)
    pytester.makeconftest("" if isolated else NO_SOCKETS)
    command = [*isolated, sys.executable, "-m", "pytest", "--tooleval-replay", "--provider", "openai:obedient"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    done = subprocess.run(command, cwd=pytester.path, env=environment, capture_output=True, text=True, check=False)
    assert "openai:obedient: 6 of 6 measured" in done.stdout
