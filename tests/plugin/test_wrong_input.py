from __future__ import annotations

import os
import socket

import pytest

CASE = '{"task": "x", "expected": ["grep"], "mock": [{"text": "no"}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: is empty; expected a JSON object or a list of objects"),
        ("{", "1: is not JSON: Expecting property name enclosed in double quotes (column 2)"),
        ("[]", "1: is an empty list; expected at least one fixture"),
        ('"x"', "1: found \"x\"; expected a fixture, which is an object with 'task'"),
        (CASE + ',\n "tgas": ["a"]}', "2 at /tgas: unknown key 'tgas' (did you mean 'tags'[?])"),
        (CASE + ',\n "max_turns": "3"}', '2 at /max_turns: found "3"; expected a whole number'),
        (CASE + ',\n "verifier": [{"avoid": ["x"]}]}', "2 at /verifier: found a list (*); expected an object"),
        (
            CASE + ',\n "files": {"../x": ""}}',
            "2 at /files/..~1x: '../x' holds '..'; give a path inside the worktree*",
        ),
        (CASE + ',\n "task": "y"}', "2: is not strict JSON: the key 'task' stands twice in one object"),
        ('{"task": "x"}', "1: checks nothing: give it 'expected' or a 'verifier', or every run would pass"),
        (CASE + ', "tools_deny": ["web_fech"]}', "1: broken: *no such tool (did you mean 'web_fetch'[?])"),
    ],
)
def test_a_wrong_file_is_one_clear_collection_error(suite, text, message):
    suite.write("fixtures/broken.json", text)
    suite.passing("good")
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR collecting evals/fixtures/broken.json*", f"evals/fixtures/broken.json:{message}"]
    )
    for line in ("*INTERNALERROR*", "*Traceback*", "*pytest_tooleval*.py*"):
        result.stdout.no_fnmatch_line(line)


def test_good_files_still_run_beside_a_broken_one(suite):
    suite.write("fixtures/broken.json", "{")
    suite.passing("good")
    suite.run("--continue-on-collection-errors").assert_outcomes(passed=1, errors=1)


def test_every_fault_of_every_file_is_in_one_report(suite):
    suite.write("fixtures/a.json", '{"task": 1, "expected": "x", "nope": 2}')
    suite.write("fixtures/b.json", '[{"id": "x/y", "task": "x", "expected": []}, {"id": "b"}]')
    suite.run().stdout.fnmatch_lines_random(
        [
            "evals/fixtures/a.json:1 at /task: *",
            "evals/fixtures/a.json:1 at /expected: *",
            "evals/fixtures/a.json:1 at /nope: *",
            "evals/fixtures/b.json:1 at /0/id: *",
            "evals/fixtures/b.json:1 at /1: the key 'task' is missing",
        ]
    )


