"""`tooleval init`: a small suite that runs green, to start from."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from pytest_tooleval.cases.schema import schema_text

EXAMPLE = "evals/fixtures/find-the-port.json"
_ROOT_MARKS: Sequence[Mapping[str, str]] = (
    {
        "pytest.toml": "",
        ".pytest.toml": "",
        "pytest.ini": "",
        ".pytest.ini": "",
        "pyproject.toml": "[tool.pytest",
        "tox.ini": "[pytest]",
        "setup.cfg": "[tool:pytest]",
    },
    {"pyproject.toml": ""},
    {"setup.py": ""},
)
"""The files that make a folder pytest's root folder, and what has to stand in them, the strongest first."""


@dataclass(slots=True)
class Outcome:
    """What became of the files: each stands in one of the lists."""

    wrote: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run(arguments: Sequence[str]) -> int:
    """Write what is missing, and say what to do next; 1 when a file could not be written."""
    folder = _parse(arguments)
    files = suite_files()
    clashes = dict.fromkeys(clash for name in files if (clash := _clash(folder / name)))
    if clashes:
        return _failed(f"nothing was written: {clash} is a file where a folder belongs" for clash in clashes)
    outcome = _write_missing(folder, files)
    for line in _summary(outcome):
        print(line)
    if outcome.failed:
        return _failed(outcome.failed)
    print("\n".join(["", *_next_steps(folder)]))
    return 0


def suite_files() -> Mapping[str, str]:
    """Return the text of each file of the example, by its path in the user's folder."""
    example = resources.files("pytest_tooleval.cli") / "example"

    def text(name: str) -> str:
        return (example / name).read_text(encoding="utf-8")

    return {
        EXAMPLE: text("find-the-port.json"),
        "evals/thresholds.json": text("thresholds.json"),
        "evals/fixture.schema.json": schema_text("fixture"),
        "evals/thresholds.schema.json": schema_text("thresholds"),
        ".github/workflows/tooleval.yml": text("tooleval.yml"),
    }


def _parse(arguments: Sequence[str]) -> Path:
    parser = argparse.ArgumentParser(
        prog="tooleval init",
        description="Write a small suite that runs green, and a workflow for GitHub Actions. "
        "Files that are there already are kept as they are.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where (default: the current folder)")
    return Path(parser.parse_args(arguments).folder)


def _clash(path: Path) -> Path | None:
    """Return the nearest file that stands where the path needs a folder, if there is one."""
    return next((parent for parent in path.parents if os.path.lexists(parent) and not parent.is_dir()), None)


def _failed(messages: Iterable[str]) -> int:
    for message in messages:
        print(f"tooleval init: {message}", file=sys.stderr)
    return 1


def _write_missing(folder: Path, files: Mapping[str, str]) -> Outcome:
    outcome = Outcome()
    for name, text in files.items():
        try:
            _write_new(folder / name, text)
        except FileExistsError:
            outcome.kept.append(name)
        except OSError as error:
            outcome.failed.append(f"{folder / name} cannot be written: {error.strerror or error}")
        else:
            outcome.wrote.append(name)
    return outcome


def _write_new(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _summary(outcome: Outcome) -> Iterator[str]:
    yield from (f"wrote  {name}" for name in outcome.wrote)
    yield from (f"kept   {name} (it was there already)" for name in outcome.kept)


def _next_steps(folder: Path) -> Iterator[str]:
    yield "Next:"
    if folder.resolve() != Path.cwd():
        yield f"  cd {folder}"
    yield "  pytest evals/                              play the fixture's script: no model, no key"
    yield "  pytest evals/ --provider openai:MODEL      measure a model; the key is read from OPENAI_API_KEY"
    yield f"  edit {EXAMPLE}     or add files beside it: each is a case"
    yield "  tooleval schema fixture                    see what a fixture may hold"
    yield from _notes(folder.resolve())


def _notes(folder: Path) -> Iterator[str]:
    """Yield what the user has to know when the folder lies inside a larger project."""
    root = _pytest_root(folder)
    if root is not None and root != folder:
        suite = (folder / "evals").relative_to(root).as_posix()
        yield f"note: pytest's root folder is {root}: set tooleval_suites to {suite} in its settings"
    repository = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
    if repository != folder:
        yield f"note: GitHub reads workflows in {repository / '.github'} only: move the workflow there"


def _pytest_root(folder: Path) -> Path | None:
    for marks in _ROOT_MARKS:
        for parent in (folder, *folder.parents):
            if any(_has(parent / name, section) for name, section in marks.items()):
                return parent
    return None


def _has(path: Path, section: str) -> bool:
    try:
        return section in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
