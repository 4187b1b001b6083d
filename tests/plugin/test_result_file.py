from __future__ import annotations

import json
import math

import pytest


def strict(text: str):
    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def test_a_case_record_holds_what_was_measured(suite):
    suite.fixture(
        "a",
        expected=[["grep"], ["list_dir", "file_read", "file_read"]],
        files={"x.txt": "one\ntwo\n"},
        tags=["t"],
        mock=[
            {
                "calls": [
                    {"name": "list_dir", "arguments": {}},
                    {"name": "file_read", "arguments": {"path": "x.txt"}},
                ]
            },
            {"calls": [{"name": "file_read", "arguments": {"path": "x.txt"}}]},
            {"text": "Two."},
        ],
    )
    document = suite.result()
    case = document["toolUse"]["cases"][0]
    assert case.pop("latencySeconds") > 0
    assert case == {
        "id": "a",
        "target": "mock",
        "trial": 1,
        "corpus": "evals",
        "file": "evals/fixtures/a.json",
        "index": 0,
        "nodeid": "evals/fixtures/a.json::a",
        "tags": ["t"],
        "verdict": "passed",
        "reason": "",
        "deferred": False,
        "status": "ok",
        "pass": True,
        "accuracy": 1.0,
        "calls": 3,
        "redundant": 1,
        "errors": 0,
        "tokens": None,
        "usage": None,
        "cost": None,
        "lostAt": None,
        "toolSet": {"model": "mock", "tools": "direct", "distractors": 0, "size": 5},
        "turns": 3,
        "attempts": 0,
        "names": ["list_dir", "file_read", "file_read"],
        "expectedNames": [["grep"], ["list_dir", "file_read", "file_read"]],
        "trace": [
            {"name": "list_dir", "arguments": {}, "outcome": "ok"},
            {"name": "file_read", "arguments": {"path": "x.txt"}, "outcome": "ok"},
            {"name": "file_read", "arguments": {"path": "x.txt"}, "outcome": "ok"},
        ],
        "answer": "Two.",
        "checks": 1,
        "mismatches": [],
        "notes": [],
        "detail": "",
    }
    assert document["schema"] == "tooleval/v1"
    assert document["verdict"] == "pass"
    assert document["provenance"]["targets"] == ["mock"]


def test_totals_are_sums_and_means_over_cases(suite):
    suite.passing("a")
    suite.missing("b")
    suite.fixture("c", verifier={"no_calls": True}, mock=[{"text": "hi"}])
    totals = suite.result()["toolUse"]["byTarget"]["mock"]
    assert totals.pop("latencySeconds") > 0
    assert totals == {
        "n": 3,
        "measured": 3,
        "accuracy": 0.5,
        "passRate": 2 / 3,
        "calls": 2,
        "redundant": 0,
        "errors": 1,
        "tokens": None,
        "cost": None,
        "costRuns": 3,
        "pricedRuns": 0,
        "costPerSolved": None,
        "tokensPerSolved": None,
        "toolSet": {"model": "mock", "tools": "direct", "distractors": 0, "leastSize": 5, "mostSize": 5},
        "brokerCalls": None,
        "lostAt": {"search": 0, "selection": 1, "arguments": 0, "execution": 0, "answer": 0},
        "passRateInterval": {
            "low": pytest.approx(0.207660, abs=1e-6),
            "high": pytest.approx(0.938508, abs=1e-6),
            "method": "Wilson",
            "effectiveCases": 3.0,
        },
        "passAtK": [{"k": 1, "value": 2 / 3, "cases": 3}],
        "passHatK": [{"k": 1, "value": 2 / 3, "cases": 3}],
        "flaky": [],
    }


@pytest.mark.parametrize(("missing", "verdict"), [(False, "pass"), (True, "fail")])
def test_the_verdict_is_that_of_the_exit_code(suite, missing, verdict):
    suite.passing("a")
    if missing:
        suite.missing("b")
    assert suite.result()["verdict"] == verdict


