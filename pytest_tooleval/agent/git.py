"""A git repository in a case's folder: the same commit every time, and nobody else's repository is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tooleval.errors import ToolUnavailableError, WorktreeError
from pytest_tooleval.tools import process

_SECONDS = 30.0
_IDENTITY = {"NAME": "tooleval", "EMAIL": "tooleval@example.invalid", "DATE": "2024-01-01T00:00:00+00:00"}
_SETTINGS = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_DEFAULT_REF_FORMAT": "files",
    **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _IDENTITY.items()},
}
_OWN_CONFIG = f"""\
[user]
\tname = {_IDENTITY["NAME"]}
\temail = {_IDENTITY["EMAIL"]}
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def commit_all(folder: Path, environment: Mapping[str, str]) -> None:
    """Make the folder a repository on branch `main` whose one commit holds its files, those ignored aside.

    The commit's hash depends on the files alone. `environment` gives PATH, HOME and the like; its GIT_* variables
    are left out. Commits made in the folder later need no identity and start no upkeep in the background.

    Raises:
        WorktreeError: git is missing, failed, or took too long.

    """
    plain = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    variables = {**plain, **_SETTINGS}
    _git(folder, variables, "-c", "init.defaultBranch=main", "init", "--quiet", "--template=", ".")
    _keep_settings(folder)
    _git(folder, variables, "add", "--all")
    commit = ("commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "--message=Start")
    _git(folder, variables, "-c", "core.hooksPath=/dev/null", *commit)


def _keep_settings(folder: Path) -> None:
    try:
        with (folder / ".git" / "config").open("a", encoding="utf-8") as config:
            config.write(_OWN_CONFIG)
    except OSError as error:
        raise WorktreeError(f"the repository's settings cannot be written: {error}") from error


def _git(folder: Path, variables: Mapping[str, str], *arguments: str) -> None:
    try:
        finished = process.run(
            ["git", *arguments],
            cwd=folder,
            environment=variables,
            seconds=_SECONDS,
            output_chars=2000,
        )
    except FileNotFoundError as error:
        raise WorktreeError(
            "the case has `git: true`, but the program git is not on PATH: install git, or leave `git` out"
        ) from error
    except (OSError, ToolUnavailableError) as error:
        raise WorktreeError(f"git cannot be run in {folder}: {error}") from error
    if finished.exit_code is None:
        raise WorktreeError(f"git took more than {_SECONDS:g} s in {folder}: {' '.join(arguments)}")
    if finished.exit_code != 0:
        raise WorktreeError(f"git {' '.join(arguments)} failed in {folder}: {finished.output.strip()}")
