"""`tooleval init`, and the suite that it writes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
FILES = {
    "evals/fixtures/find-the-port.json",
    "evals/thresholds.json",
    "evals/fixture.schema.json",
    "evals/thresholds.schema.json",
    ".github/workflows/tooleval.yml",
}


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_written_and_told(tooleval: Run, project: Path) -> None:
    finished = tooleval("init")

    assert finished.returncode == 0
    assert files_of(project) == FILES
    assert all(f"wrote  {name}" in finished.stdout for name in FILES)
    for step in ("pytest evals/ ", "--provider openai:MODEL", "OPENAI_API_KEY", "tooleval schema fixture"):
        assert step in finished.stdout
    assert "note:" not in finished.stdout


def test_the_suite_runs_green(tooleval: Run, run_pytest: Run) -> None:
    tooleval("init")

    finished = run_pytest("evals/", "--tooleval-json", "results.json")

    assert finished.returncode == 0, finished.stdout
    assert "2 passed" in finished.stdout
    assert "1 of 1 measured" in finished.stdout


def test_the_suite_can_fail(tooleval: Run, run_pytest: Run, project: Path) -> None:
    tooleval("init")
    path = project / "evals/fixtures/find-the-port.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mock": [{"text": "8443"}]}))

    finished = run_pytest("evals/")

    assert finished.returncode == 1
    assert "1 failed, 1 xfailed" in finished.stdout


@pytest.mark.parametrize("name", ["evals/fixtures/find-the-port.json", "evals/thresholds.json"])
def test_a_file_keeps_the_schema_that_it_names(tooleval: Run, project: Path, name: str) -> None:
    tooleval("init")

    value = json.loads((project / name).read_text())
    schema = (project / name).parent / value["$schema"]

    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    assert list(validator.iter_errors(value)) == []
    assert not validator.is_valid({**value, "nonsense": 1})


def test_another_folder_is_made(tooleval: Run, project: Path) -> None:
    finished = tooleval("init", "new/place")

    assert finished.returncode == 0
    assert files_of(project / "new/place") == FILES
    assert "cd new/place\n" in finished.stdout


def test_a_second_time_nothing_is_touched(tooleval: Run, project: Path) -> None:
    tooleval("init")
    fixture, thresholds = project / "evals/fixtures/find-the-port.json", project / "evals/thresholds.json"
    fixture.write_text("edited")
    thresholds.unlink()

    finished = tooleval("init")

    assert finished.returncode == 0
    assert fixture.read_text() == "edited"
    assert "kept   evals/fixtures/find-the-port.json" in finished.stdout
    assert "wrote  evals/thresholds.json" in finished.stdout
    assert files_of(project) == FILES


def test_all_kept_is_no_error(tooleval: Run) -> None:
    tooleval("init")

    finished = tooleval("init")

    assert finished.returncode == 0
    assert finished.stdout.count("kept ") == len(FILES)


def test_a_dangling_link_is_kept(tooleval: Run, project: Path) -> None:
    (project / "evals").mkdir()
    (project / "evals/thresholds.json").symlink_to(project / "elsewhere.json")

    finished = tooleval("init")

    assert finished.returncode == 0
    assert "kept   evals/thresholds.json" in finished.stdout
    assert not (project / "elsewhere.json").exists()


@pytest.mark.parametrize("name", ["evals", ".github", "evals/fixtures"])
def test_a_file_where_a_folder_belongs(tooleval: Run, project: Path, name: str) -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("mine")

    finished = tooleval("init")

    assert finished.returncode == 1
    assert f"nothing was written: {name} is a file where a folder belongs" in finished.stderr
    assert files_of(project) == {name}


def test_the_folder_itself_is_a_file(tooleval: Run, project: Path) -> None:
    (project / "notes.txt").write_text("mine")

    finished = tooleval("init", "notes.txt")

    assert finished.returncode == 1
    assert finished.stderr.splitlines() == [
        "tooleval init: nothing was written: notes.txt is a file where a folder belongs"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tooleval: Run, project: Path) -> None:
    project.chmod(0o500)
    try:
        finished = tooleval("init")
    finally:
        project.chmod(0o700)

    assert finished.returncode == 1
    assert "cannot be written: Permission denied" in finished.stderr


def test_inside_a_larger_project_it_is_told_what_to_set(tooleval: Run, run_pytest: Run, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / ".git").mkdir()

    finished = tooleval("init", "packages/shop")

    assert f"note: pytest's root folder is {project}: set tooleval_suites to packages/shop/evals" in finished.stdout
    assert f"note: GitHub reads workflows in {project / '.github'} only" in finished.stdout
    (project / "pytest.ini").write_text("[pytest]\ntooleval_suites = packages/shop/evals\n")
    assert run_pytest("packages/shop/evals").returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", ""),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("setup.py", ""),
    ],
)
def test_the_root_folder_is_the_one_that_pytest_takes(
    tooleval: Run, run_pytest: Run, project: Path, name: str, text: str
) -> None:
    (project / name).write_text(text)

    finished = tooleval("init", "sub")

    assert f"note: pytest's root folder is {project}:" in finished.stdout
    assert f"rootdir: {project}\n" in run_pytest("sub/evals").stdout


def test_a_name_that_the_terminal_cannot_show(tooleval: Run, environment: dict[str, str], project: Path) -> None:
    environment["PYTHONIOENCODING"] = "ascii"

    finished = tooleval("init", "büro")

    assert finished.returncode == 0
    assert files_of(project / "büro") == FILES
