from __future__ import annotations

import json

import pytest

VOLATILE = ("generatedAt", "latencySeconds")


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [without_times(member) for member in value]
    return value


@pytest.fixture
def mixed(suite):
    suite.passing("good", tags=["easy"])
    suite.missing("bad")
    suite.fixture("scriptless", tags=["none"])
    suite.write(
        "fixtures/list.json",
        [{"id": f"n{i}", "task": "x", "expected": [], "mock": [{"text": "hi"}]} for i in range(12)],
    )
    suite.thresholds(easy={"passRateMin": 1}, overall={"passRateMin": 0.5})
    return suite


@pytest.mark.parametrize("distribution", ["load", "loadfile", "loadgroup", "worksteal"])
def test_workers_write_the_same_result_as_one_process(mixed, distribution):
    alone = mixed.result()
    spread = mixed.result("-n", "2", "--dist", distribution)
    assert without_times(spread) == without_times(alone)
    assert json.dumps(without_times(spread)) == json.dumps(without_times(alone))


def test_a_random_order_writes_the_same_result(mixed, pytester):
    pytest.importorskip("pytest_randomly")
    alone = mixed.result()
    pytester.runpytest_inprocess("-p", "randomly", "-p", "no:cacheprovider", "--tooleval-json", "random.json")
    shuffled = json.loads((pytester.path / "random.json").read_text())
    assert without_times(shuffled) == without_times(alone)


def test_a_crashed_worker_loses_nothing_but_its_item(suite, pytester):
    pytester.makeconftest(
        """
        import os
        from pytest_tooleval.tools.tool import Tool
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("die", "Dies.", {"type": "object"}, "read", lambda arguments, context: os._exit(9)))
        """
    )
    for name in "abcdef":
        suite.passing(name)
    suite.fixture("killer", ["die"], expected=["die"])
    suite.thresholds(overall={"passRateMin": 0.1})
    result = suite.run("-n", "2", "--tooleval-json", "out.json")
    counts = result.parseoutcomes()
    assert counts["passed"] == 6
    assert counts["failed"] == 2
    result.stdout.fnmatch_lines(["not measured: 6 of 7 cases measured"])
    document = json.loads((pytester.path / "out.json").read_text())
    assert [case["id"] for case in document["toolUse"]["cases"]] == list("abcdef")
    assert document["verdict"] == "fail"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_surrogates_and_odd_types_cross_to_the_controller(suite, pytester, workers):
    pytester.makeconftest(
        r"""
        from pytest_tooleval.tools.tool import Tool
        from pytest_tooleval.transcript import AssistantMessage, ToolCall
        class Odd:
            def cannot_run(self, case): return None
            def close(self): pass
            def reply(self, case, request):
                if len(request.messages) == 1:
                    return AssistantMessage(calls=(ToolCall("1", "list_dir", {"path": "\ud83d\ude00\ud800"}),))
                return AssistantMessage("half \udfff")
        def pytest_tooleval_register_providers(providers):
            providers.add("odd", lambda settings: Odd())
        """
    )
    suite.fixture("a", expected=["list_dir"])
    case = suite.result("--provider", "odd", *workers)["toolUse"]["cases"][0]
    assert case["answer"] == "half \ufffd"
    assert case["trace"][0]["arguments"] == {"path": "\U0001f600\ufffd"}


def test_a_broken_file_does_not_stop_workers(suite):
    suite.write("fixtures/broken.json", "{")
    suite.passing("good")
    result = suite.run("-n", "2")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["evals/fixtures/broken.json:1: is not JSON: *"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_bad_provider_is_one_usage_error_with_workers_too(suite):
    suite.passing("good")
    result = suite.run("-n", "2", "--provider", "nope:x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: tooleval: no provider 'nope'; known: anthropic, azure, deepseek, gemini, groq, "
        "llamacpp, lmstudio, mistral, mock, ollama, openai, openai-responses, openrouter, together, vllm, xai"
    ]


def test_without_xdist_everything_works(mixed):
    mixed.run("-p", "no:xdist").assert_outcomes(passed=14, failed=1, skipped=2)


def test_maxfail_and_exitfirst_stop(suite):
    for name in "abc":
        suite.missing(name)
    suite.run("-x").assert_outcomes(failed=1)
    suite.run("--maxfail", "2").assert_outcomes(failed=2)
