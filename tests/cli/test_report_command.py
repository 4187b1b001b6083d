"""`tooleval report`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

DOCUMENT = {
    "schema": "tooleval/v1",
    "generatedAt": "2026-01-02T03:04:05+00:00",
    "provenance": {"targets": ["mock"]},
    "toolUse": {
        "byTarget": {"mock": {"n": 1, "measured": 1, "accuracy": 1.0, "passRate": 1.0}},
        "cases": [{"id": "a", "target": "mock", "trial": 1, "file": "f", "verdict": "passed"}],
    },
    "gates": [],
    "verdict": "pass",
}


@pytest.fixture
def snapshot(project: Path) -> Path:
    path = project / "s.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_the_scoreboard_is_printed(tooleval: Run, snapshot: Path) -> None:
    finished = tooleval("report", "s.json")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = finished.stdout.splitlines()
    assert lines[0] == "# Scoreboard"
    assert (
        "| `mock` |     1 |        1 |    1.000 |     1.000 |   n/a |       n/a |    n/a |    n/a |     n/a |"
        in lines
    )


def test_it_is_written_to_a_file(tooleval: Run, snapshot: Path, project: Path) -> None:
    printed = tooleval("report", "s.json").stdout
    finished = tooleval("report", "s.json", "-o", "docs/BENCHMARKS.md")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert (project / "docs/BENCHMARKS.md").read_text() == printed


def test_as_json_without_the_cases(tooleval: Run, snapshot: Path) -> None:
    finished = tooleval("report", "s.json", "--format", "json")
    assert json.loads(finished.stdout) == {**DOCUMENT, "toolUse": {"byTarget": DOCUMENT["toolUse"]["byTarget"]}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "none.json",
            None,
            "none.json cannot be read: No such file or directory; --tooleval-snapshot DIR writes one",
        ),
        ("a.json", "{", "a.json is not JSON: line 1: Expecting property name enclosed in double quotes"),
        (
            "a.json",
            '{"schema": "tooleval/v0"}',
            "a.json is a result file of the schema \"tooleval/v0\", expected 'tooleval/v1'; "
            "run the suite again: --tooleval-snapshot DIR writes one",
        ),
        (
            "a.json",
            json.dumps({**DOCUMENT, "gates": [{}]}),
            "a.json is a damaged result file: at /gates/0: the key 'name' is missing (and 4 more faults)",
        ),
    ],
)
def test_what_is_no_snapshot_is_told(
    tooleval: Run, project: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (project / name).write_text(text)
    finished = tooleval("report", name, "-o", "out.md")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"tooleval: {message}\n"
    assert not (project / "out.md").exists()


def test_a_file_that_cannot_be_written_is_told(tooleval: Run, snapshot: Path) -> None:
    finished = tooleval("report", "s.json", "-o", "s.json/out.md")
    assert finished.returncode == 1
    assert finished.stderr.startswith("tooleval report: s.json/out.md cannot be written: ")
    assert json.loads(snapshot.read_text()) == DOCUMENT


def test_a_wrong_format_is_a_usage_error(tooleval: Run, snapshot: Path) -> None:
    assert tooleval("report", "s.json", "--format", "html").returncode == 2
    assert tooleval("report").returncode == 2
