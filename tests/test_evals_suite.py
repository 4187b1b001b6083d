"""The project's own suite and the bundled fixtures: green as they are, and able to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pytest_tooleval.cases.registry import BUNDLED_FOLDER

Fixture: TypeAlias = dict[str, Any]
Script: TypeAlias = list[dict[str, Any]]
Result: TypeAlias = dict[str, Any]

ROOT = Path(__file__).parents[1]
OWN_FOLDER = ROOT / "evals" / "fixtures"


def fixtures_in(folder: Path) -> Iterator[Fixture]:
    for path in sorted(folder.rglob("*.json")):
        value = json.loads(path.read_text())
        for fixture in value if isinstance(value, list) else [value]:
            yield {"id": path.stem, **fixture}


OWN = list(fixtures_in(OWN_FOLDER))
BUNDLED = list(fixtures_in(BUNDLED_FOLDER))
WITHOUT_CALLS = [fixture for fixture in OWN + BUNDLED if fixture["verifier"].get("no_calls")]
WITH_CALLS = [fixture for fixture in OWN + BUNDLED if fixture not in WITHOUT_CALLS]
WITH_ANSWER = [fixture for fixture in WITH_CALLS if "answer" in fixture["verifier"]]


def run_pytest(cwd: Path, config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "evals", *arguments],
        cwd=cwd,
        env={**kept, "XDG_CONFIG_HOME": str(config)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def verdicts(folder: Path, fixtures: list[Fixture], script_of: Callable[[Fixture], Script]) -> dict[str, bool]:
    """Run the fixtures with other scripts, and return which passed."""
    suite = folder / "evals" / "fixtures"
    suite.mkdir(parents=True)
    (folder / "pytest.ini").touch()
    changed = [{**fixture, "mock": script_of(fixture)} for fixture in fixtures]
    (suite / "changed.json").write_text(json.dumps(changed))
    finished = run_pytest(folder, folder / "config", "--tooleval-json", "results.json")
    assert finished.returncode in {0, 1}, finished.stdout + finished.stderr
    cases = json.loads((folder / "results.json").read_text())["toolUse"]["cases"]
    assert len(cases) == len(fixtures)
    return {case["id"]: case["pass"] for case in cases}


def says_no(fixture: Fixture) -> Script:
    return [{"text": "no"}]


def guesses(fixture: Fixture) -> Script:
    """Give the right answer without having looked."""
    return [fixture["mock"][-1]]


def forgets_the_answer(fixture: Fixture) -> Script:
    return [*fixture["mock"][:-1], {"text": "Done."}]


def calls_before_it_answers(fixture: Fixture) -> Script:
    return [{"calls": [{"name": "list_dir"}]}, *fixture["mock"]]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result file of the suite, which has to be green."""
    folder = tmp_path_factory.mktemp("suite")
    path = folder / "results.json"
    finished = run_pytest(ROOT, folder, "--tooleval-json", str(path))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    document: Result = json.loads(path.read_text())
    return document


def test_every_case_is_in_the_suite(result: Result) -> None:
    ids = {case["id"] for case in result["toolUse"]["cases"]}

    assert ids == {fixture["id"] for fixture in OWN + BUNDLED}
    assert len(OWN) >= 12
    assert len(BUNDLED) == 5


def test_every_gate_passes_and_nothing_is_noted_but_what_lint_finds(result: Result) -> None:
    assert result["gates"]
    assert {gate["name"] for gate in result["gates"] if not gate["pass"]} == {
        f"discovery.semantic.{metric}" for metric in ("top1", "top3", "mrr")
    }
    assert {gate.get("skipReason") for gate in result["gates"]} == {None, "semantic leg did not run"}
    assert [note for note in result["notes"] if not note.startswith("lint: ")] == []
    assert result["hygiene"] == []


def test_the_scripts_do_what_is_expected(result: Result) -> None:
    cases = result["toolUse"]["cases"]

    assert {case["id"]: case["accuracy"] for case in cases if case["accuracy"] not in {1, None}} == {}
    assert {case["id"] for case in cases if case["errors"]} == {"recover-from-an-error"}


@pytest.mark.parametrize("name", ["grep-symbol", "page-large-file"])
def test_a_bundled_name_selects_one_item(tmp_path: Path, name: str) -> None:
    finished = run_pytest(ROOT, tmp_path, "--collect-only", "-q", "-k", name)

    assert [line for line in finished.stdout.splitlines() if "::" in line] == [f"evals::{name}"]


@pytest.mark.parametrize("fixture", OWN + BUNDLED, ids=lambda fixture: fixture["id"])
def test_a_fixture_says_what_it_shows_and_demands(fixture: Fixture) -> None:
    assert fixture["description"]
    assert fixture["verifier"]
    assert fixture["mock"]


@pytest.mark.parametrize(
    ("fixtures", "script_of"),
    [
        (WITH_CALLS, says_no),
        (WITH_CALLS, guesses),
        (WITH_ANSWER, forgets_the_answer),
        (WITHOUT_CALLS, calls_before_it_answers),
        (WITHOUT_CALLS, says_no),
    ],
    ids=["no", "guess", "no-answer", "call-where-none-is-due", "no-where-none-is-due"],
)
def test_a_wrong_run_misses(
    tmp_path: Path, fixtures: list[Fixture], script_of: Callable[[Fixture], Script]
) -> None:
    passed = verdicts(tmp_path, fixtures, script_of)

    assert [case_id for case_id, has_passed in passed.items() if has_passed] == []


def test_the_changed_suite_would_pass_unchanged(tmp_path: Path) -> None:
    passed = verdicts(tmp_path, OWN + BUNDLED, lambda fixture: fixture["mock"])

    assert all(passed.values())
