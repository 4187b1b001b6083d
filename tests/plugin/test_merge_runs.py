"""A suite that is run in parts, whose result files `tooleval merge` puts together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_tooleval.cli.main import main

IMPORTED_ONCE = np

VOLATILE = ("generatedAt", "latencySeconds", "performance")
CATALOG = {
    "version": 3,
    "description": "Files.",
    "servers": [{"id": "files", "status": "online"}],
    "tools": [
        {
            "toolRef": f"files.{name}",
            "serverId": "files",
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "readOnly": name == "read_file",
        }
        for name, description in (("read_file", "Read a text file."), ("write_file", "Write a text file."))
    ],
}
ROWS = [
    {"intent": "read a text file", "category": "lexical", "acceptable": ["files.read_file"], "rationale": "r"},
    {"intent": "boil an egg", "category": "no_match", "acceptable": [], "rationale": "r"},
    {"intent": "write a text file", "category": "lexical", "acceptable": ["files.write_file"], "rationale": "r"},
]
SCENARIO = {"name": "s", "toolRef": "files.read_file", "arguments": {"path": "x"}, "expectedOutcome": "success"}


@pytest.fixture
def big(suite):
    """A suite of two corpora with gates, misses, a case without a script, and gold sets."""
    for number in range(4):
        suite.passing(f"good{number}", tags=["easy"])
    suite.missing("bad", tags=["easy"])
    suite.missing("worse")
    suite.fixture("scriptless", tags=["none"])
    suite.thresholds(easy={"passRateMin": 0.7}, overall={"must_pass": ["good1"]}, none={"passRateMin": 1})
    suite.write("b/catalog/tools.json", CATALOG)
    suite.write("b/discovery/rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in ROWS))
    suite.write("b/invocation/s.json", {"version": 1, "scenarios": [SCENARIO | {"rationale": "r"}]})
    suite.write(
        "b/thresholds.json",
        {"discovery": {"overall": {"top1Min": 0.5}}, "cache": {"redundantCallReductionMin": 0.1}},
    )
    return suite


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in VOLATILE}
    return [without_times(member) for member in value] if isinstance(value, list) else value


def merged(folder: Path, *names: str) -> tuple[int, dict[str, Any]]:
    exit_code = main(["merge", *(str(folder / name) for name in names), "-o", str(folder / "merged.json")])
    return exit_code, json.loads((folder / "merged.json").read_text())


@pytest.mark.parametrize("algorithm", ["duration_based_chunks", "least_duration"])
@pytest.mark.parametrize(("splits", "options"), [(2, []), (5, ["--tooleval-trials", "2"]), (2, ["-n", "2"])])
def test_the_parts_of_a_split_run_give_the_whole_run(big, pytester, algorithm, splits, options):
    pytest.importorskip("pytest_split")
    if "-n" in options:
        pytest.importorskip("xdist")
    whole = big.result(*options)
    names = [f"part-{group}.json" for group in range(1, splits + 1)]
    for group, name in enumerate(names, 1):
        split = ("--splits", str(splits), "--group", str(group), "--splitting-algorithm", algorithm)
        big.run(*split, "--tooleval-defer-gates", "--tooleval-json", name, *options)
    exit_code, document = merged(pytester.path, *reversed(names))
    assert without_times(document) == without_times(whole)
    assert exit_code == 1
    assert {gate["name"]: gate["pass"] for gate in document["gates"]} == {
        "tool_use.easy.passRate[mock]": True,
        "tool_use.overall.mustPass[mock]": True,
        "tool_use.none.passRate[mock]": False,
        "discovery.overall.top1": True,
        "cache.redundantCallReduction": True,
    }


def test_a_run_whose_gates_are_kept_passes(suite, pytester):
    for name in ("lamp", "desk", "sofa"):
        suite.passing(name)
    suite.missing("vase")
    suite.thresholds(overall={"passRateMin": 0.7})
    for number, keyword in enumerate(("lamp or vase", "desk or sofa")):
        result = suite.run("-k", keyword, "--tooleval-defer-gates", "--tooleval-json", f"{number}.json")
        assert result.ret == 0
    exit_code, document = merged(pytester.path, "0.json", "1.json")
    assert (exit_code, document["verdict"]) == (0, "pass")
    assert without_times(document) == without_times(suite.result())


def test_a_missing_part_is_noticed(suite, pytester, capsys):
    suite.passing("lamp")
    suite.passing("desk")
    suite.run("-k", "lamp", "--tooleval-json", "a.json")
    exit_code, document = merged(pytester.path, "a.json")
    assert (exit_code, document["verdict"]) == (1, "fail")
    assert "not whole: 1 of 2 items are in these files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tooleval-temperature", "0.5"], "temperature: none and 0.5"),
        (["--provider", "mock", "--tooleval-trials", "2"], "trials: 1 and 2"),
        (["--tooleval-strict"], "strict: no and yes"),
        (["--tooleval-max-turns", "3"], "max-turns: 10 and 3"),
    ],
)
def test_parts_with_other_settings_are_refused(suite, pytester, capsys, options, said):
    suite.passing("lamp")
    suite.passing("desk")
    suite.run("-k", "lamp", "--tooleval-json", "a.json")
    suite.run("-k", "desk", "--tooleval-json", "b.json", *options)
    assert main(["merge", str(pytester.path / "a.json"), str(pytester.path / "b.json")]) == 2
    assert f"  {said}\n" in capsys.readouterr().err


def test_parts_of_suites_that_changed_are_refused(suite, pytester, capsys):
    suite.passing("lamp")
    suite.passing("desk")
    suite.run("-k", "lamp", "--tooleval-json", "a.json")
    suite.passing("desk", task="Look around once more.")
    suite.run("-k", "desk", "--tooleval-json", "b.json")
    assert main(["merge", str(pytester.path / "a.json"), str(pytester.path / "b.json")]) == 2
    assert "the cases or the catalog of evals are not the same" in capsys.readouterr().err


def test_options_of_output_may_differ(suite, pytester):
    suite.passing("lamp")
    suite.passing("desk")
    suite.run("-k", "lamp", "--tooleval-json", "a.json", "--tooleval-retries", "0", "--tooleval-concurrency", "2")
    suite.run("-k", "desk", "--tooleval-json", "b.json", "--tooleval-snapshot", "out")
    assert merged(pytester.path, "a.json", "b.json")[0] == 0


def test_secrets_in_options_are_not_in_the_plan(suite, pytester):
    suite.passing("lamp")
    text = suite.run("--tooleval-json", "a.json", "--provider-url", "http://me:pa55word@localhost:1/v1")
    assert text.ret == 0
    assert "pa55word" not in (pytester.path / "a.json").read_text()
