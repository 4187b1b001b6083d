from __future__ import annotations

import os
from pathlib import Path

import pytest

BUNDLED = ["find-then-read", "grep-symbol", "list-directory", "page-large-file", "read-file-lines"]


def register(pytester: pytest.Pytester, *fixtures: str, folder: str = ".") -> None:
    path = pytester.path / folder / "conftest.py"
    body = "".join(f"    fixtures.add({fixture})\n" for fixture in fixtures)
    path.write_text(f"def pytest_tooleval_register_fixtures(fixtures):\n{body}")


def global_fixture(name: str, text: str) -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "pytest-tooleval" / "fixtures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_the_local_suite_wins_over_the_global_folder_and_that_over_plugins(suite, pytester):
    register(
        pytester,
        "{'id': 'p', 'task': 'plugin', 'expected': []}",
        "{'id': 'pg', 'task': 'plugin', 'expected': []}",
        "{'id': 'pl', 'task': 'plugin', 'expected': []}",
        "{'id': 'pgl', 'task': 'plugin', 'expected': []}",
    )
    global_fixture(
        "g.json",
        """[{"id": "pg", "task": "global", "expected": []}, {"id": "pgl", "task": "global", "expected": []},
            {"id": "gl", "task": "global", "expected": []}, {"id": "g", "task": "global", "expected": []}]""",
    )
    for name in ("pl", "pgl", "gl", "l"):
        suite.fixture(name, task="local")
    items, _ = pytester.inline_genitems("-p", "no:randomly", "evals")
    assert {item.name: item.found.case.task for item in items} == {
        "p": "plugin",
        "pg": "global",
        "g": "global",
        "pl": "local",
        "pgl": "local",
        "gl": "local",
        "l": "local",
    }


def test_a_hook_in_the_suites_own_conftest_is_heard(suite, pytester, case_ids):
    register(pytester, "{'id': 'own', 'task': 'x', 'expected': []}", folder="evals")
    assert case_ids() == ["evals::own"]
    assert case_ids("evals") == ["evals::own"]


def test_a_hook_in_another_folder_is_not_heard(suite, pytester, case_ids):
    (pytester.path / "other").mkdir()
    register(pytester, "{'id': 'own', 'task': 'x', 'expected': []}", folder="other")
    suite.passing("a")
    assert case_ids("other", "evals") == ["evals/fixtures/a.json::a"]


def test_contributed_cases_are_no_part_of_a_narrower_run(suite, pytester, case_ids):
    register(pytester, "{'id': 'own', 'task': 'x', 'expected': []}")
    suite.passing("a")
    assert case_ids("evals/fixtures") == ["evals/fixtures/a.json::a"]


def test_contributed_cases_are_governed_by_the_suites_gates(suite, pytester):
    register(pytester, "{'id': 'own', 'task': 'x', 'expected': ['grep'], 'mock': [{'text': 'no'}]}")
    suite.passing("a")
    suite.thresholds(overall={"passRateMin": 0.5})
    suite.run().assert_outcomes(passed=2, xfailed=1)
    suite.run("evals/fixtures").assert_outcomes(passed=1, skipped=1)


def test_the_bundled_fixtures_come_only_when_asked_for(suite, pytester, case_ids):
    suite.passing("a")
    assert case_ids() == ["evals/fixtures/a.json::a"]
    assert case_ids("--tooleval-bundled") == [*(f"evals::{name}" for name in BUNDLED), "evals/fixtures/a.json::a"]
    pytester.makeini("[pytest]\ntooleval_bundled = true")
    assert case_ids("-k", "grep-symbol") == ["evals::grep-symbol"]
    suite.run().assert_outcomes(passed=6)


def test_a_local_fixture_replaces_a_bundled_one(suite, case_ids):
    suite.passing("grep-symbol")
    assert "evals/fixtures/grep-symbol.json::grep-symbol" in case_ids("--tooleval-bundled", "-k", "grep-symbol")
    assert len(case_ids("--tooleval-bundled", "-k", "grep-symbol")) == 1


@pytest.mark.parametrize(
    ("fixture", "message"),
    [
        ("{'task': 'x', 'expected': []}", "a registered fixture has no 'id'"),
        ("{'id': 'a', 'task': 'x'}", "checks nothing: give it 'expected' or a 'verifier', or every run would pass"),
        (
            "{'id': 'a', 'task': 'x', 'expected': {1, 2}}",
            "a registered fixture is not JSON: Object of type set is not*",
        ),
        ("{'id': 'a', 'task': 'x', 'expectd': []}", "*unknown key 'expectd' (did you mean 'expected'[?])"),
    ],
)
def test_a_contributed_fixture_that_is_wrong_is_an_error_that_names_its_conftest(suite, pytester, fixture, message):
    register(pytester, fixture)
    suite.passing("a")
    result = suite.run()
    result.stdout.fnmatch_lines([f"*conftest.py:2*{message}"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_one_id_twice_among_contributions_is_an_error(suite, pytester):
    register(pytester, *["{'id': 'a', 'task': 'x', 'expected': []}"] * 2)
    suite.passing("b")
    suite.run().stdout.fnmatch_lines(["*conftest.py*: the id 'a' is registered already, by *conftest.py"])


def test_a_broken_file_in_the_global_folder_is_an_error(suite):
    path = global_fixture("bad.json", "[")
    suite.passing("a")
    result = suite.run()
    result.stdout.fnmatch_lines([f"{path}:1: is not JSON*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED
