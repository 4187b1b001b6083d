from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tooleval.cases.registry import FixtureRegistry
from pytest_tooleval.cases.suite import Suite, find_corpora, load_suite


def fixture(case_id: str, task: str = "t") -> dict[str, object]:
    return {"id": case_id, "task": task, "expected": []}


@pytest.fixture
def put(tmp_path):
    """Write JSON files below a suite's folder."""

    def write(files: dict[str, object]) -> Path:
        for name, value in files.items():
            path = tmp_path / "evals" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))
        return tmp_path / "evals"

    return write


def load(root: Path, *registries: FixtureRegistry) -> Suite:
    return load_suite(root, lambda path: path.relative_to(root.parent), registries)


def registry(*fixtures: dict[str, object]) -> FixtureRegistry:
    made = FixtureRegistry()
    for each in fixtures:
        made.add(each)
    return made


def test_a_suite_of_several_corpora(put):
    root = put(
        {
            "fixtures/b.json": fixture("b"),
            "fixtures/a.json": [fixture("a1"), fixture("a2")],
            "sub/deep/fixtures/nested/c.json": fixture("c"),
            "sub/other/d.json": fixture("not-searched"),
            ".hidden/fixtures/e.json": fixture("hidden"),
            "node_modules/fixtures/f.json": fixture("vendored"),
        }
    )
    suite = load(root)

    assert [(corpus.root, corpus.catalog) for corpus in suite.corpora] == [
        (root, None),
        (root / "sub" / "deep", None),
    ]
    assert {root / "fixtures", root / "sub" / "deep" / "fixtures"} <= set(suite.case_folders)
    assert {folder.parent for folder in suite.case_folders} == {root, root / "sub" / "deep"}
    assert [(found.case.id, found.corpus.root) for found in suite.cases()] == [
        ("a1", root),
        ("a2", root),
        ("b", root),
        ("c", root / "sub" / "deep"),
    ]
    assert suite.faults == {}


def test_a_folder_below_fixtures_is_no_corpus_of_its_own(put):
    root = put({"fixtures/fixtures/a.json": fixture("a")})
    assert list(find_corpora(root)) == [root]


def test_an_empty_suite(tmp_path):
    suite = load(tmp_path)
    assert (suite.corpora, list(suite.cases()), suite.faults) == ((), [], {})


def test_two_local_files_with_one_id_are_an_error_that_names_both(put):
    root = put(
        {
            "fixtures/a.json": [fixture("x"), fixture("same")],
            "more/fixtures/b.json": [fixture("y"), fixture("same")],
        }
    )
    suite = load(root)

    (path,) = suite.faults
    assert path == root / "more/fixtures/b.json"
    assert str(suite.faults[path]) == (
        "evals/more/fixtures/b.json:1: the id 'same' is taken by evals/fixtures/a.json:1; "
        "ids are unique in a suite, give one another"
    )
    assert [found.case.id for found in suite.cases()] == ["x", "same"]


def test_a_broken_file_leaves_the_others(put):
    root = put({"fixtures/a.json": {"id": "a"}, "fixtures/b.json": fixture("b")})
    suite = load(root)

    assert {path: str(error) for path, error in suite.faults.items()} == {
        root / "fixtures/a.json": "evals/fixtures/a.json:1: the key 'task' is missing"
    }
    assert [found.case.id for found in suite.cases()] == ["b"]


def test_a_later_source_wins_and_local_files_over_all(put):
    root = put({"fixtures/a.json": fixture("local", "from the suite")})
    plugins = registry(fixture("local", "p"), fixture("global", "p"), fixture("plugin", "p"))
    home = registry(fixture("global", "h"), fixture("local", "h"))

    tasks = [(found.case.id, found.case.task) for found in load(root, plugins, home).cases()]

    assert tasks == [("global", "h"), ("plugin", "p"), ("local", "from the suite")]


def test_registered_cases_come_first_and_belong_to_the_suites_folder(put):
    root = put({"sub/fixtures/a.json": fixture("local")})
    suite = load(root, registry(fixture("plugin")))

    assert [(found.case.id, found.corpus.root) for found in suite.cases()] == [
        ("plugin", root),
        ("local", root / "sub"),
    ]


def test_problems_of_registrations_are_faults_of_their_files(put):
    root = put({"fixtures/a.json": fixture("a")})
    broken = FixtureRegistry()
    broken.add({"task": "no id", "expected": []})
    broken.add(fixture("b", ""))
    suite = load(root, broken)

    assert set(suite.faults) == {Path(__file__)}
    assert [problem.message for problem in suite.faults[Path(__file__)].problems] == [
        "a registered fixture has no 'id'",
        'found ""; expected what the model is asked, not blank',
    ]
