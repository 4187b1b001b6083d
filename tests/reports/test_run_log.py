"""The run log: what is written is read, whatever happened to the process or the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import TEXT, json_values
from run_logs import JSON_TEXT, NOON, SECRET, SHARED, fingerprint, header, key, outcome, write, written

from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.run_log import RunHeader, RunLog, new_run_id, started_at
from pytest_tooleval.reports.run_log_reader import LoggedTurns, logged_runs, remove_old_runs, run_to_resume

SUPPORT = Path(__file__).parents[1] / "support"


def only_run(folder: Path) -> LoggedTurns:
    (run,) = logged_runs(folder)
    return LoggedTurns(run)


def answer_of(turns: LoggedTurns, case_id: str) -> object:
    turn = turns.pop(JSON_TEXT(list(key(case_id))))
    return None if turn is None else turn.outcome.record["answer"]


def in_a_child(script: str, *arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_turn_comes_back_as_it_was(tmp_path):
    run = header(items=3, whole=False)
    log = RunLog(tmp_path, run, "gw0", JSON_TEXT)
    record = {"pass": False, "x": [1, 2.5, 10**30, None, "\u2028é"], "n": {"usage": None}}
    expected = CaseOutcome(False, record, "HTTP 500", "/tmp/kept")
    log.append(key("a", trial=2), fingerprint("1", files="2"), expected)
    log.close()

    (found,) = logged_runs(tmp_path)
    turns = LoggedTurns(found)
    turn = turns.pop(JSON_TEXT(list(key("a", trial=2))))

    assert found.header == run
    assert turn is not None
    assert turn.outcome == expected
    assert (turn.parts, turns.shared[turn.shared]) == ({"task": "1", "files": "2"}, SHARED.parts)
    assert turns.pop(JSON_TEXT(list(key("a", trial=2)))) is None


def test_the_file_is_json_lines_with_a_header(tmp_path):
    run = header()
    path = write(tmp_path, run, "a", "b")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.parent.name == run.run
    assert lines[0] == {
        "format": 1,
        "run": run.run,
        "suites": ["evals"],
        "items": 10,
        "whole": True,
        "resumes": "",
        "began": "",
        "startedAt": "2026-01-02 12:00:00 UTC",
        "firstStartedAt": "2026-01-02 12:00:00 UTC",
    }
    assert [line.get("key") for line in lines[1:]] == [None, list(key("a")), list(key("b"))]
    assert lines[1] == {"shared": SHARED.id, "parts": SHARED.parts}


def test_the_ids_of_runs_sort_by_time_and_differ():
    ids = [new_run_id(NOON) for _ in range(50)]
    assert len(set(ids)) > 45
    assert max(ids) < header(minutes=1 / 60_000_000).run
    assert started_at(ids[0]) == "2026-01-02 12:00:00 UTC"
    assert started_at("odd") == "odd"


def test_secrets_do_not_reach_the_file(tmp_path):
    log = RunLog(tmp_path, header(), "main", JSON_TEXT)
    log.append(key("a"), fingerprint(), outcome({"said": [f"it is {SECRET}"]}, error=f"{SECRET} was refused"))
    log.close()
    (path,) = tmp_path.rglob("*.jsonl")
    assert SECRET not in path.read_text()
    assert path.read_text().count("[redacted]") == 2


def test_a_key_that_holds_what_is_redacted_is_found(tmp_path):
    write(tmp_path, header(), SECRET, 'q", "shared": "')
    turns = only_run(tmp_path)
    assert answer_of(turns, SECRET) == "[redacted]"
    assert answer_of(turns, 'q", "shared": "') == 'q", "shared": "'


def test_of_a_turn_that_is_repeated_the_last_counts(tmp_path):
    log = written(tmp_path, header(), "a")
    log.append(key("a"), fingerprint("2"), outcome("again"))
    log.close()
    assert answer_of(only_run(tmp_path), "a") == "again"


def test_threads_write_whole_lines(tmp_path):
    log = RunLog(tmp_path, header(), "main", JSON_TEXT)

    def work(number: int) -> None:
        for turn in range(100):
            log.append(key(f"{number}-{turn}"), fingerprint(), outcome("x" * 3000 + f"{number}-{turn}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    turns = only_run(tmp_path)
    assert len(turns) == 800
    for number in range(8):
        for turn in range(100):
            assert answer_of(turns, f"{number}-{turn}") == "x" * 3000 + f"{number}-{turn}"


def test_a_skipped_case_is_not_written(tmp_path):
    log = written(tmp_path, header(), "a")
    log.append(key("b"), fingerprint(), CaseOutcome(passed=False, skipped="nothing to judge"))
    log.close()
    assert len(only_run(tmp_path)) == 1


def test_after_the_end_nothing_is_written(tmp_path):
    log = written(tmp_path, header(), "a")
    log.close()
    log.append(key("late"), fingerprint(), outcome())
    log.close()
    assert len(only_run(tmp_path)) == 1
    assert not log.warning


WRITER = """
import sys
from pathlib import Path
from run_logs import *
log = RunLog(Path(sys.argv[1]), header(), "main", JSON_TEXT)
number = 0
while True:
    log.append(key(str(number)), fingerprint(), outcome("x" * 4000 + str(number)))
    print(number, flush=True)
    number += 1
"""


def test_a_killed_process_loses_no_turn_that_ended(tmp_path):
    with in_a_child(WRITER, tmp_path) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(150)]
        assert list(logged_runs(tmp_path)) == []  # it goes on
        child.send_signal(signal.SIGKILL)
        told += [int(line) for line in child.stdout.read().splitlines()]
    turns = only_run(tmp_path)
    assert len(told) >= 150
    for number in told:
        assert answer_of(turns, str(number)) == "x" * 4000 + str(number)


FULL_DISK = """
import json, resource, sys
from pathlib import Path
from run_logs import *
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
log = RunLog(Path(sys.argv[1]), header(), "main", JSON_TEXT)
log.append(key("before"), fingerprint(), outcome("x" * 3000))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
for number in range(3):
    log.append(key(f"full{number}"), fingerprint(), outcome("x" * 3000))
first = log.warning
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.append(key("after"), fingerprint(), outcome("x" * 3000))
log.append(key("last"), fingerprint(), outcome("x" * 3000))
print(json.dumps([first, log.warning]))
"""


@pytest.mark.parametrize("limit", [1000, 3400, 3500, 5000])
def test_a_full_disk_costs_only_what_did_not_fit(tmp_path, limit):
    child = in_a_child(FULL_DISK, tmp_path, limit)
    said, _ = child.communicate(timeout=60)
    first, last = json.loads(said)
    (path,) = tmp_path.rglob("*.jsonl")
    assert child.returncode == 0
    assert first == last == f"the run log {path}: File too large; cases that it lacks cannot be resumed"
    turns = only_run(tmp_path)
    assert [answer_of(turns, name) for name in ("before", "after", "last")] == ["x" * 3000] * 3
    assert all(is_lost(turns, f"full{number}") for number in range(3))


def is_lost(turns: LoggedTurns, case_id: str) -> bool:
    """Whether a turn is not there, or what is there of it is known to be damaged."""
    try:
        return answer_of(turns, case_id) is None
    except ValueError:
        return True


def test_a_folder_that_cannot_be_made_is_one_warning(tmp_path):
    (tmp_path / "runs").write_text("a file where the folder belongs")
    log = written(tmp_path / "runs", header(), "a", "b")
    assert log.warning.startswith(f"the run log {tmp_path}/runs/")
    assert log.warning.endswith(": Not a directory; cases that it lacks cannot be resumed")
    log.close()
    assert list(logged_runs(tmp_path / "runs")) == []
    remove_old_runs(tmp_path / "runs")


def test_a_record_that_is_no_json_is_a_warning_and_the_rest_is_written(tmp_path):
    log = RunLog(tmp_path, header(), "main", JSON_TEXT)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    log.append(key("odd"), fingerprint(), outcome(b"bytes"))
    log.append(key("deep"), fingerprint(), outcome(deep))
    log.append(key("good"), fingerprint(), outcome("fine"))
    log.close()
    assert "the turn of odd is not JSON: Object of type bytes is not JSON serializable" in log.warning
    assert answer_of(only_run(tmp_path), "good") == "fine"


TURNS = st.lists(st.tuples(TEXT, json_values()), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(TURNS, st.data())
def test_what_is_whole_is_read_wherever_the_file_is_torn(turns, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = RunLog(folder, header(), "main", JSON_TEXT)
        for case_id, answer in turns:
            log.append(key(case_id), fingerprint(), outcome(answer))
        log.close()
        (path,) = folder.rglob("*.jsonl")
        whole = path.read_bytes()
        ends = [position + 1 for position, byte in enumerate(whole) if byte == 10]
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        runs = list(logged_runs(folder))
        if cut < ends[0]:
            assert runs == []
            return
        kept = dict(turns[: sum(end <= cut for end in ends[2:])])
        found = LoggedTurns(runs[0])
        assert len(found) == len(kept)
        for case_id, answer in kept.items():
            assert answer_of(found, case_id) == answer
        found.close()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"", b'{"key": ', b'{"shared": ', b'{"key": ["a"], "shared": "']))
def test_garbage_between_lines_is_passed_over(noise, start):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write(folder, header(), "a", "b")
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:3], start + noise + b"\n", *lines[3:]]) + start + noise)
        found = only_run(folder)
        assert [answer_of(found, case_id) for case_id in "ab"] == ["a", "b"]
        if start.endswith(b'"shared": "'):
            with pytest.raises(ValueError, match=r"."):
                found.pop('["a"]')
        found.close()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        '{"format": 2}',
        '{"format": 1, "run": 3, "suites": [], "items": 1, "whole": true, "resumes": "", "began": ""}',
        '{"format": 1, "run": "x", "suites": "evals", "items": 1, "whole": true, "resumes": "", "began": ""}',
        '{"format": 1, "run": "x", "suites": [1], "items": 1, "whole": true, "resumes": "", "began": ""}',
        '{"format": 1, "run": "x", "suites": [], "items": "1", "whole": true, "resumes": "", "began": ""}',
        '{"format": 1, "run": "x", "suites": [], "items": 1, "whole": true}',
    ],
)
def test_a_file_without_a_header_of_this_format_is_no_log(tmp_path, line):
    path = write(tmp_path, header(), "a")
    path.write_text(f"{line}\n")
    assert list(logged_runs(tmp_path)) == []


def test_what_else_lies_in_the_folder_is_left_alone(tmp_path):
    foreign = [tmp_path / "notes.txt", tmp_path / "0000" / "x.jsonl"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    write(tmp_path, header(), "a")
    remove_old_runs(tmp_path, keep=0)
    assert [path.read_text() for path in foreign] == ["mine", "mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0000", "notes.txt"]


def test_the_newest_runs_are_kept_of_whole_ones_and_of_others(tmp_path):
    whole = [header(minutes) for minutes in (1, 2, 3, 4)]
    parts = [header(minutes, whole=False) for minutes in (5, 6, 7, 8, 9)]
    for run in (*whole, *parts):
        write(tmp_path, run, "a")
    remove_old_runs(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [run.run for run in (*whole[1:], *parts[2:])]


def test_a_run_that_goes_on_is_neither_removed_nor_resumed(tmp_path):
    live = written(tmp_path, header(), "a")
    write(tmp_path, header(minutes=1), "b")
    remove_old_runs(tmp_path, keep=1)
    assert [run.header.run[:19] for run in logged_runs(tmp_path)] == ["2026-01-02T12-01-00"]
    live.append(key("c"), fingerprint(), outcome())
    live.close()
    assert len(list(logged_runs(tmp_path))) == 2
    remove_old_runs(tmp_path, keep=1)
    assert len(list(tmp_path.iterdir())) == 1


def test_the_files_of_a_runs_processes_are_one_log(tmp_path):
    run = header()
    write(tmp_path, run, "a", process="gw0")
    write(tmp_path, run, "b", process="gw1")
    turns = only_run(tmp_path)
    assert (answer_of(turns, "a"), answer_of(turns, "b")) == ("a", "b")


def names(folder: Path, now: RunHeader) -> str | None:
    found = run_to_resume(folder, now)
    return None if found is None else found.header.run


def test_the_last_run_of_the_same_suites_is_resumed(tmp_path):
    now = header(minutes=9)
    assert names(tmp_path, now) is None
    first, second, other = header(1), header(2), header(3, suites=("others",))
    for run in (first, second, other):
        write(tmp_path, run, "a")
    assert names(tmp_path, header(9, suites=("evals", "more"))) == second.run
    assert names(tmp_path, header(9, suites=("unknown",))) is None
    write(tmp_path, now, "own")
    assert names(tmp_path, now) == second.run


@pytest.mark.parametrize(
    ("now", "resumed"),
    [
        (header(9, items=100), "whole"),
        (header(9, items=101), "whole"),
        (header(9, items=5, whole=False), "part"),
        (header(9, items=6, whole=False), "whole"),
        (header(9, suites=("evals", "b"), items=200), "one"),
    ],
)
def test_a_run_of_a_few_cases_between_is_passed_over(tmp_path, now, resumed):
    runs = {
        "whole": header(1, items=100),
        "part": header(2, items=5, whole=False),
        "one": header(3, items=1, whole=False),
    }
    for run in runs.values():
        write(tmp_path, run, "a")
    assert names(tmp_path, now) == runs[resumed].run
