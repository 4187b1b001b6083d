from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

GATE = "evals/thresholds.json::tool_use.overall.passRate[mock]"


@pytest.fixture
def half(suite):
    """Two cases of which one passes."""
    suite.passing("good", tags=["easy"])
    suite.missing("bad")
    return suite


def last_failed(pytester: pytest.Pytester) -> set[str]:
    path = pytester.path / ".pytest_cache/v/cache/lastfailed"
    return set(json.loads(path.read_text())) if path.exists() else set()


def test_without_a_gate_a_miss_fails(half):
    half.run().assert_outcomes(passed=1, failed=1)


def test_a_kept_gate_leaves_the_miss_xfailed(half):
    half.thresholds(overall={"passRateMin": 0.5})
    result = half.run("-rxX")
    result.assert_outcomes(passed=2, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["XFAIL evals/fixtures/bad.json::bad - reason: expected *list_dir*; left to the gate"]
    )


def test_a_broken_gate_fails_the_run_and_stands_in_junit(half, pytester):
    half.thresholds(overall={"passRateMin": 0.6})
    result = half.run("--junitxml", "junit.xml")
    result.assert_outcomes(passed=1, failed=1, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["passRate is 0.5, expected at least 0.6; missed: bad"])
    root = ElementTree.parse(pytester.path / "junit.xml").getroot()
    failures = {case.get("name"): case.find("failure") for case in root.iter("testcase")}
    assert failures["tool_use.overall.passRate[mock]"].get("message").startswith("passRate is 0.5")
    assert failures["good"] is None


def test_after_a_broken_gate_last_failed_holds_the_misses_and_not_the_gate(half, pytester):
    half.thresholds(overall={"passRateMin": 0.6})
    half.run()
    assert last_failed(pytester) == {"evals/fixtures/bad.json::bad"}
    result = half.run("--lf")
    result.assert_outcomes(failed=1, skipped=1)
    half.passing("bad")
    half.run("--lf").assert_outcomes(passed=1, skipped=1)
    assert last_failed(pytester) == set()
    half.run().assert_outcomes(passed=3)


def test_after_a_kept_gate_last_failed_is_empty(half, pytester):
    half.thresholds(overall={"passRateMin": 0.5})
    half.run()
    assert last_failed(pytester) == set()


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (["-k", "bad"], 1),
        (["evals/fixtures/bad.json"], 1),
        (["evals/fixtures/bad.json::bad"], 1),
        (["--deselect", "evals/fixtures/good.json::good"], 1),
        (["--ignore", "evals/fixtures/good.json"], 1),
    ],
)
def test_in_a_partial_run_the_miss_fails_and_the_gate_is_skipped(half, arguments, selected):
    half.thresholds(overall={"passRateMin": 0.1})
    result = half.run("-rs", *arguments)
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines([f"SKIPPED*not evaluated: {selected} of 2 cases selected"])


