from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from pytest_tooleval.cases.registry import FixtureRegistry

HERE = Path(__file__)


def fixture(case_id: str, **keys: object) -> dict[str, object]:
    return {"id": case_id, "task": "t", "expected": [], **keys}


def this_line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_a_registered_fixture_stands_where_it_was_registered():
    registry = FixtureRegistry()
    line = this_line() + 1
    registry.add(fixture("a", tags=["smoke"]))

    (case,) = registry.cases.values()
    assert (case.id, case.tags, case.source.path, case.source.line) == ("a", ("smoke",), HERE, line)
    assert registry.problems == []


def circular() -> dict[str, object]:
    value = fixture("a")
    value["files"] = value
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"task": "t", "expected": []}, "a registered fixture has no 'id'"),
        (fixture("a", task=""), 'at /task: found ""; expected what the model is asked, not blank'),
        (fixture("a", max_turns=float("nan")), "is not strict JSON: NaN is not a JSON number"),
        (fixture("a", tags={"x"}), "a registered fixture is not JSON: Object of type set is not JSON serializable"),
        (circular(), "a registered fixture is not JSON: Circular reference detected"),
        (None, "found null; expected a fixture, which is an object with 'task'"),
        ([fixture("a"), fixture("b")], "a registered fixture has no 'id'"),
    ],
)
def test_a_faulty_registration_is_kept_as_a_problem_of_its_line(value, message):
    registry = FixtureRegistry()
    line = this_line() + 1
    registry.add(value)

    (problem,) = registry.problems
    separator = " " if message.startswith("at ") else ": "
    assert str(problem) == f"{HERE}:{line}{separator}{message}"
    assert registry.cases == {}


def test_an_id_that_is_registered_twice():
    registry = FixtureRegistry()
    registry.add(fixture("a", task="first"))
    registry.add(fixture("a", task="second"))

    assert registry.cases["a"].task == "first"
    assert [problem.message for problem in registry.problems] == [f"the id 'a' is registered already, by {HERE}"]


def test_files_and_folders(tmp_path):
    write(tmp_path / "b.json", [fixture("b1"), fixture("b2")])
    write(tmp_path / "a" / "c.json", {"task": "t", "expected": []})
    broken = write(tmp_path / "d.json", {"id": "d"})
    registry = FixtureRegistry()
    registry.add_folder(tmp_path)
    registry.add_file(tmp_path / "missing.json")

    assert list(registry.cases) == ["c", "b1", "b2"]
    assert [str(problem) for problem in registry.problems] == [
        f"{broken}:1: the key 'task' is missing",
        f"{tmp_path / 'missing.json'}: cannot be read: No such file or directory",
    ]


def test_the_bundled_fixtures_load_when_they_are_wanted():
    wanted, unwanted = FixtureRegistry(bundled=True), FixtureRegistry()
    wanted.add_bundled()
    unwanted.add_bundled()

    assert wanted.problems == []
    assert set(wanted.cases) == {
        "read-file-lines",
        "find-then-read",
        "list-directory",
        "grep-symbol",
        "page-large-file",
    }
    assert unwanted.cases == {}
