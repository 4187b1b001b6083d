"""A result file that cannot be written makes the run fail, before it where that is known."""

from __future__ import annotations

import pytest


def test_what_is_known_beforehand_is_a_usage_error_and_nothing_is_measured(suite, pytester):
    suite.passing("a")
    (pytester.path / "taken").write_text("")
    result = suite.run("--tooleval-json", "taken/out.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    line = f"ERROR: tooleval: the result file {pytester.path}/taken/out.json cannot be written: Not a directory"
    assert [line for line in result.errlines if line] == [line]


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_what_goes_wrong_later_makes_the_run_fail(suite, pytester, workers):
    pytester.makeconftest(
        """
        from pathlib import Path
        from pytest_tooleval.tools.tool import Tool
        PLACE = Path(__file__).parent / "out"
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("block", "Blocks.", {"type": "object"}, "read", lambda arguments, context: PLACE.write_text("")))
        """
    )
    suite.fixture("a", ["block"], expected=["block"])
    result = suite.run("--tooleval-json", "out/r.json", *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the result file *out/r.json could not be written: *"])


def test_the_old_file_stays(suite, pytester):
    suite.passing("a")
    old = pytester.path / "r.json"
    old.mkdir()
    (old / "kept").write_text("old")
    assert suite.run("--tooleval-json", "r.json").ret == pytest.ExitCode.USAGE_ERROR
    assert (old / "kept").read_text() == "old"