def test_deferred_gates_leave_the_misses_of_a_partial_run(half):
    half.thresholds(overall={"passRateMin": 0.1})
    result = half.run("-k", "bad", "--tooleval-defer-gates")
    result.assert_outcomes(xfailed=1, skipped=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("option", ["--tooleval-strict", "--runxfail"])
def test_strict_runs_fail_on_every_miss(half, option):
    half.thresholds(overall={"passRateMin": 0.1})
    half.run(option).assert_outcomes(passed=2, failed=1)


def test_a_note_and_an_empty_object_are_no_gates(half):
    half.write("thresholds.json", {"_note": "x", "tool_use": {"overall": {"_why": "tracked"}}})
    half.run().assert_outcomes(passed=1, failed=1)


def test_a_gate_on_costs_does_not_excuse_a_miss(half):
    half.thresholds(overall={"redundantMax": 5, "errorsMax": 5})
    half.run().assert_outcomes(passed=3, failed=1)


def test_an_accuracy_gate_excuses_only_what_accuracy_sees(suite):
    suite.fixture("names", ["glob"], expected=["list_dir"])
    suite.fixture("answer", ["list_dir"], expected=["list_dir"], verifier={"answer": {"contains": "never said"}})
    suite.thresholds(overall={"accuracyMin": 0.5})
    suite.run().assert_outcomes(passed=1, failed=1, xfailed=1)


def test_a_tag_is_a_scope_of_its_own(half):
    half.missing("other", tags=["hard"])
    half.thresholds(easy={"passRateMin": 1}, hard={"passRateMin": 0})
    half.run().assert_outcomes(passed=3, failed=1, xfailed=1)


def test_a_whole_tag_is_evaluated_where_overall_is_not(half):
    half.missing("hard1", tags=["hard"])
    half.thresholds(overall={"passRateMin": 0}, hard={"passRateMin": 0})
    half.run("-m", "hard").assert_outcomes(passed=1, xfailed=1, skipped=1, deselected=2)


def test_a_scope_without_cases_fails(half):
    half.thresholds(nobody={"passRateMin": 0})
    result = half.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*nobody.passRate*FAIL: no cases: none of evals is*"])


def test_must_pass_names_cases(half):
    half.thresholds(overall={"must_pass": ["good", "bad"]})
    result = half.run()
    result.assert_outcomes(passed=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["mustPass is 1, expected at least 2; not passed: bad"])


def test_must_pass_with_an_unknown_id_is_an_error(half):
    half.thresholds(overall={"must_pass": ["goood"]})
    result = half.run()
    result.stdout.fnmatch_lines(
        ["evals/thresholds.json:4: must_pass names 'goood', and there is no such case (did you mean 'good'[?])"]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_scope_with_skipped_cases_is_not_evaluated_and_its_misses_fail(half):
    half.fixture("scriptless")
    half.thresholds(overall={"passRateMin": 0.1})
    result = half.run("-rs")
    result.assert_outcomes(passed=1, failed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*not evaluated: 1 of 3 cases skipped"])


def test_misses_left_to_a_gate_are_not_lost_when_a_skip_comes_later(half, pytester):
    pytester.makeconftest(
        """
        import pytest
        class Late:
            def cannot_run(self, case): return None
            def close(self): pass
            def reply(self, case, request):
                if case.id == "late":
                    pytest.skip("no such model today")
                from pytest_tooleval.transcript import AssistantMessage
                return AssistantMessage("no")
        def pytest_tooleval_register_providers(providers):
            providers.add("late", lambda settings: Late())
        """
    )
    half.passing("late")
    half.thresholds(overall={"passRateMin": 0})
    result = half.run("--provider", "late")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["not evaluated: 1 of 3 cases skipped, and bad, good missed"])


FLAKY_PROVIDER = """
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.mock import MockProvider
class Flaky(MockProvider):
    def reply(self, case, request):
        if case.id == "bad":
            raise ProviderError("no route")
        return super().reply(case, request)
def pytest_tooleval_register_providers(providers):
    providers.add("flaky", lambda settings: Flaky())
"""


@pytest.mark.parametrize(
    ("least", "outcome"), [("1.0", "failed"), ("0.6", "failed"), ("0.5", "passed"), ("0", "passed")]
)
def test_errored_cases_make_a_gate_unmeasured_below_the_least_share(half, pytester, least, outcome):
    pytester.makeconftest(FLAKY_PROVIDER)
    half.thresholds(overall={"passRateMin": 1})
    result = half.run("--provider", "flaky", "--tooleval-min-measured", least)
    counts = result.parseoutcomes()
    assert counts["errors"] == 1
    assert counts.get("failed", 0) == (outcome == "failed")
    if outcome == "failed":
        result.stdout.fnmatch_lines(["not measured: 1 of 2 cases measured"])


def test_each_target_has_its_own_gate(half, pytester):
    pytester.makeconftest(FLAKY_PROVIDER)
    half.thresholds(overall={"passRateMin": 0.5})
    document = half.result("--compare", "mock,flaky")
    assert [(gate["name"], gate["pass"]) for gate in document["gates"]] == [
        ("tool_use.overall.passRate[mock]", True),
        ("tool_use.overall.passRate[flaky]", False),
    ]
    assert document["verdict"] == "fail"


def test_trials_are_averaged_per_case_first(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.providers.mock import MockProvider
        from pytest_tooleval.transcript import AssistantMessage
        class EverySecond(MockProvider):
            asked = 0
            def reply(self, case, request):
                if case.id == "shaky":
                    self.asked += 1
                    if self.asked > 2:
                        return AssistantMessage("no")
                return super().reply(case, request)
        def pytest_tooleval_register_providers(providers):
            providers.add("second", lambda settings: EverySecond())
        """
    )
    suite.passing("steady")
    suite.passing("shaky")
    suite.thresholds(overall={"passRateMin": 0.75})
    document = suite.result("--provider", "second", "--tooleval-trials", "2")
    assert document["toolUse"]["byTarget"]["second"]["passRate"] == 0.75
    assert document["toolUse"]["byTarget"]["second"]["n"] == 2
    assert [gate["pass"] for gate in document["gates"]] == [True]


def test_one_trial_of_two_is_a_partial_run(half):
    half.thresholds(overall={"passRateMin": 0})
    result = half.run("--tooleval-trials", "2", "-k", "t1", "-rs")
    result.stdout.fnmatch_lines(["SKIPPED*not evaluated: 0 of 2 cases selected"])


def test_gates_are_neither_listed_nor_evaluated_when_only_collecting(half):
    half.thresholds(overall={"passRateMin": 1})
    result = half.run("--collect-only")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*passRate*")


def test_gates_are_not_evaluated_after_collection_errors(half):
    half.thresholds(overall={"passRateMin": 0})
    half.write("fixtures/broken.json", "{")
    result = half.run("--continue-on-collection-errors")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.no_fnmatch_line("*passRate*")


def test_no_selected_case_leaves_pytests_exit_code_alone(half):
    half.thresholds(overall={"passRateMin": 1})
    assert half.run("-k", "no_such_name").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_token_gate_under_mock_is_skipped(half):
    half.thresholds(overall={"tokensMax": 10})
    result = half.run("-rs")
    result.stdout.fnmatch_lines(["SKIPPED*not evaluated: the provider mock uses no tokens"])


def test_progress_ends_at_one_hundred_percent(half):
    half.thresholds(overall={"passRateMin": 0.5})
    result = half.run()
    result.stdout.fnmatch_lines(["evals/thresholds.json .*100%]"])
    result.stdout.no_fnmatch_line("*[[]1[0-9][1-9]%]*")


@pytest.mark.parametrize("distribution", ["load", "loadfile", "worksteal", "each"])
def test_workers_give_the_same_gates_once(half, distribution):
    if distribution == "each":
        pytest.skip("every worker runs every item: there is no single result to compare")
    half.thresholds(overall={"passRateMin": 0.6})
    result = half.run("-n", "2", "--dist", distribution)
    result.assert_outcomes(passed=1, failed=1, xfailed=1)
    assert sum("= tool use =" in line for line in result.outlines) == 1
    assert sum(line.startswith("FAILED") for line in result.outlines) == 1
