"""The command `tooleval` itself: help, version, mistakes, and closed pipes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
HEAVY = ("pytest", "httpx", "jsonschema", "jsonschema_rs", "rich", "regex")


def test_version(tooleval: Run) -> None:
    finished = tooleval("--version")

    assert finished.returncode == 0
    assert finished.stdout == f"tooleval {version('pytest-tooleval')}\n"


def test_help_lists_every_command(tooleval: Run) -> None:
    finished = tooleval("--help")

    assert finished.returncode == 0
    assert all(f"\n  {name}" in finished.stdout for name in ("init", "schema", "bundled"))


def test_without_a_command_the_help_is_a_usage_error(tooleval: Run) -> None:
    finished = tooleval()

    assert finished.returncode == 2
    assert "bundled" in finished.stderr


@pytest.mark.parametrize("name", ["init", "schema", "bundled"])
def test_every_command_has_help(tooleval: Run, project: Path, name: str) -> None:
    finished = tooleval(name, "--help")

    assert finished.returncode == 0
    assert finished.stdout.startswith(f"usage: tooleval {name}")
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inti"], "no command 'inti' (did you mean 'init'?)"),
        (["100%s"], "no command '100%s'"),
        (["--vers"], "unrecognized arguments: --vers"),
        (["schema", "fixtures"], "no schema 'fixtures' (did you mean 'fixture'?); there are: fixture, "),
        (["schema"], "NAME"),
        (["init", "a", "b"], "unrecognized arguments: b"),
    ],
)
def test_mistakes_are_told(tooleval: Run, arguments: list[str], message: str) -> None:
    finished = tooleval(*arguments)

    assert finished.returncode == 2
    assert finished.stdout == ""
    assert message in finished.stderr


def test_the_command_is_installed() -> None:
    (script,) = entry_points(group="console_scripts", name="tooleval")

    assert script.value == "pytest_tooleval.cli.main:main"


@pytest.mark.parametrize("arguments", [["--version"], ["schema", "fixture"], ["init"]])
def test_heavy_modules_stay_out(project: Path, environment: dict[str, str], arguments: list[str]) -> None:
    program = (
        "import sys; from pytest_tooleval.cli.main import main; "
        f"main({arguments!r}); sys.exit(str(set({HEAVY!r}) & set(sys.modules) or ''))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=project, env=environment, capture_output=True, text=True, check=False
    )

    assert finished.stderr.strip() == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["schema", "fixture"], ["--help"], ["init"], ["bundled"]])
def test_a_closed_pipe_is_no_traceback(
    project: Path, environment: dict[str, str], arguments: list[str], unbuffered: str
) -> None:
    environment["PYTHONUNBUFFERED"] = unbuffered
    command = [sys.executable, "-m", "pytest_tooleval.cli.main", *arguments]

    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()

    assert told == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(
    project: Path, environment: dict[str, str], unbuffered: str
) -> None:
    environment["PYTHONUNBUFFERED"] = unbuffered
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "pytest_tooleval.cli.main", "schema", "fixture"],
            cwd=project,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert finished.returncode == 74
    assert finished.stderr == "tooleval: the output cannot be written: No space left on device\n"


def test_a_closed_output_is_no_traceback(project: Path, environment: dict[str, str]) -> None:
    finished = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m pytest_tooleval.cli.main --version >&-"],
        cwd=project,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert (finished.returncode, finished.stderr) == (0, "")
