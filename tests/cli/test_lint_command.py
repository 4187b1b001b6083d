"""`tooleval lint`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tooleval.broker.lint import RULES
from pytest_tooleval.cli import lint
from pytest_tooleval.cli.main import main

Run = Callable[..., subprocess.CompletedProcess[str]]

TOOLS: list[dict[str, Any]] = [
    {"name": "roll.dice", "description": "Roll dice", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "toss", "inputSchema": {"type": "object"}},
]


@pytest.fixture
def catalog(project: Path) -> Path:
    path = project / "dice.json"
    path.write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    return path


def test_findings_are_told_line_by_line(tooleval: Run, catalog: Path) -> None:
    finished = tooleval("lint", "dice.json")

    assert (finished.returncode, finished.stderr) == (1, "")
    *lines, total = finished.stdout.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["dice.roll.dice", "name-refused"],
        ["dice.toss", "description-missing"],
        ["dice.toss", "schema-without-properties"],
    ]
    assert total == (
        "2 tools on 1 server: 3 findings in 2 tools: "
        "description-missing 1, name-refused 1, schema-without-properties 1"
    )


def test_json(capsys: pytest.CaptureFixture[str], catalog: Path) -> None:
    assert lint.run([str(catalog), "--format", "json"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert (told["tools"], told["servers"]) == (2, 1)
    assert told["counts"] == {"description-missing": 1, "name-refused": 1, "schema-without-properties": 1}
    assert {key for finding in told["findings"] for key in finding} == {"rule", "toolRef", "message", "fix"}


def test_rules_are_left_out(capsys: pytest.CaptureFixture[str], catalog: Path) -> None:
    left_out = ["name-refused", "description-missing", "schema-without-properties"]
    options = [word for rule in left_out for word in ("--disable", rule)]

    assert lint.run([str(catalog), *options]) == 0
    assert capsys.readouterr().out == "2 tools on 1 server: nothing found\n"


def test_several_files_are_one_catalog(capsys: pytest.CaptureFixture[str], project: Path, catalog: Path) -> None:
    other = project / "more" / "coins.json"
    other.parent.mkdir()
    other.write_text(json.dumps({"tools": TOOLS[1:]}), encoding="utf-8")

    lint.run([str(catalog), str(other.parent), "--format", "json"])

    told = json.loads(capsys.readouterr().out)
    assert told["servers"] == 2
    assert told["counts"]["name-on-several-servers"] == 2


def test_the_budget_is_an_option(capsys: pytest.CaptureFixture[str], catalog: Path) -> None:
    lint.run([str(catalog), "--token-budget", "5", "--token-estimator", "chars/4"])
    assert "definition-too-large 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "FILE"),
        (["missing.json"], "missing.json: cannot be read"),
        (["dice.json", "--disable", "name-refusd"], "did you mean 'name-refused'?"),
        (["dice.json", "--token-budget", "0"], "'0' is not a whole number of at least 1"),
        (["dice.json", "--token-estimator", "words"], "no token estimator 'words'"),
        (["dice.json", "--format", "yaml"], "--format"),
        (["."], "holds no *.json"),
    ],
)
def test_wrong_usage_is_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    project: Path,
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(project)
    if arguments != ["."]:
        (project / "dice.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    try:
        code = main(["lint", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)

    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert expected in told.err


def test_every_rule_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lint.run(["--help"])
    told = capsys.readouterr().out
    for rule, what in RULES.items():
        assert f"  {rule} " in told
        assert what in told


def test_control_characters_are_spelled_out(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    path = project / "odd.json"
    path.write_text(json.dumps({"tools": [{"name": "a\u001b[31m", "description": "x"}]}), encoding="utf-8")
    lint.run([str(path)])
    assert "\x1b" not in capsys.readouterr().out
