"""Snapshots, and files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.result_file import json_text
from pytest_tooleval.reports.result_reader import read_result
from pytest_tooleval.reports.scoreboard import scoreboard
from pytest_tooleval.reports.snapshot import time_name, why_not_baseline, write_snapshot
from pytest_tooleval.reports.suite_result import SuiteResult
from pytest_tooleval.reports.text_file import write_text

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
NAME = "2026-01-02T03-04-05.678901Z.json"
DOCUMENT = {
    "schema": "tooleval/v1",
    "generatedAt": "2026-01-02T03:04:05+00:00",
    "provenance": {},
    "gates": [],
    "verdict": "pass",
}


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_whole_run_refreshes_baseline_and_scoreboard(tmp_path):
    lines = list(write_snapshot(tmp_path / "new", DOCUMENT, NOW, ""))
    assert lines == [
        f"snapshot: {tmp_path}/new/snapshots/{NAME}",
        f"baseline refreshed: {tmp_path}/new/snapshots/baseline.json and {tmp_path}/new/BENCHMARKS.md",
    ]
    assert files(tmp_path / "new") == ["BENCHMARKS.md", f"snapshots/{NAME}", "snapshots/baseline.json"]
    text = (tmp_path / "new/snapshots" / NAME).read_text()
    assert text == json_text(DOCUMENT) == (tmp_path / "new/snapshots/baseline.json").read_text()
    assert (tmp_path / "new/BENCHMARKS.md").read_text() == scoreboard(DOCUMENT)


def test_another_run_leaves_the_baseline_and_earlier_snapshots_alone(tmp_path):
    list(write_snapshot(tmp_path, DOCUMENT, NOW, ""))
    before = (tmp_path / "snapshots/baseline.json").read_bytes(), (tmp_path / "BENCHMARKS.md").read_bytes()
    later = {**DOCUMENT, "verdict": "fail"}
    lines = list(write_snapshot(tmp_path, later, NOW + timedelta(seconds=1), "the verdict is fail"))
    assert lines[1] == "baseline left alone: the verdict is fail"
    assert files(tmp_path) == [
        "BENCHMARKS.md",
        f"snapshots/{NAME}",
        "snapshots/2026-01-02T03-04-06.678901Z.json",
        "snapshots/baseline.json",
    ]
    assert before == (
        (tmp_path / "snapshots/baseline.json").read_bytes(),
        (tmp_path / "BENCHMARKS.md").read_bytes(),
    )


def test_the_scoreboard_is_that_of_the_written_baseline(tmp_path):
    timing = {"n": 1, "p50Micros": float("nan"), "p95Micros": 2.0, "opsPerSec": float("inf")}
    list(write_snapshot(tmp_path, {**DOCUMENT, "performance": {"lexical": timing}}, NOW, ""))
    board = (tmp_path / "BENCHMARKS.md").read_text()
    assert board == scoreboard(read_result(tmp_path / "snapshots/baseline.json"))
    assert "| lexical |   1 |    n/a |      2 |          n/a |" in board


def test_names_sort_as_times_do_and_are_file_names_everywhere():
    moments = [NOW + timedelta(microseconds=step) for step in (0, 1, 10**6, 86_400 * 10**6, 400 * 86_400 * 10**6)]
    names = [time_name(moment) for moment in moments]
    assert names == sorted(names)
    assert not set('<>:"/\\|?*') & set("".join(names))


@pytest.mark.parametrize("taken", ["snapshots", "snapshots/baseline.json", "BENCHMARKS.md"])
def test_what_cannot_be_written_is_one_line(tmp_path, taken):
    blocked = tmp_path / taken
    if taken == "snapshots":
        blocked.write_text("a file where the folder belongs")
    else:
        blocked.mkdir(parents=True)
        (blocked / "keep").touch()
    lines = list(write_snapshot(tmp_path, DOCUMENT, NOW, ""))
    assert sum("could not be written: " in line for line in lines) == 1
    assert "baseline refreshed" not in "".join(lines)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_a_full_disk_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, "old")
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from pytest_tooleval.reports.text_file import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: write_text(Path(sys.argv[1]), 'x' * 10_000)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"{os.strerror(27)}\n"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


def test_a_file_is_readable_by_others_and_has_no_surprises(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_text(path, "half \udc80\n")
    assert path.read_bytes() == b"half \\udc80\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def measured(verdict: str = "passed", family: str = "tool_use", *, deferred: bool = False) -> Measurement:
    return Measurement(family, f"n{verdict}{family}", "e", "f", 0, "a", "m", 1, (), verdict, "why", deferred)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (SuiteResult((measured(),), selected=1), ""),
        (SuiteResult((measured("missed", deferred=True),), selected=1), ""),
        (SuiteResult((measured(), measured("skipped", "performance")), selected=2), ""),
        (SuiteResult((measured("missed"),), selected=1), "the verdict is fail"),
        (SuiteResult((measured(),), selected=3), "1 of 3 items ended"),
        (SuiteResult((measured(), measured("error")), selected=2), "1 item errored"),
        (SuiteResult((measured(), measured("skipped")), selected=2), "1 item skipped: why"),
        (SuiteResult((measured("skipped", "performance"),), selected=1), "the verdict is fail"),
        (SuiteResult((measured(),), selected=1, interrupted=True), "the run was interrupted"),
        (
            SuiteResult((measured(),), selected=1, left_out=("1 of 2 items selected", "files could not be loaded")),
            "1 of 2 items selected; files could not be loaded",
        ),
    ],
)
def test_only_a_whole_run_that_passes_is_a_baseline(result, reason):
    assert why_not_baseline(result) == reason


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON: line 1: Expecting value"),
        ('{"a":\n 1', "is not JSON: line 2: Expecting ',' delimiter"),
        ('{"schema": "tooleval/v1", "x": NaN}', "is not strict JSON: NaN is no JSON number"),
        ('{"schema": "tooleval/v1", "x": 1e999}', "is not strict JSON: 1e999 is too large a number"),
        (DEEP, "is no result file: it is nested too deep"),
        (b"\xff\xfe", "is no result file: it is not UTF-8 at byte 0"),
        ("[]", "is no result file: it holds no 'schema' of 'tooleval/v1'; --tooleval-snapshot DIR writes one"),
        ('{"schema": 1}', "is no result file: it holds no 'schema' of 'tooleval/v1'"),
        ({"schema": "tooleval/v0"}, "is a result file of the schema \"tooleval/v0\", expected 'tooleval/v1'"),
        ({"schema": "ozy-eval/v1"}, "is a result file of the schema \"ozy-eval/v1\", expected 'tooleval/v1'"),
        ({"schema": "tooleval/v1"}, "is a damaged result file: at its top: the key 'generatedAt' is missing"),
        ({**DOCUMENT, "verdict": "maybe"}, 'at /verdict: found "maybe"; expected one of: pass, fail'),
        ({**DOCUMENT, "discovery": []}, "at /discovery: found a list ([]); expected an object"),
        (
            {**DOCUMENT, "toolUse": {"byTarget": {}, "cases": [{"id": "a"}]}},
            "at /toolUse/cases/0: the key 'target' is missing (and 3 more faults)",
        ),
        (
            {**DOCUMENT, "toolUse": {"byTarget": {"m": {"calls": "2"}}, "cases": []}},
            'at /toolUse/byTarget/m/calls: found "2"; expected a number or null',
        ),
    ],
)
def test_what_is_no_result_file_is_told_in_one_line(tmp_path, content, message):
    path = tmp_path / "r.json"
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read_result(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path} ")
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_how_one_is_made(tmp_path):
    with pytest.raises(ConfigError) as caught:
        read_result(tmp_path / "none.json")
    hint = "No such file or directory; --tooleval-snapshot DIR writes one"
    assert str(caught.value) == f"{tmp_path}/none.json cannot be read: {hint}"


def test_what_was_written_is_read(tmp_path):
    document = {**DOCUMENT, "notes": ["BaNaNa"], "tokenEconomy": {"x": float("nan"), "y": float("inf"), "z": "NaN"}}
    path = tmp_path / "r.json"
    write_text(path, json_text(document))
    assert read_result(path) == {**document, "tokenEconomy": {"x": None, "y": None, "z": "NaN"}}
