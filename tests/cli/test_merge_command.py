"""`tooleval merge`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts import TIME, case, gate, run_document

from pytest_tooleval.gates.thresholds import Gate
from pytest_tooleval.reports.result_file import json_text

Run = Callable[..., subprocess.CompletedProcess[str]]

CASES = [case("c1"), case("c2", "missed"), case("c3"), case("c4", "error")]
REGRESSIONS = Gate("regressions", "overall", "regressions", "max", 0, "evals", "evals/thresholds.json", 1)


@pytest.fixture
def write(project: Path) -> Callable[[str, dict[str, Any]], None]:
    def write_document(name: str, document: dict[str, Any]) -> None:
        (project / name).write_text(json_text(document))

    return write_document


def test_the_parts_become_one_result_with_its_summary(tooleval: Run, project: Path, write) -> None:
    cases, gates = CASES[:3], [gate()]
    write("a.json", run_document(cases, cases[:2], gates, defer=True))
    write("b.json", run_document(cases, cases[2:], gates, defer=True))
    finished = tooleval("merge", "b.json", "a.json", "-o", "new/all.json")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert json.loads((project / "new/all.json").read_text()) == run_document(cases, cases, gates)
    lines = finished.stdout.splitlines()
    assert lines[0].strip("=") == " tool use "
    assert "m: 3 of 3 measured" in lines
    assert lines[-2:] == ["verdict: pass", "result file: new/all.json"]
    assert tooleval("merge", "new/all.json").returncode == 0
    assert tooleval("report", "new/all.json").returncode == 0


def test_a_failed_run_names_what_failed(tooleval: Run, write) -> None:
    gates = [gate(threshold=0.9)]
    write("a.json", run_document(CASES, CASES, gates))
    finished = tooleval("merge", "a.json")
    assert finished.returncode == 1
    assert (
        finished.stdout.splitlines()[-4:]
        == [
            "FAILED evals/thresholds.json::tool_use.overall.passRate[m] - not measured: 3 of 4 cases measured",
            "ERROR evals/fixtures/all.json::c4[m-t1] - c4 is error",
            "verdict: fail",
        ][-4:]
        or "ERROR" in finished.stdout
    )


def test_a_miss_that_no_gate_decides_about_fails(tooleval: Run, write) -> None:
    write("a.json", run_document(CASES[:2], CASES[:2]))
    finished = tooleval("merge", "a.json")
    assert finished.returncode == 1
    assert "FAILED evals/fixtures/all.json::c2[m-t1] - c2 is missed" in finished.stdout.splitlines()


def test_a_missing_part_fails_unless_it_is_meant(tooleval: Run, write) -> None:
    write("a.json", run_document([case("c1"), case("c2")], [case("c1")]))
    finished = tooleval("merge", "a.json")
    assert finished.returncode == 1
    said = "not whole: 1 of 2 items are in these files; a part is missing, or --partial says that none is"
    assert finished.stdout.splitlines()[-2:] == [said, "verdict: fail"]
    finished = tooleval("merge", "a.json", "--partial")
    assert (finished.returncode, "not whole" in finished.stdout) == (0, False)


def test_parts_of_different_runs_are_refused(tooleval: Run, project: Path, write) -> None:
    write("a.json", run_document([case("c1"), case("c2")], [case("c1")]))
    other = run_document([case("c1"), case("c2")], [case("c2")])
    other["plan"]["options"] = {"seed": 8}
    write("b.json", other)
    finished = tooleval("merge", "a.json", "b.json", "-o", "out.json")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == "tooleval: a.json and b.json are not parts of one run:\n  seed: 7 and 8\n"
    assert not (project / "out.json").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "a.json cannot be read: No such file or directory"),
        ("{", "a.json is not JSON"),
        (
            json.dumps(
                {"schema": "tooleval/v1", "generatedAt": "", "provenance": {}, "gates": [], "verdict": "pass"}
            ),
            "a.json does not say of which run it is a part: it was written by an earlier version; run that part again",
        ),
    ],
)
def test_what_is_no_part_is_told(tooleval: Run, project: Path, text: str | None, said: str) -> None:
    if text is not None:
        (project / "a.json").write_text(text)
    finished = tooleval("merge", "a.json")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert said in finished.stderr


def test_a_file_that_cannot_be_written_is_told(tooleval: Run, write) -> None:
    write("a.json", run_document([case("c1")], [case("c1")]))
    finished = tooleval("merge", "a.json", "-o", "a.json/out.json")
    assert finished.returncode == 1
    assert finished.stderr.startswith("tooleval merge: a.json/out.json cannot be written: ")


@pytest.fixture
def compared(write) -> None:
    """Two parts that were compared with a baseline in which nothing missed."""
    every = [case("c1"), case("c2", "missed")]
    write("base.json", run_document(every, [case("c1"), case("c2")]))
    for name, measured in (("a.json", every[:1]), ("b.json", every[1:])):
        document = run_document(every, measured, [REGRESSIONS, gate(threshold=0)], defer=True)
        write(name, document | {"comparison": {"baseline": {"file": "base.json", "generatedAt": TIME}}})


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("named", [(), ("--baseline", "base.json")])
def test_the_comparison_is_made_anew(tooleval: Run, project: Path, named: tuple[str, ...]) -> None:
    finished = tooleval("merge", "a.json", "b.json", "-o", "all.json", *named)
    assert finished.returncode == 1
    assert "2 cases in both: 1 regression, 0 worse, 0 better, 1 the same" in finished.stdout.splitlines()
    failed = "FAILED evals/thresholds.json::regressions - regressions is 1, expected at most 0; regressed: c2"
    assert failed in finished.stdout.splitlines()
    document = json.loads((project / "all.json").read_text())
    assert document["comparison"]["baseline"]["file"] == "base.json"
    assert len(document["comparison"]["regressions"]) == 1


@pytest.mark.usefixtures("compared")
def test_a_baseline_that_is_gone_or_another_has_to_be_named(tooleval: Run, project: Path) -> None:
    base = project / "base.json"
    base.write_text(base.read_text().replace(TIME, "2026-05-05T00:00:00+00:00"))
    finished = tooleval("merge", "a.json", "b.json")
    assert finished.returncode == 2
    assert "base.json is not the baseline that the parts were compared with" in finished.stderr
    base.unlink()
    finished = tooleval("merge", "a.json", "b.json")
    assert finished.returncode == 2
    assert "the parts were compared with a baseline: base.json cannot be read: " in finished.stderr


def test_without_a_file_it_is_a_usage_error(tooleval: Run) -> None:
    assert tooleval("merge").returncode == 2


def test_many_failures_are_cut(tooleval: Run, write) -> None:
    every = [case(f"c{number}", "missed") for number in range(1, 61)]
    write("a.json", run_document(every, every))
    lines = tooleval("merge", "a.json").stdout.splitlines()
    assert sum(line.startswith("FAILED ") for line in lines) == 50
    assert "and 10 more" in lines
