from __future__ import annotations

import pytest

FIXTURE = {"task": "x", "expected": ["list_dir"], "mock": [{"text": "no"}]}


def test_items_are_named_by_file_and_id(suite, case_ids):
    suite.write("fixtures/b.json", [{**FIXTURE, "id": "two"}, {**FIXTURE, "id": "one"}])
    suite.write("fixtures/deep/a.json", FIXTURE)
    suite.passing("z")
    assert case_ids() == [
        "evals/fixtures/b.json::two",
        "evals/fixtures/b.json::one",
        "evals/fixtures/deep/a.json::a",
        "evals/fixtures/z.json::z",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["evals"], ["a.json::a", "deep/c.json::c", "deep/c.json::d"]),
        (["evals/fixtures/a.json"], ["a.json::a"]),
        (["evals/fixtures/deep"], ["deep/c.json::c", "deep/c.json::d"]),
        (["evals/fixtures/deep/c.json"], ["deep/c.json::c", "deep/c.json::d"]),
        (["evals/fixtures/deep/c.json::d"], ["deep/c.json::d"]),
        (["evals/fixtures/a.json::a", "evals/fixtures/deep/c.json::d"], ["a.json::a", "deep/c.json::d"]),
        (["-k", "c.json"], ["deep/c.json::c", "deep/c.json::d"]),
        (["-m", "slow"], ["deep/c.json::d"]),
        (["--deselect", "evals/fixtures/deep/c.json::d"], ["a.json::a", "deep/c.json::c"]),
        (["--ignore", "evals/fixtures/deep"], ["a.json::a"]),
    ],
)
def test_selection_works_as_for_any_item(suite, case_ids, arguments, expected):
    suite.passing("a")
    suite.write("fixtures/deep/c.json", [{**FIXTURE, "id": "c"}, {**FIXTURE, "id": "d", "tags": ["slow"]}])
    assert case_ids(*arguments) == [f"evals/fixtures/{name}" for name in expected]


def test_several_targets_and_trials_are_named_in_brackets(suite, case_ids, pytester):
    suite.passing("a")
    pytester.makeconftest(
        """
        from pytest_tooleval.transcript import AssistantMessage
        class Silent:
            def cannot_run(self, case): return None
            def reply(self, case, request): return AssistantMessage("no")
            def close(self): pass
        def pytest_tooleval_register_providers(providers):
            providers.add("silent", lambda settings: Silent())
        """
    )
    assert case_ids("--tooleval-trials", "2") == [
        "evals/fixtures/a.json::a[mock-t1]",
        "evals/fixtures/a.json::a[mock-t2]",
    ]
    assert case_ids("--provider", "mock", "--provider", "silent:m::[x]") == [
        "evals/fixtures/a.json::a[mock]",
        "evals/fixtures/a.json::a[silent:m--(x)]",
    ]


def test_two_processes_collect_the_same_whatever_the_hash_seed(suite, pytester, monkeypatch):
    for name in "qwertyuiop":
        suite.passing(name, tags=[f"tag-{name}", "all"])
    seen = set()
    for seed in ("1", "2", "random"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        lines = pytester.runpytest_subprocess("-p", "no:randomly", "--collect-only", "-q").outlines
        seen.add(tuple(line for line in lines if "::" in line))
    assert len(seen) == 1
    assert len(seen.pop()) == 10


def test_files_that_are_no_cases_are_never_touched(pytester, case_ids):
    for name in (
        "app/fixtures/users.json",
        "evals/data/x.json",
        "evals/fixtures/case.schema.json",
        "other.json",
    ):
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("this is not JSON")
    (pytester.path / "evals/fixtures/readme.txt").write_text("words")
    (pytester.path / "evals/fixtures/.hidden").mkdir()
    (pytester.path / "evals/fixtures/.hidden/x.json").write_text("{")
    assert case_ids() == []
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_tests_beside_the_cases_still_run(suite, pytester):
    suite.passing("a")
    suite.write("test_python.py", "def test_a(): pass")
    suite.write("fixtures/test_more.py", "def test_b(): pass")
    suite.write("fixtures/conftest.py", "")
    suite.run().assert_outcomes(passed=3)


def test_a_suite_may_hold_several_corpora(suite, case_ids):
    suite.write("github/fixtures/a.json", FIXTURE)
    suite.write("slack/deeper/fixtures/b.json", FIXTURE)
    assert case_ids() == ["evals/github/fixtures/a.json::a", "evals/slack/deeper/fixtures/b.json::b"]


def test_suites_are_named_by_an_ini_option(pytester, case_ids):
    for folder in ("quality/tools", "evals"):
        path = pytester.path / folder / "fixtures"
        path.mkdir(parents=True)
        (path / "a.json").write_text('{"task": "x", "expected": []}')
    pytester.makeini("[pytest]\ntooleval_suites = quality/tools")
    assert case_ids() == ["quality/tools/fixtures/a.json::a"]
    assert case_ids("--tooleval-suites", "evals") == ["evals/fixtures/a.json::a"]


def test_the_root_folder_may_be_a_suite(pytester, case_ids):
    (pytester.path / "fixtures").mkdir()
    (pytester.path / "fixtures" / "a.json").write_text('{"task": "x", "expected": []}')
    assert case_ids("--tooleval-suites", ".") == ["fixtures/a.json::a"]


def test_the_item_points_at_its_line(suite, pytester):
    suite.write(
        "fixtures/a.json",
        '[\n {"id": "a", "task": "x", "expected": []},\n\n {"id": "b", "task": "x", "expected": []}]',
    )
    items, _ = pytester.inline_genitems("-p", "no:randomly")
    assert [item.location for item in items] == [
        ("evals/fixtures/a.json", 1, "a"),
        ("evals/fixtures/a.json", 3, "b"),
    ]


def test_tags_are_marks_under_strict_markers(suite, pytester):
    suite.passing("a", tags=["slow-io", "v1.2"])
    suite.passing("b")
    suite.run("--strict-markers", "-m", "slow-io").assert_outcomes(passed=1, deselected=1)
    suite.run("--strict-markers", "-m", "not v1.2").assert_outcomes(passed=1, deselected=1)


def test_the_default_suite_is_found_from_where_pytest_was_started(pytester, case_ids, monkeypatch):
    pytester.makeini("[pytest]")
    folder = pytester.path / "packages" / "x" / "evals" / "fixtures"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{"task": "x", "expected": []}')
    expected = ["packages/x/evals/fixtures/a.json::a"]
    assert case_ids() == []
    assert case_ids("packages/x/evals") == expected
    assert case_ids("packages/x/evals/fixtures/a.json::a") == expected
    monkeypatch.chdir(pytester.path / "packages" / "x")
    assert case_ids("evals", "--rootdir", "../..") == expected


def test_an_id_with_dots_is_shown_as_it_is(suite):
    suite.passing("v1.2")
    suite.run("-v").stdout.fnmatch_lines(["evals/fixtures/v1.2.json::v1.2 PASSED*"])
