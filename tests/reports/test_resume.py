"""A run that takes what an earlier one has finished."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from run_logs import JSON_TEXT, SHARED, fingerprint, header, key, outcome, write

from pytest_tooleval.measures.fingerprint import SharedHashes
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.resume import MOST_REASONS, Rerun, ResumeCounts, Resumed
from pytest_tooleval.reports.run_log import RunLog
from pytest_tooleval.reports.run_log_reader import LoggedTurns, logged_runs, remove_old_runs


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def resume(folder, minutes=9) -> Resumed:
    return Resumed.last_run(folder, header(minutes), JSON_TEXT)


def log_of(folder, minutes, *turns) -> None:
    log = RunLog(folder, header(minutes), "main", JSON_TEXT)
    for turn in turns:
        log.append(*turn)
    log.close()
    assert not log.warning


def test_a_finished_case_is_taken_once_whether_it_passed_or_missed(runs):
    missed = outcome("no", passed=False)
    log_of(runs, 1, (key("a"), fingerprint(), outcome("yes")), (key("b"), fingerprint(), missed))
    resumed = resume(runs)
    assert resumed.take(key("a"), fingerprint()) == outcome("yes")
    assert resumed.take(key("b"), fingerprint()) == missed
    assert resumed.take(key("a"), fingerprint()) is None
    assert resumed.take(key("a", trial=2), fingerprint()) is None
    assert (resumed.counts.taken, resumed.counts.unfinished, resumed.counts.again) == (2, 2, {})


OTHER_TOOL = SharedHashes.of({"model": "m", "tool grep": "2"})


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (fingerprint("2"), "task changed"),
        (fingerprint("2", files="f"), "task changed and files changed"),
        (fingerprint(shared=OTHER_TOOL), "tool grep changed"),
        (fingerprint("2", shared=OTHER_TOOL), "task changed and tool grep changed"),
        (fingerprint("2", a="1", b="1", c="1"), "task changed and a changed and b changed and 1 more"),
    ],
)
def test_a_case_that_changed_is_run_again_and_it_is_said_why(runs, now, reason):
    log_of(runs, 1, (key("a"), fingerprint(), outcome()))
    resumed = resume(runs)
    assert resumed.take(key("a"), now) == Rerun(reason)
    assert resumed.counts.again == {reason: 1}


def test_a_case_that_errored_is_run_again(runs):
    log_of(runs, 1, (key("a"), fingerprint(), outcome(passed=False, error="HTTP 500")))
    assert resume(runs).take(key("a"), fingerprint()) == Rerun("error")


def damage(folder, before: bytes, after: bytes) -> None:
    (path,) = folder.rglob("*.jsonl")
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"answer"', b"answer"),
        (b'"passed": true', b'"passed": 1'),
        (b'"error": ""', b'"error": null'),
        (b'"record": {', b'"rec": {'),
        (b'{"passed"', b'["passed"'),
        (b'{"task": "t"}', b'{"task": 7}'),
        (b'{"task": "t"}', b"[]"),
        (b'"answer": "ok"', b'"answer": ' + b"[" * 100_000),
    ],
)
def test_a_damaged_line_is_run_again(runs, before, after):
    log_of(runs, 1, (key("a"), fingerprint(), outcome()), (key("b"), fingerprint("u"), outcome("fine")))
    damage(runs, before, after)
    resumed = resume(runs)
    assert resumed.take(key("a"), fingerprint()) == Rerun("damaged line in the log")


def test_lost_shared_parts_matter_only_where_they_changed(runs):
    log_of(runs, 1, (key("a"), fingerprint(), outcome()), (key("b"), fingerprint(), outcome()))
    damage(runs, b'{"shared"', b'{"torn"')
    resumed = resume(runs)
    assert isinstance(resumed.take(key("a"), fingerprint()), CaseOutcome)
    assert resumed.take(key("b"), fingerprint(shared=OTHER_TOOL)) == Rerun("tools or options changed")


def test_without_a_log_nothing_is_taken_and_it_is_said(runs):
    resumed = resume(runs)
    assert resumed.take(key("a"), fingerprint()) is None
    assert resumed.files == ()
    assert resumed.header(header(9)).resumes == ""
    assert resumed.counts.summary == (
        "resumed: nothing, for no earlier run of these suites left a log; every case is run"
    )
    resumed.close()


def test_a_folder_that_is_gone_is_not_named(runs, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    turns = [
        (key(name), fingerprint(), outcome(worktree=str(place))) for name, place in (("a", kept), ("b", "/gone"))
    ]
    log_of(runs, 1, *turns)
    resumed = resume(runs)
    found = [resumed.take(key(name), fingerprint()) for name in "ab"]
    assert [one.worktree for one in found if isinstance(one, CaseOutcome)] == [str(kept), ""]


def resumed_log(folder, minutes, *turns) -> None:
    """Resume the last run, write these turns, and end."""
    now = header(minutes)
    resumed = Resumed.last_run(folder, now, JSON_TEXT)
    log = RunLog(folder, resumed.header(now), "main", JSON_TEXT, resumed.files)
    for turn in turns:
        log.append(*turn)
    log.close()
    resumed.close()
    assert not log.warning


def test_a_resumed_run_that_is_killed_at_once_loses_nothing(runs):
    write(runs, header(1), "a", "b", process="gw0")
    write(runs, header(2), "a", process="gw0")
    resumed_log(runs, 3)
    resumed_log(runs, 4, (key("c"), fingerprint(), outcome("c")))
    remove_old_runs(runs, keep=1)
    resumed = resume(runs)
    found = [resumed.take(key(name), fingerprint()) for name in "abc"]
    assert [one and one.record["answer"] for one in found] == ["a", None, "c"]


def test_what_was_run_again_counts_and_not_what_was_inherited(runs):
    log_of(runs, 1, (key("a"), fingerprint("old"), outcome("old")), (key("b"), fingerprint(), outcome("b")))
    resumed_log(runs, 2, (key("a"), fingerprint("new"), outcome("new")))
    resumed_log(runs, 3)
    resumed = resume(runs)
    assert resumed.take(key("a"), fingerprint("new")) == outcome("new")
    assert resumed.take(key("b"), fingerprint()) == outcome("b")


def test_a_chain_of_resumed_runs_knows_when_it_began(runs):
    first = header(1)
    write(runs, first, "a")
    resumed_log(runs, 2)
    resumed_log(runs, 3)
    newest = next(logged_runs(runs)).header
    assert newest.began == first.run
    assert newest.resumes.startswith("2026-01-02T12-02-00")
    path = max(runs.rglob("*.jsonl"), key=lambda file: file.name)
    assert json.loads(path.read_text().splitlines()[0])["firstStartedAt"] == "2026-01-02 12:01:00 UTC"


def test_processes_of_a_run_inherit_alike(runs):
    write(runs, header(1), "a", process="gw0")
    write(runs, replace(header(1), run=next(logged_runs(runs)).header.run), "b", process="gw1")
    now = header(2)
    for process in ("gw0", "gw1"):
        resumed = Resumed.last_run(runs, now, JSON_TEXT)
        log = RunLog(runs, resumed.header(now), process, JSON_TEXT, resumed.files)
        log.close()
        assert not log.warning
    found = LoggedTurns(next(logged_runs(runs)))
    assert len(found) == 2


def test_what_cannot_be_inherited_is_a_warning(runs, tmp_path):
    now = header(2)
    log = RunLog(runs, now, "main", JSON_TEXT, [tmp_path / "gone.jsonl"])
    log.append(key("a"), fingerprint(), outcome("a"))
    log.close()
    assert f"{tmp_path}/gone.jsonl could not be taken over: No such file or directory" in log.warning
    assert isinstance(resume(runs).take(key("a"), fingerprint()), CaseOutcome)


def test_a_log_that_is_removed_while_it_is_resumed_is_still_read(runs):
    write(runs, header(1), "a", "b")
    resumed = resume(runs)
    shutil.rmtree(runs)
    assert isinstance(resumed.take(key("b"), fingerprint()), CaseOutcome)


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (
            ResumeCounts("2026-01-02T03-04-05.678901Z-ab12", 180, 17, {"task changed": 2, "error": 1}),
            "resumed: 180 cases taken from the run of 2026-01-02 03:04:05 UTC; 17 had not finished; "
            "3 run again: task changed (2), error (1)",
        ),
        (
            ResumeCounts("2026-01-02T03-04-05.678901Z-ab12", 1),
            "resumed: 1 case taken from the run of 2026-01-02 03:04:05 UTC",
        ),
        (
            ResumeCounts("r", again={f"tool t{number} changed": number for number in range(1, 8)}),
            "resumed: 0 cases taken from the run of r; 28 run again: tool t7 changed (7), tool t6 changed (6), "
            "tool t5 changed (5), tool t4 changed (4), tool t3 changed (3), other reasons (3)",
        ),
    ],
)
def test_the_summary_says_what_was_taken_and_why_the_rest_was_run(counts, line):
    assert counts.summary == line
    assert MOST_REASONS == 5


def test_the_counts_of_processes_add_up_and_cross_a_process_boundary():
    one = ResumeCounts("r", 1, 2, {"error": 1, "task changed": 2})
    two = ResumeCounts.from_plain(json.loads(json.dumps(ResumeCounts("r", 3, 0, {"error": 1}).to_plain())))
    assert one + two == ResumeCounts("r", 4, 2, {"error": 2, "task changed": 2})
    assert sum([one, two], ResumeCounts()) == one + two


def test_shared_parts_of_the_same_content_are_no_change(runs):
    log_of(runs, 1, (key("a"), fingerprint(), outcome()))
    same = SharedHashes.of(dict(reversed(SHARED.parts.items())))
    assert isinstance(resume(runs).take(key("a"), fingerprint(shared=same)), CaseOutcome)