def test_one_id_in_two_files_names_both(suite):
    suite.passing("a", id="same")
    suite.passing("b", id="same")
    result = suite.run()
    result.stdout.fnmatch_lines(
        ["evals/fixtures/b.json:1: the id 'same' is taken by evals/fixtures/a.json:1; ids are unique in a suite*"]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_one_id_twice_in_a_file_names_both_lines(suite):
    one = '{"id": "dup", "task": "x", "expected": []}'
    suite.write("fixtures/a.json", f"[\n{one},\n{one}]")
    suite.run().stdout.fnmatch_lines(
        ["evals/fixtures/a.json:3: the id 'dup' is taken by the fixture on line 2; give it another"]
    )


def test_a_file_that_cannot_be_read_is_named(suite):
    (suite.root / "fixtures" / "gone.json").symlink_to("nowhere.json")
    (suite.root / "fixtures" / "latin.json").write_bytes(b'{"task": "caf\xe9"}')
    os.mkfifo(suite.root / "fixtures" / "pipe.json")
    suite.passing("good")
    suite.run().stdout.fnmatch_lines_random(
        [
            "evals/fixtures/gone.json: cannot be read: No such file or directory",
            "evals/fixtures/latin.json: is not UTF-8 text: byte 13 is 0xe9",
            "evals/fixtures/pipe.json: is no regular file",
        ]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "thresholds.json:1: is not JSON*"),
        ("[]", "thresholds.json:1: found *expected an object with thresholds"),
        (
            '{"tool_use": {"overall": {"passRateMn": 1}}}',
            "*/passRateMn: unknown key 'passRateMn' (did you mean 'passRateMin'[?])",
        ),
        ('{"tool_use": {"passRateMn": 1}}', "*: unknown gate 'passRateMn' (did you mean 'passRateMin'[?])*"),
        ('{"tool_use": {"overall": {"passRateMin": "1"}}}', '*/passRateMin: found "1"; expected a number'),
        ('{"tool_use": {"overall": {"passRateMin": 80}}}', "*/passRateMin: found 80; expected at most 1"),
        ('{"tol_use": {}}', "*: unknown key 'tol_use' (did you mean 'tool_use'[?])"),
    ],
)
def test_a_wrong_threshold_file_is_one_clear_error(suite, text, message):
    suite.passing("good")
    suite.write("thresholds.json", text)
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting evals/thresholds.json*", f"*{message}"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--provider", "opnai:gpt"],
            "tooleval: no provider 'opnai' (did you mean 'openai'?); known: anthropic, azure, deepseek, *",
        ),
        (["--provider", "openai"], "tooleval: openai needs a model: --provider openai:MODEL"),
        (["--provider", "a:m", "--tooleval-add-provider", "a = klingon http://h"], "tooleval: *'klingon'*"),
        (["--provider", "mock", "--tooleval-add-provider", "nonsense"], "tooleval: *'nonsense'*"),
        (["--provider", "openai:gpt"], "tooleval: openai needs a key: set OPENAI_API_KEY*"),
        (["--provider", ":gpt"], "tooleval: --provider ':gpt' names no provider; expected NAME or NAME:MODEL"),
        (
            ["--provider", "mock:gpt"],
            "tooleval: --provider 'mock:gpt': 'mock' plays the fixtures' scripts and has no models",
        ),
        (["--provider", "mock", "--provider", "mock"], "tooleval: the target 'mock' is named twice*"),
        (["--compare", "mock"], "tooleval: --compare 'mock' names one target; expected two or more, as a,b"),
        (
            ["--compare", "mock,openai:a", "--provider", "mock"],
            "tooleval: --compare and --provider both name targets*",
        ),
        (["--provider", "openai:a", "--provider-url", "localhost:1"], "tooleval: 'localhost:1' is no http(s) URL*"),
        (["--tooleval-trials", "0"], "*argument --tooleval-trials: '0' is not a whole number of at least 1"),
        (["--tooleval-tool-choice", "always"], "*'always' is none of: auto, required, none"),
        (["--tooleval-min-measured", "2"], "*'2' is not a number between 0 and 1"),
        (
            ["--tooleval-suites", "nowhere"],
            "tooleval: the suite *nowhere is no folder; make it with 'tooleval init'*",
        ),
        (["--tooleval-system-prompt", "none.txt"], "tooleval: the system prompt *none.txt cannot be read: *"),
    ],
)
def test_a_wrong_option_is_a_usage_error(suite, arguments, message):
    suite.passing("good")
    result = suite.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}" if message.startswith("tooleval") else message])


def test_a_wrong_ini_value_is_a_usage_error(suite, pytester):
    pytester.makeini("[pytest]\ntooleval_trials = many")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: tooleval: ini value tooleval_trials: 'many' is not a whole number*"])


def test_a_provider_of_the_ini_file_does_not_disturb_other_tests(suite, pytester):
    pytester.makeini("[pytest]\ntooleval_provider = openai:gpt")
    pytester.makepyfile("def test_it(): pass")
    suite.run("test_a_provider_of_the_ini_file_does_not_disturb_other_tests.py").assert_outcomes(passed=1)
    result = suite.run("evals")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["openai needs a key: set OPENAI_API_KEY*"])


def test_an_unknown_provider_is_an_error_when_only_the_suites_conftest_could_know_it(suite):
    suite.passing("good")
    suite.write("conftest.py", "")
    result = suite.run("--provider", "nope:x")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*ERROR collecting evals*", "no provider 'nope'; known: anthropic, azure, deepseek, *"]
    )
    result = suite.run("--provider", "nope:x", "evals")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: tooleval: no provider 'nope'; known: anthropic, azure, deepseek, *"])


def test_a_port_nobody_listens_on_is_an_error_with_its_reason(suite):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    suite.passing("a")
    result = suite.run("--provider", "openai:m", "--provider-url", f"http://127.0.0.1:{port}/v1")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"not measured: openai: http://127.0.0.1:{port}/v1/chat/completions: *refused*"])
    result.stdout.fnmatch_lines(["openai:m: 0 of 1 measured"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_empty_suite_says_so(suite):
    result = suite.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["tooleval: no cases in evals; 'tooleval init' writes an example"])


def test_a_missing_folder_is_pytests_own_error(pytester):
    result = pytester.runpytest_inprocess("evals")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: file or directory not found: evals", ""])


def test_a_duplicate_registration_is_an_error(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.tools.tool import Tool
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("grep", "Mine.", {"type": "object"}, "read", lambda arguments, context: ""))
        """
    )
    suite.passing("a")
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["a tool named 'grep' is registered already; give yours another name"])
