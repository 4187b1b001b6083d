from __future__ import annotations

import tempfile

import pytest

BROKEN_PROVIDER = """
from pytest_tooleval.errors import ProviderError
class Broken:
    def cannot_run(self, case): return None
    def reply(self, case, request): raise ProviderError("the server answered 503 (3 attempts)")
    def close(self): pass
def pytest_tooleval_register_providers(providers):
    providers.add("broken", lambda settings: Broken())
"""


def test_a_miss_says_expected_then_trace_then_mismatches_then_answer(suite):
    suite.fixture(
        "wrong",
        verifier={"must_include": ["grep"], "args": {"list_dir": {"path": "src"}}, "answer": {"contains": "three"}},
        mock=[
            {"calls": [{"name": "list_dir", "arguments": {"path": "lib"}}, {"name": "nope", "arguments": {}}]},
            {"text": "There are two."},
        ],
    )
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "expected a call of each of [[]grep]; list_dir with *; called list_dir, nope",
            "expected:",
            '  list_dir with {"path": "src"}',
            "what happened:",
            '  list_dir({"path": "lib"}) -> error: *',
            "  nope({}) -> unknown tool: there is no tool 'nope'; the tools are: *",
            "mismatches:",
            "  missing: a call of grep",
            '  different: list_dir: argument path: expected "src", got "lib"',
            '  missing: "three" in the answer',
            "answer:",
            "  There are two.",
            "FAILED evals/fixtures/wrong.json::wrong*",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_tooleval*.py*")


def test_an_infrastructure_fault_is_an_error_and_no_failure(suite, pytester):
    pytester.makeconftest(BROKEN_PROVIDER)
    suite.passing("a")
    suite.passing("b")
    result = suite.run("--provider", "broken", "--provider", "mock")
    result.assert_outcomes(errors=2, passed=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of a[[]broken]*",
            "not measured: the server answered 503 (3 attempts)",
            "broken: 0 of 2 measured",
            "mock: 2 of 2 measured",
            "not measured: 2 items error: the server answered 503 (3 attempts)",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_error_is_left_out_of_the_rates(suite, pytester):
    pytester.makeconftest(BROKEN_PROVIDER)
    suite.passing("a")
    by_target = suite.result("--compare", "mock,broken")["toolUse"]["byTarget"]
    assert (by_target["mock"]["n"], by_target["mock"]["measured"], by_target["mock"]["passRate"]) == (1, 1, 1.0)
    assert (by_target["broken"]["n"], by_target["broken"]["measured"]) == (1, 0)
    assert {by_target["broken"][key] for key in ("accuracy", "passRate", "calls", "errors", "tokens")} == {None}


def test_a_missing_capability_is_a_skip_with_its_reason(suite):
    suite.passing("a")
    suite.fixture("scriptless")
    result = suite.run("-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*evals/fixtures/scriptless.json:1: no mock script; name a model with *"])


def test_a_run_that_measures_nothing_fails(suite):
    suite.fixture("scriptless")
    result = suite.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["nothing measured: 1 skipped: no mock script; name a model with --provider NAME:MODEL"]
    )


def test_a_run_of_other_tests_is_not_asked_to_measure(suite, pytester):
    suite.fixture("scriptless")
    pytester.makepyfile("def test_it(): pass")
    result = suite.run("-k", "test_it")
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("mark", ["skip", "xfail"])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_marks_added_by_a_conftest_work(suite, pytester, mark, workers):
    pytester.makeconftest(
        f"""
        import pytest
        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name == "marked":
                    item.add_marker(pytest.mark.{mark}(reason="because"))
        """
    )
    suite.passing("a")
    suite.missing("marked")
    suite.run(*workers).assert_outcomes(passed=1, **{"skipped" if mark == "skip" else "xfailed": 1})


def test_an_empty_reply_passes_nothing(suite):
    suite.fixture("idle", verifier={"avoid": ["grep"]}, mock=[{"text": " "}])
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  missing: an answer: the model called nothing and said nothing",
            "note: idle (evals/fixtures/idle.json:1) asks for nothing that doing nothing would not meet*",
        ]
    )


def test_the_turn_limit_is_the_models_failure(suite):
    turns = [{"calls": [{"name": "list_dir", "arguments": {}}]}] * 3
    suite.fixture("endless", verifier={"must_include": ["list_dir"]}, max_turns=2, mock=turns)
    case = suite.result()["toolUse"]["cases"][0]
    assert (case["status"], case["pass"], case["verdict"], case["calls"]) == ("truncated", False, "missed", 2)
    assert case["answer"] == ""
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  then the turn limit of 2 was reached"])


