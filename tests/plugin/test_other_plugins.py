from __future__ import annotations

from xml.etree import ElementTree

import pytest

SHAKY = """
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.transcript import AssistantMessage
class Shaky(MockProvider):
    asked = 0
    def reply(self, case, request):
        self.asked += 1
        return AssistantMessage("no") if self.asked == 1 else super().reply(case, request)
def pytest_tooleval_register_providers(providers):
    providers.add("shaky", lambda settings: Shaky())
"""


@pytest.fixture
def trio(suite):
    suite.passing("good")
    suite.missing("bad")
    suite.fixture("scriptless")
    return suite


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_randomly_shuffles_our_items(trio, pytester, seed):
    result = pytester.runpytest_inprocess(f"--randomly-seed={seed}")
    result.assert_outcomes(passed=1, failed=1, skipped=1)


def test_a_rerun_item_counts_once_with_its_last_result(suite, pytester):
    pytester.makeconftest(SHAKY)
    suite.passing("a")
    document = suite.result("--provider", "shaky", "--reruns", "2")
    assert [(case["id"], case["verdict"]) for case in document["toolUse"]["cases"]] == [("a", "passed")]
    assert document["toolUse"]["byTarget"]["shaky"]["n"] == 1
    assert document["verdict"] == "pass"
    suite.missing("b")
    result = suite.run("--reruns", "1")
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "rerun": 1}


def test_a_time_limit_of_pytest_timeout_is_an_error_and_leaves_nothing(suite, pytester):
    suite.fixture(
        "slow",
        verifier={"must_include": ["run_command"]},
        tool_permission={"bash": "allow"},
        mock=[{"calls": [{"name": "run_command", "arguments": {"command": "sleep 47.11"}}]}, {"text": "x"}],
    )
    suite.passing("z")
    document = suite.result("--timeout", "1", "--timeout-method", "signal")
    verdicts = {case["id"]: case["verdict"] for case in document["toolUse"]["cases"]}
    assert verdicts == {"slow": "error", "z": "passed"}
    assert "47.11" not in "".join(pytester.run("ps", "-eo", "args").outlines)


def test_the_html_report_holds_every_item(trio, pytester):
    trio.run("--html", "report.html", "--self-contained-html").assert_outcomes(passed=1, failed=1, skipped=1)
    text = (pytester.path / "report.html").read_text()
    for name in ("good", "bad", "scriptless"):
        assert f"evals/fixtures/{name}.json::{name}" in text


def test_the_junit_report_holds_every_item_with_its_place(trio, pytester):
    trio.run("--junitxml", "junit.xml")
    root = ElementTree.parse(pytester.path / "junit.xml").getroot()
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert set(cases) == {"good", "bad", "scriptless"}
    assert cases["bad"].get("classname") == "evals.fixtures.bad.json"
    assert cases["bad"].find("failure").get("message").startswith("expected [list_dir]; called glob")
    assert cases["scriptless"].find("skipped").get("message").startswith("no mock script")


def test_our_items_run_under_warnings_as_errors(trio):
    result = trio.run("-W", "error::pytest.PytestWarning", "-W", "error::DeprecationWarning")
    result.assert_outcomes(passed=1, failed=1, skipped=1)


def test_stepwise_and_failed_first_know_our_items(trio):
    trio.run("--stepwise").assert_outcomes(failed=1)
    trio.run()
    result = trio.run("--ff", "-v")
    lines = [line for line in result.outlines if line.startswith("evals/fixtures/")]
    assert lines[0].startswith("evals/fixtures/bad.json::bad FAILED")


def test_durations_and_setup_plan_work(trio):
    result = trio.run("--durations", "5", "-vv")
    result.stdout.fnmatch_lines(["*s setup *evals/fixtures/*"])


def test_a_conftest_that_declares_our_short_names_keeps_them(suite, pytester):
    suite.passing("a")
    pytester.makeconftest(
        """
        def pytest_addoption(parser):
            parser.addoption("--model", default="mine")
            parser.addoption("--provider", action="append")
        def pytest_report_header(config):
            return f"own: {config.getoption('--model')} {config.getoption('--provider')}"
        """
    )
    result = suite.run("--model", "theirs", "--provider", "x")
    result.stdout.fnmatch_lines(["own: theirs ['x']"])
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("form", [["--provider", "mock"], ["--provider=mock"], ["--tooleval-provider", "mock"]])
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_the_short_names_work_in_every_spelling(suite, form, workers):
    suite.passing("a")
    suite.run(*form, *workers).assert_outcomes(passed=1)


def test_the_plugin_can_be_blocked(suite, pytester):
    suite.passing("a")
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest_inprocess("-p", "no:tooleval", "-p", "no:randomly").assert_outcomes(passed=1)


def test_help_lists_every_option_and_ini_twin(pytester):
    from pytest_tooleval.options import OPTIONS

    text = pytester.runpytest_inprocess("--help").stdout.str()
    assert "measuring tool use (pytest-tooleval):" in text
    for option in OPTIONS:
        assert f"--tooleval-{option.name}" in text
        assert f"  {option.ini} (" in text
