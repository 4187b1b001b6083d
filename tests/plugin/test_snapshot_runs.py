"""Snapshots, baselines and regressions in real runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mcp
import mcp.server
import pytest

from pytest_tooleval.reports import comparison, comparison_summary, snapshot
from pytest_tooleval.reports.result_reader import read_result
from pytest_tooleval.reports.scoreboard import scoreboard

# pytester forgets what an inner run imported: what is imported here is imported once for all of them.
IMPORTED_ONCE = (mcp.server, comparison, comparison_summary, snapshot)

BASELINE = "out/snapshots/baseline.json"
TIMES = ("generatedAt", "latencySeconds", "performance")
GATE = "evals/thresholds.json::regressions"


def catalog(version: Any = 3) -> dict[str, Any]:
    tools = [
        ("mail", "send_message", "Send an e-mail message to a person.", {"to": {"type": "string"}}, False),
        ("mail", "search_messages", "Search e-mail messages by text.", {"query": {"type": "string"}}, True),
        ("files", "read_file", "Read a text file from disk.", {"path": {"type": "string"}}, True),
    ]
    return {
        "version": version,
        "servers": [{"id": "mail", "status": "online"}, {"id": "files", "status": "online"}],
        "tools": [
            {
                "toolRef": f"{server}.{name}",
                "serverId": server,
                "name": name,
                "description": description,
                "inputSchema": {"type": "object", "properties": arguments, "required": list(arguments)},
                "readOnly": read_only,
            }
            for server, name, description, arguments, read_only in tools
        ],
    }


def without_version() -> dict[str, Any]:
    return {key: value for key, value in catalog().items() if key != "version"}


def row(intent: str, *acceptable: str, category: str = "lexical") -> str:
    value = {"intent": intent, "category": category, "acceptable": list(acceptable), "rationale": "it fits"}
    return json.dumps(value) + "\n"


@pytest.fixture
def gold(suite):
    """A corpus of gold sets beside two fixtures."""
    suite.passing("a")
    suite.passing("b")
    suite.write("catalog/tools.json", catalog())
    suite.write(
        "discovery/rows.jsonl", row("read a text file", "files.read_file") + row("send mail", "mail.send_message")
    )
    call = {"name": "reads", "toolRef": "files.read_file", "arguments": {"path": "x"}, "expectedOutcome": "success"}
    suite.write("invocation/core.json", {"version": 1, "scenarios": [{**call, "rationale": "valid"}]})
    find = {"name": "finds", "kind": "find", "query": "read a text file", "rationale": "clear"}
    suite.write("ergonomics/core.json", {"version": 1, "cases": [find]})
    return suite


def snapshots(root: Path) -> list[Path]:
    return sorted(path for path in (root / "out/snapshots").iterdir() if path.name != "baseline.json")


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(member) for member in value if not is_timing(member)]
    return value


def is_timing(value: Any) -> bool:
    """Whether a record is that of a workload which is timed, and is not with workers."""
    return isinstance(value, dict) and value.get("family") == "performance"


def test_a_whole_run_that_passes_makes_baseline_and_scoreboard(gold, pytester):
    result = gold.run("--tooleval-snapshot", "out", "--tooleval-json", "r.json")
    (written,) = snapshots(pytester.path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z\.json", written.name)
    text = (pytester.path / BASELINE).read_text()
    assert text == written.read_text() == (pytester.path / "r.json").read_text()
    board = (pytester.path / "out/BENCHMARKS.md").read_text()
    assert board == scoreboard(read_result(pytester.path / BASELINE))
    assert "| `mock` |     2 |        2 |" in board
    result.stdout.fnmatch_lines(
        [
            "result file: *r.json",
            f"snapshot: {written}",
            f"baseline refreshed: *{BASELINE} and *out/BENCHMARKS.md",
        ]
    )


def test_provenance_says_what_was_measured_with_what(gold):
    found = gold.result()["provenance"]
    assert found.pop("host")
    assert set(found.pop("versions")) == {"pytest-tooleval", "pytest", "python"}
    assert found == {
        "targets": ["mock", "lexical", "broker"],
        "corpusVersion": 3,
        "model": "lexical-only",
        "semanticRan": False,
        "tokenEstimator": "chars/4",
        "gitCommit": "unknown",
    }


def test_provenance_of_several_corpora_and_of_none(gold):
    for name in ("b", "c"):
        gold.write(f"{name}/catalog/tools.json", catalog(name) if name == "b" else without_version())
        gold.write(f"{name}/discovery/rows.jsonl", row("read a text file", "files.read_file"))
    found = gold.result("-n", "2")["provenance"]
    assert found["corpusVersion"] == {"evals": 3, "evals/b": "b", "evals/c": None}
    only_fixtures = gold.result("evals/fixtures")["provenance"]
    assert only_fixtures["targets"] == ["mock"]
    assert {only_fixtures[key] for key in ("corpusVersion", "model", "semanticRan", "tokenEstimator")} == {None}


def test_two_runs_of_the_same_inputs_write_the_same_bytes_but_for_times(gold, pytester):
    for workers in ([], [], ["-n", "2"]):
        gold.run("--tooleval-snapshot", "out", *workers)
    documents = [without_times(read_result(path)) for path in snapshots(pytester.path)]
    texts = [json.dumps(document) for document in documents]
    assert len(texts) == 3
    assert texts[0] == texts[1] == texts[2]


def test_engines_stand_in_the_order_of_the_options_whatever_ends_first(gold, pytester):
    pytester.syspathinsert()
    pytester.makepyfile(
        engines="def fixed(catalog):\n    refs = sorted(catalog.by_ref)\n    return lambda q: refs\n"
    )
    options = ("--tooleval-engine", "engines:fixed", "--tooleval-engine", "lexical")
    alone, spread = gold.result(*options), gold.result(*options, "-n", "2", "--dist", "worksteal")
    assert [case["target"] for case in alone["discovery"]["cases"]] == ["engines:fixed", "lexical"] * 2
    assert list(alone["discovery"]["byTarget"]) == ["engines:fixed", "lexical"]
    assert without_times(spread)["discovery"] == alone["discovery"]


def test_with_workers_what_cannot_be_timed_is_no_reason_to_leave_the_baseline(gold, pytester):
    result = gold.run("--tooleval-snapshot", "out", "-n", "2")
    result.stdout.fnmatch_lines(["baseline refreshed: *"])
    assert "performance" not in read_result(pytester.path / BASELINE)


def mark_skipped(pytester):
    pytester.makeconftest(
        """
        import pytest
        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name == "a":
                    item.add_marker(pytest.mark.skip(reason="not today"))
        """
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-k", "read-a-text-file"], "1 of 9 items selected"),
        (["-k", "read-a-text-file", "-n", "2"], "1 of 9 items selected"),
        (["evals/fixtures"], "2 of 9 items selected"),
        (["evals/fixtures/a.json::a"], "1 of 9 items selected"),
        (["--deselect", "evals/fixtures/a.json::a"], "8 of 9 items selected"),
        (["--ignore", "evals/discovery"], "7 of 9 items selected"),
        (
            ["--tooleval-family", "tool_use", "--tooleval-family", "discovery"],
            "only tool_use, discovery was asked for",
        ),
    ],
)
def test_a_partial_run_leaves_the_baseline_alone(gold, pytester, arguments, reason):
    gold.run("--tooleval-snapshot", "out")
    before = (pytester.path / BASELINE).read_bytes(), (pytester.path / "out/BENCHMARKS.md").read_bytes()
    result = gold.run("--tooleval-snapshot", "out", *arguments)
    result.stdout.fnmatch_lines([f"baseline left alone: {reason}"])
    assert before == ((pytester.path / BASELINE).read_bytes(), (pytester.path / "out/BENCHMARKS.md").read_bytes())
    assert len(snapshots(pytester.path)) == 2


def test_a_family_that_the_ini_file_scopes_is_the_whole_suite(gold, pytester):
    pytester.makeini("[pytest]\ntooleval_family = discovery\n")
    gold.run("--tooleval-snapshot", "out").stdout.fnmatch_lines(["baseline refreshed: *"])


def test_a_failed_verdict_leaves_the_baseline_alone(gold, pytester):
    gold.missing("c")
    result = gold.run("--tooleval-snapshot", "out")
    result.stdout.fnmatch_lines(["baseline left alone: the verdict is fail"])
    assert not (pytester.path / "out/BENCHMARKS.md").exists()
    assert [read_result(path)["verdict"] for path in snapshots(pytester.path)] == ["fail"]


def test_a_miss_that_a_kept_gate_decides_about_is_part_of_a_baseline(gold, pytester):
    gold.missing("c")
    gold.thresholds(overall={"passRateMin": 0.5})
    gold.run("--tooleval-snapshot", "out").stdout.fnmatch_lines(["baseline refreshed: *"])
    assert read_result(pytester.path / BASELINE)["toolUse"]["byTarget"]["mock"]["passRate"] == 2 / 3


FLAKY = """
from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.mock import MockProvider
class Flaky(MockProvider):
    def reply(self, case, request):
        if case.id == "a":
            raise ProviderError("no route")
        return super().reply(case, request)
