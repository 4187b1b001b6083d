from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Finished = subprocess.CompletedProcess[str]
Run = Callable[..., Finished]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that the user stands in."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of this process, less what would reach into the runs under test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def run_module(project: Path, environment: dict[str, str]) -> Run:
    """Run a module as a command in the user's folder."""

    def run(module: str, *arguments: str) -> Finished:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def tooleval(run_module: Run) -> Run:
    """Run the command `tooleval`."""

    def run(*arguments: str) -> Finished:
        finished = run_module("pytest_tooleval.cli.main", *arguments)
        assert "Traceback" not in finished.stdout + finished.stderr
        return finished

    return run


@pytest.fixture
def run_pytest(run_module: Run) -> Run:
    """Run pytest in the user's folder."""

    def run(*arguments: str) -> Finished:
        return run_module("pytest", "-p", "no:cacheprovider", *arguments)

    return run