def test_gates_and_their_reasons_stand_in_the_file(suite):
    suite.passing("a")
    suite.missing("b", tags=["t"])
    suite.thresholds(overall={"passRateMin": 0.5}, t={"redundantMax": 0})
    assert suite.result()["gates"] == [
        {
            "name": "tool_use.overall.passRate[mock]",
            "file": "evals/thresholds.json",
            "comparator": "min",
            "threshold": 0.5,
            "actual": 0.5,
            "pass": True,
        },
        {
            "name": "tool_use.t.redundant[mock]",
            "file": "evals/thresholds.json",
            "comparator": "max",
            "threshold": 0,
            "actual": 0.0,
            "pass": True,
        },
    ]
    assert suite.result("-k", "b")["gates"][0] == {
        "name": "tool_use.overall.passRate[mock]",
        "file": "evals/thresholds.json",
        "comparator": "min",
        "threshold": 0.5,
        "actual": None,
        "pass": False,
        "skipped": True,
        "skipReason": "not evaluated: 1 of 2 cases selected",
    }


def test_numbers_that_json_does_not_have_become_null(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.transcript import AssistantMessage, ToolCall
        class Odd:
            def cannot_run(self, case): return None
            def close(self): pass
            def reply(self, case, request):
                if len(request.messages) == 1:
                    return AssistantMessage(calls=(ToolCall("1", "nope", {"x": float("nan"), "BaNaNa": "NaN"}),))
                return AssistantMessage("NaN Infinity")
        def pytest_tooleval_register_providers(providers):
            providers.add("odd", lambda settings: Odd())
        """
    )
    suite.fixture("a", expected=["nope"])
    suite.run("--provider", "odd", "--tooleval-json", "out.json")
    case = strict((pytester.path / "out.json").read_text())["toolUse"]["cases"][0]
    assert case["trace"][0]["arguments"] == {"x": None, "BaNaNa": "NaN"}
    assert case["answer"] == "NaN Infinity"
    assert not math.isnan(case["accuracy"])


def test_an_interrupted_run_is_marked(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.tools.tool import Tool
        def stop(arguments, context):
            raise KeyboardInterrupt
        def pytest_tooleval_register_tools(tools):
            tools.add(Tool("stop", "Stops.", {"type": "object"}, "read", stop))
        """
    )
    suite.passing("a")
    suite.fixture("b", ["stop"], expected=["stop"])
    suite.passing("c")
    suite.thresholds(overall={"passRateMin": 0})
    result = pytester.runpytest_subprocess("-p", "no:randomly", "--tooleval-json", "out.json")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    document = json.loads((pytester.path / "out.json").read_text())
    assert (document["interrupted"], document["verdict"], document["gates"]) == (True, "fail", [])
    assert [case["id"] for case in document["toolUse"]["cases"]] == ["a"]
    result.stdout.fnmatch_lines(["mock: 1 of 1 measured"])


def test_an_old_result_file_is_replaced_and_nothing_else_is_left(suite, pytester):
    suite.passing("a")
    (pytester.path / "out").mkdir()
    (pytester.path / "out" / "r.json").write_text("old")
    suite.run("--tooleval-json", "out/r.json")
    assert [path.name for path in (pytester.path / "out").iterdir()] == ["r.json"]
    assert json.loads((pytester.path / "out" / "r.json").read_text())["verdict"] == "pass"


SECRET = "sk-test-0123456789abcdef"


def test_secrets_of_the_environment_reach_no_report(suite, pytester, monkeypatch):
    pytest.importorskip("pytest_html")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET[::-1])
    suite.fixture(
        "leak",
        verifier={"answer": {"contains": "nothing"}},
        tool_permission={"bash": "allow"},
        mock=[
            {"calls": [{"name": "run_command", "arguments": {"command": f"env; echo {SECRET}"}}]},
            {"text": f"The key is {SECRET} and {SECRET[::-1]}"},
        ],
    )
    result = suite.run("--tooleval-json", "out.json", "--junitxml", "junit.xml", "--html", "report.html", "-rA")
    written = [(pytester.path / name).read_text() for name in ("out.json", "junit.xml", "report.html")]
    for text in [result.stdout.str(), result.stderr.str(), *written]:
        assert SECRET not in text
        assert SECRET[::-1] not in text
    assert "[redacted]" in written[0]