def pytest_tooleval_register_providers(providers):
    providers.add("flaky", lambda settings: Flaky())
"""


def test_an_errored_case_leaves_the_baseline_alone(gold, pytester):
    pytester.makeconftest(FLAKY)
    result = gold.run("--tooleval-snapshot", "out", "--provider", "flaky")
    result.stdout.fnmatch_lines(["baseline left alone: 1 item errored"])
    assert not (pytester.path / BASELINE).exists()


def test_a_skipped_case_leaves_the_baseline_alone(gold, pytester):
    mark_skipped(pytester)
    result = gold.run("--tooleval-snapshot", "out")
    result.stdout.fnmatch_lines(["baseline left alone: 1 item skipped: not today"])
    assert not (pytester.path / BASELINE).exists()


def test_a_broken_file_leaves_the_baseline_alone(gold, pytester):
    gold.write("fixtures/z-broken.json", "{")
    result = gold.run("--tooleval-snapshot", "out", "--continue-on-collection-errors")
    result.stdout.fnmatch_lines(["baseline left alone: files could not be loaded; files could not be collected"])
    result = gold.run("--tooleval-snapshot", "out", "evals/fixtures/a.json", "evals/fixtures/b.json")
    result.stdout.fnmatch_lines(["baseline left alone: 2 of 9 items selected; files could not be loaded"])
    assert not (pytester.path / BASELINE).exists()


def test_a_run_that_ends_early_leaves_the_baseline_alone(gold, pytester):
    pytester.makepyfile(test_first="def test_first(): assert 0")
    result = gold.run("--tooleval-snapshot", "out", "-x", "evals/fixtures", "test_first.py", "evals")
    result.stdout.fnmatch_lines(["baseline left alone: *"])
    assert not (pytester.path / BASELINE).exists()


def test_a_suite_that_was_not_collected_leaves_the_baseline_alone(gold, pytester):
    pytester.makeini("[pytest]\ntooleval_suites =\n    evals\n    more\n")
    (pytester.path / "more" / "fixtures").mkdir(parents=True)
    (pytester.path / "more/fixtures/x.json").write_text((gold.root / "fixtures/a.json").read_text())
    result = gold.run("--tooleval-snapshot", "out", "evals")
    result.stdout.fnmatch_lines(["baseline left alone: the suite more was not collected"])
    gold.run("--tooleval-snapshot", "out").stdout.fnmatch_lines(["baseline refreshed: *"])


def test_failures_of_other_tests_are_none_of_its_business(gold, pytester):
    pytester.makepyfile(test_other="def test_other(): assert 0")
    result = gold.run("--tooleval-snapshot", "out")
    result.assert_outcomes(passed=9, failed=1)
    result.stdout.fnmatch_lines(["baseline refreshed: *"])


def test_a_folder_that_cannot_be_written_to_is_one_line(gold, pytester):
    (pytester.path / "out").write_text("a file")
    result = gold.run("--tooleval-snapshot", "out")
    result.assert_outcomes(passed=9)
    (line,) = [line for line in result.outlines if "could not be written" in line]
    assert line.endswith("Z.json could not be written: Not a directory")
    result.stdout.no_fnmatch_line("*Traceback*")


def test_no_run_no_snapshot(gold, pytester):
    gold.run("--tooleval-snapshot", "out", "--collect-only")
    gold.run("--tooleval-snapshot", "out", "-k", "no_such_name")
    assert not (pytester.path / "out").exists()


@pytest.fixture
def regressed(gold, pytester):
    """A baseline, after which one case misses, one is gone, one is new."""
    gold.missing("was-bad")
    gold.passing("gone")
    gold.thresholds(overall={"passRateMin": 0})
    gold.run("--tooleval-snapshot", "out")
    gold.missing("b")
    gold.passing("was-bad")
    (gold.root / "fixtures/gone.json").unlink()
    gold.passing("new")
    return gold


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_regression_is_listed_first_and_new_and_vanished_cases_are_named(regressed, workers):
    result = regressed.run("--tooleval-baseline", BASELINE, *workers)
    start = next(i for i, line in enumerate(result.outlines) if f"= compared with {BASELINE} =" in line)
    assert result.outlines[start + 1 : start + 6] == [
        "7 cases in both: 1 regression, 0 worse, 1 better, 5 the same",
        "regression: evals/fixtures/b.json::b [mock]: passed -> missed, accuracy 1 -> 0, errors 0 -> 1: "
        "expected [list_dir]; called glob",
        "better: evals/fixtures/was-bad.json::was-bad [mock]: missed -> passed, accuracy 0 -> 1, errors 1 -> 0",
        "only in this run: 1 case: evals/fixtures/new.json::new [mock]",
        "only in the baseline: 1 case: evals/fixtures/gone.json::gone [mock]",
    ]


def test_the_comparison_stands_in_the_result_file(regressed):
    found = regressed.result("--tooleval-baseline", BASELINE)["comparison"]
    key = {"family": "tool_use", "target": "mock", "trial": 1}
    assert found["baseline"]["file"] == BASELINE
    assert (found["compared"], found["same"]) == (7, 5)
    assert [entry["id"] for entry in found["regressions"]] == ["b"]
    assert [entry["id"] for entry in found["better"]] == ["was-bad"]
    assert found["added"] == [{**key, "file": "evals/fixtures/new.json", "id": "new"}]
    assert found["vanished"] == [{**key, "file": "evals/fixtures/gone.json", "id": "gone"}]
    sections = list(dict.fromkeys(metric["section"] for metric in found["metrics"]))
    assert sections == ["toolUse", "discovery", "invocation", "ergonomics", "tokenEconomy", "performance", "cache"]


def with_gate(suite, most: Any) -> None:
    suite.write("thresholds.json", {"tool_use": {"overall": {"passRateMin": 0}}, "regressionsMax": most})


@pytest.mark.parametrize(("most", "exit_code", "workers"), [(0, 1, []), (1, 0, []), (0, 1, ["-n", "2"])])
def test_the_gate_on_regressions(regressed, pytester, most, exit_code, workers):
    with_gate(regressed, most)
    result = regressed.run("--tooleval-baseline", BASELINE, "--tooleval-json", "r.json", *workers)
    assert result.ret == exit_code
    gate = read_result(pytester.path / "r.json")["gates"][-1]
    assert {**gate, "detail": ""} == {
        "name": "regressions",
        "file": "evals/thresholds.json",
        "comparator": "max",
        "threshold": most,
        "actual": 1.0,
        "pass": not exit_code,
        "detail": "",
    }
    if exit_code:
        result.stdout.fnmatch_lines(["regressions is 1, expected at most 0; regressed: b*"])


def test_after_a_failed_gate_on_regressions_last_failed_runs_the_regression(regressed):
    with_gate(regressed, 0)
    regressed.run("--tooleval-baseline", BASELINE)
    result = regressed.run("--lf", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == ["evals/fixtures/b.json::b"]


def test_the_gate_without_a_baseline_is_skipped(regressed):
    with_gate(regressed, 0)
    result = regressed.run("-rs", "--tooleval-snapshot", "out")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "regressions *≤ 0 *- skipped: no baseline: *",
            "baseline refreshed: *",
            "SKIPPED * evals/thresholds.json:7: no baseline: give --tooleval-baseline FILE",
        ]
    )


def test_the_gate_needs_every_case_of_the_corpus(regressed):
    with_gate(regressed, 0)
    result = regressed.run("--tooleval-baseline", BASELINE, "-k", "new", "-rs")
    result.stdout.fnmatch_lines(["SKIPPED * not evaluated: 1 of 8 cases selected"])


def test_the_gate_excuses_no_miss(suite, pytester):
    suite.passing("a")
    suite.write("thresholds.json", {"regressionsMax": 5})
    suite.run("--tooleval-snapshot", "out")
    suite.missing("a")
    suite.run("--tooleval-baseline", BASELINE).assert_outcomes(passed=1, failed=1)


def test_the_gate_with_a_baseline_of_other_targets_has_no_data(gold, pytester):
    pytester.makeconftest(FLAKY.replace('case.id == "a"', "False"))
    gold.write("thresholds.json", {"regressionsMax": 0})
    gold.run("--tooleval-snapshot", "out", "evals/fixtures")
    (written,) = snapshots(pytester.path)
    result = gold.run("--provider", "flaky", "--tooleval-baseline", str(written))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "no data: the baseline holds no case of the corpus on the same target",
            "note: tool_use was measured on mock and is now on flaky",
            "note: no case stands in both: nothing is compared case by case",
        ]
    )


def test_each_corpus_has_its_own_gate(gold, pytester):
    gold.write("sub/fixtures/s.json", json.loads((gold.root / "fixtures/a.json").read_text()))
    for name in ("thresholds.json", "sub/thresholds.json"):
        gold.write(name, {"regressionsMax": 0, "tool_use": {"passRateMin": 0}})
    gold.run("--tooleval-snapshot", "out")
    gold.write("sub/fixtures/s.json", json.loads(gold.missing("scratch").read_text()))
    (gold.root / "fixtures/scratch.json").unlink()
    gates = gold.result("--tooleval-baseline", BASELINE)["gates"]
    found = {gate["file"]: gate["pass"] for gate in gates if gate["name"] == "regressions"}
    assert found == {"evals/thresholds.json": True, "evals/sub/thresholds.json": False}


def test_an_errored_case_makes_the_gate_unmeasured(gold, pytester):
    pytester.makeconftest(FLAKY)
    gold.write("thresholds.json", {"regressionsMax": 0})
    gold.run("--tooleval-json", "base.json", "--provider", "flaky")
    result = gold.run("--provider", "flaky", "--tooleval-baseline", "base.json")
    result.stdout.fnmatch_lines(["not measured: 5 of 6 cases measured", "note: the baseline's own verdict is fail"])


def test_with_workers_the_timing_that_is_skipped_does_not_skip_the_gate(gold):
    gold.write("thresholds.json", {"regressionsMax": 0})
    gold.run("--tooleval-snapshot", "out")
    gates = gold.result("--tooleval-baseline", BASELINE, "-n", "2")["gates"]
    assert [(gate["name"], gate["pass"], gate["actual"]) for gate in gates] == [("regressions", True, 0.0)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory; --tooleval-snapshot DIR writes one"),
        ("{", "is not JSON: line 1: *"),
        ('{"schema": "tooleval/v0"}', "is a result file of the schema \"tooleval/v0\", expected 'tooleval/v1'; *"),
        ('{"schema": "tooleval/v1"}', "is a damaged result file: at its top: the key 'generatedAt' is missing *"),
    ],
)
def test_a_wrong_baseline_is_one_usage_error(suite, pytester, content, message):
    if content is not None:
        (pytester.path / "base.json").write_text(content)
    suite.passing("a")
    for workers in ([], ["-n", "2"]):
        result = suite.run("--tooleval-baseline", "base.json", *workers)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        lines = [line for line in (*result.outlines, *result.errlines) if line]
        assert len(lines) == 1
    result.stderr.fnmatch_lines([f"ERROR: tooleval: the baseline *base.json {message}"])


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (-1, "at /regressionsMax: found -1; expected at least 0"),
        (0.5, "at /regressionsMax: found 0.5; expected a whole number"),
        (True, "at /regressionsMax: found true; expected a whole number"),
        ("0", 'at /regressionsMax: found "0"; expected a whole number'),
    ],
)
def test_a_wrong_threshold_is_told(suite, most, message):
    suite.passing("a")
    suite.write("thresholds.json", {"regressionsMax": most})
    suite.run().stdout.fnmatch_lines([f"evals/thresholds.json:2 {message}"])


def test_a_misspelt_gate_is_told(suite):
    suite.passing("a")
    suite.write("thresholds.json", {"regresionMax": 1})
    suite.run().stdout.fnmatch_lines(["*unknown key 'regresionMax' (did you mean 'regressionsMax'[?])"])


def test_paths_of_the_ini_file_are_relative_to_the_root_folder(gold, pytester, monkeypatch):
    pytester.makeini(f"[pytest]\ntooleval_snapshot = out\ntooleval_baseline = {BASELINE}\n")
    gold.run("--tooleval-baseline", "nope.json", "-o", "tooleval_snapshot=out")
    assert gold.run().ret == pytest.ExitCode.USAGE_ERROR
    gold.run("-o", "tooleval_baseline=").stdout.fnmatch_lines(["baseline refreshed: *"])
    monkeypatch.chdir(gold.root)
    result = gold.run()
    result.stdout.fnmatch_lines([f"*= compared with {BASELINE} =*", "6 cases in both: 0 regressions, *"])


def test_nan_is_never_written(suite, pytester):
    pytester.makeconftest(
        """
        from pytest_tooleval.transcript import AssistantMessage, ToolCall
        class Odd:
            def cannot_run(self, case): return None
            def close(self): pass
            def reply(self, case, request):
                if len(request.messages) == 1:
                    return AssistantMessage(calls=(ToolCall("1", "list_dir", {"x": float("nan"), "y": float("inf")}),))
                return AssistantMessage("NaN")
        def pytest_tooleval_register_providers(providers):
            providers.add("odd", lambda settings: Odd())
        """
    )
    suite.fixture("a", expected=["list_dir"])
    suite.run("--provider", "odd", "--tooleval-snapshot", "out")
    (written,) = snapshots(pytester.path)
    case = read_result(written)["toolUse"]["cases"][0]
    assert case["trace"][0]["arguments"] == {"x": None, "y": None}
    assert case["answer"] == "NaN"