def test_control_characters_from_a_model_do_not_reach_the_terminal(suite):
    suite.fixture("ansi", verifier={"must_include": ["grep"]}, mock=[{"text": "\x1b[31mred\x07\u202e"}])
    result = suite.run("--tooleval-json", "out.json")
    result.stdout.fnmatch_lines(["  \\x1b[[]31mred\\x07\\u202e"])
    assert "\x1b[31m" not in result.stdout.str()


def test_the_working_directory_is_the_worktree_and_is_restored(suite, pytester):
    pytester.makeconftest(
        """
        import os, pathlib
        from pytest_tooleval.tools.tool import Tool
        def here(arguments, context):
            pathlib.Path("made.txt").write_text("x")
            return str(pathlib.Path.cwd() == context.worktree)
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("here", "Where.", {"type": "object"}, "read", here))
        """
    )
    suite.fixture(
        "cwd",
        verifier={"must_include": ["here"], "files": {"made.txt": {"equals": "x"}}},
        mock=[{"calls": [{"name": "here", "arguments": {}}]}, {"text": "ok"}],
    )
    suite.run().assert_outcomes(passed=1)
    assert not (pytester.path / "made.txt").exists()


def test_a_users_tool_that_raises_is_a_tool_error(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.tools.tool import Tool
        def broken(arguments, context):
            raise KeyError("lost")
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("broken", "Breaks.", {"type": "object"}, "read", broken))
        """
    )
    suite.fixture("a", ["broken"], expected=["broken"])
    case = suite.result()["toolUse"]["cases"][0]
    assert case["trace"] == [
        {"name": "broken", "arguments": {}, "outcome": "error", "result": "the tool failed: KeyError: 'lost'"}
    ]
    assert (case["errors"], case["status"], case["pass"]) == (1, "ok", True)


def test_kept_worktrees_are_named(suite, pytester, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(pytester.path))
    suite.passing("a", files={"x.txt": "hello"})
    result = suite.run("--tooleval-keep-worktrees")
    line = next(line for line in result.outlines if line.startswith("worktree of a [mock]: "))
    folder = pytester.path / line.split(": ", 1)[1]
    assert (folder / "x.txt").read_text() == "hello"


def test_a_demanded_tool_that_is_not_offered_is_pointed_out(suite):
    suite.fixture("denied", ["list_dir"], expected=["list_dir", "file_write"])
    suite.fixture("misspelt", ["list_dir"], verifier={"must_include": ["lst_dir"]})
    result = suite.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "  file_write is demanded and not offered: the permission of category 'edit' is 'deny'",
            "  lst_dir is demanded, and there is no such tool (did you mean 'list_dir'?)",
        ]
    )


def test_a_users_provider_that_raises_is_an_error_with_its_place(suite, pytester):
    pytester.makeconftest(
        BROKEN_PROVIDER.replace(
            'ProviderError("the server answered 503 (3 attempts)")', "ZeroDivisionError('oops')"
        )
    )
    suite.passing("a")
    result = suite.run("--provider", "broken")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["not measured: the provider raised ZeroDivisionError: oops (*conftest.py:4)"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_provider_that_returns_no_message_is_an_error_that_says_so(suite, pytester):
    pytester.makeconftest(
        BROKEN_PROVIDER.replace('raise ProviderError("the server answered 503 (3 attempts)")', "return None")
    )
    suite.passing("a")
    result = suite.run("--provider", "broken")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["not measured: the provider returned NoneType; expected an AssistantMessage"])


def test_a_skip_reason_is_redacted(suite, pytester, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2")
    pytester.makeconftest(BROKEN_PROVIDER.replace("return None", 'return "no, because of hunter2-hunter2"'))
    suite.passing("a")
    result = suite.run("--provider", "broken", "-rs")
    result.stdout.fnmatch_lines(["SKIPPED*no, because of [[]redacted[]]"])
    assert "hunter2" not in result.stdout.str()


def test_an_error_of_somebody_elses_hook_is_told_by_its_message(suite, pytester):
    pytester.makeconftest("def pytest_runtest_setup(item):\n    raise OSError('the lab is closed')\n")
    suite.passing("a")
    case = suite.result()["toolUse"]["cases"]
    result = suite.run()
    result.stdout.fnmatch_lines(["*nothing measured: 1 error: OSError: the lab is closed*"])
    assert case[0]["reason"] == "OSError: the lab is closed"
