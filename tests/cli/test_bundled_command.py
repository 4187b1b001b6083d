"""`tooleval bundled`, in a folder that holds no suite."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
BUNDLED = ["find-then-read", "grep-symbol", "list-directory", "page-large-file", "read-file-lines"]


@pytest.fixture
def temporary(tmp_path: Path, environment: dict[str, str]) -> Path:
    """The folder for temporary files of the commands under test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment["TMPDIR"] = str(folder)
    return folder


def test_the_five_pass_and_nothing_stays(tooleval: Run, project: Path, temporary: Path) -> None:
    finished = tooleval("bundled")

    assert finished.returncode == 0, finished.stdout
    assert "5 passed" in finished.stdout
    assert "warning" not in finished.stdout
    assert list(project.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_the_five_are_these(tooleval: Run) -> None:
    finished = tooleval("bundled", "--collect-only", "-q", "-p", "no:randomly")

    assert [line.partition("::")[2] for line in finished.stdout.splitlines() if "::" in line] == BUNDLED


def test_arguments_reach_pytest_and_paths_are_the_callers(tooleval: Run, project: Path, temporary: Path) -> None:
    finished = tooleval("bundled", "-k", "read-file-lines", "--tooleval-json", "out.json", "--junitxml=junit.xml")

    assert finished.returncode == 0, finished.stdout
    assert {path.name for path in project.iterdir()} == {"out.json", "junit.xml"}
    cases = json.loads((project / "out.json").read_text())["toolUse"]["cases"]
    assert [(case["id"], case["pass"]) for case in cases] == [("read-file-lines", True)]


def test_under_xdist(tooleval: Run, project: Path, temporary: Path) -> None:
    finished = tooleval("bundled", "-n", "2")

    assert finished.returncode == 0, finished.stdout
    assert "5 passed" in finished.stdout
    assert list(project.iterdir()) == []


def test_without_plugin_autoload(tooleval: Run, environment: dict[str, str]) -> None:
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    finished = tooleval("bundled")

    assert "5 passed" in finished.stdout


def test_a_suite_in_the_callers_folder_does_not_join(tooleval: Run, project: Path) -> None:
    tooleval("init")
    (project / "conftest.py").write_text("raise RuntimeError('not to be loaded')\n")
    (project / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")

    finished = tooleval("bundled")

    assert finished.returncode == 0, finished.stdout
    assert "5 passed" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-k", "no-such-case"], 5, "5 deselected"),
        (["--no-such-option"], 4, "unrecognized arguments: --no-such-option"),
        (["--provider", "no-such-provider:x"], 4, "no-such-provider"),
    ],
)
def test_the_exit_code_is_pytests(
    tooleval: Run, project: Path, temporary: Path, arguments: list[str], code: int, message: str
) -> None:
    finished = tooleval("bundled", *arguments)

    assert finished.returncode == code
    assert message in finished.stdout + finished.stderr
    assert list(project.iterdir()) == []
    assert list(temporary.iterdir()) == []
