from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from fuzzing import check_told, fuzzed, in_time, mutations, spoilt_texts
from hypothesis import given
from hypothesis import strategies as st
from sample_result import CATALOG, ERGONOMICS, ROWS, SCENARIOS

from pytest_tooleval.broker.mapping import load_mapping
from pytest_tooleval.cases.catalog import catalog_document, load_catalog
from pytest_tooleval.cases.gold_files import load_discovery, load_ergonomics, load_invocation, load_workloads
from pytest_tooleval.cli import main as cli
from pytest_tooleval.errors import CaseError
from pytest_tooleval.gates.thresholds import load_thresholds

SHOWN = Path("evals/x.json")
REFS = ("notes.search_notes", "notes.delete_note")
REPAIR = {
    "name": "r",
    "toolRef": REFS[0],
    "arguments": {},
    "expectedOutcome": "repair",
    "expectedError": "ARGUMENT_VALIDATION_FAILED",
    "corrected": {"query": "x"},
    "liveSchema": {"type": "object"},
    "rationale": "r",
}
WORKLOADS = {
    "version": 1,
    "tokens": {"query": "a", "toolRef": REFS[0], "arguments": {"query": "x"}},
    "performance": {"queries": ["a b"], "iterations": 5},
    "cache": {"calls": [{"operation": "find", "query": "a"}, {"operation": "describe", "toolRef": REFS[0]}]},
}
TOOLS_LIST = {
    "server": "notes",
    "tools": [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}],
}
MAPPING = {
    "refs": "{server}__{name}",
    "find": {
        "tool": "s",
        "query": "q",
        "results": "/tools",
        "ref": "/name",
        "decisions": {"none": "no_good_match"},
    },
    "call": {"tool": "run", "ref": "name", "arguments": "input"},
}
THRESHOLDS = {
    "version": 1,
    "tool_use": {"overall": {"passRateMin": 0.5, "tokensMax": 10}, "smoke": {"must_pass": ["a"]}},
    "discovery": {"overall": {"top1Min": 0.5}, "semantic": {"top1Min": 0.1, "requiresSemanticLeg": True}},
    "regressionsMax": 0,
}
LOADERS: dict[str, tuple[Callable[[Path], Any], list[Any]]] = {
    "invocation": (
        lambda path: load_invocation(path, SHOWN, REFS),
        [SCENARIOS, {"version": 1, "scenarios": [REPAIR]}],
    ),
    "ergonomics": (lambda path: load_ergonomics(path, SHOWN, REFS), [ERGONOMICS]),
    "workloads": (lambda path: load_workloads(path, SHOWN, REFS), [WORKLOADS]),
    "catalog": (lambda path: catalog_document(load_catalog(path, SHOWN)), [CATALOG, TOOLS_LIST]),
    "mapping": (lambda path: load_mapping(path, SHOWN), [MAPPING]),
    "thresholds": (lambda path: load_thresholds(path, SHOWN, "."), [THRESHOLDS]),
}


def check_loads(load: Callable[[Path], Any], path: Path) -> None:
    with in_time():
        try:
            load(path)
        except CaseError as error:
            check_told(error, most=2_000_000)


@pytest.mark.parametrize("kind", LOADERS)
@fuzzed(30)
@given(data=st.data())
def test_any_file_is_loaded_or_told(
    kind: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    load, values = LOADERS[kind]
    path = tmp_path_factory.getbasetemp() / f"fuzz-{kind}.json"
    valid = st.sampled_from(values)
    changed = mutations(valid).map(json.dumps).map(str.encode)
    path.write_bytes(data.draw(changed | changed | spoilt_texts(valid)))
    check_loads(load, path)


def test_what_is_changed_is_valid_before(tmp_path: Path) -> None:
    for load, values in LOADERS.values():
        for value in values:
            path = tmp_path / "valid.json"
            path.write_text(json.dumps(value))
            try:
                load(path)
            except CaseError as error:
                pytest.fail(str(error))


@fuzzed(60)
@given(
    st.lists(
        mutations(st.sampled_from(ROWS)).map(json.dumps).map(str.encode) | spoilt_texts(st.sampled_from(ROWS)),
        max_size=3,
    )
)
def test_any_rows_are_loaded_or_told(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-rows.jsonl"
    path.write_bytes(b"\n".join(lines))
    check_loads(lambda path: load_discovery(path, SHOWN, REFS), path)


COMMANDS = (
    ["lint", "FILE"],
    ["find", "--catalog", "FILE", "search my notes"],
    ["describe", "--catalog", "FILE", REFS[0]],
    ["call", "--catalog", "FILE", REFS[0], "--arguments", '{"query": "a"}'],
)


@fuzzed(30)
@given(mutations(st.sampled_from([CATALOG, TOOLS_LIST])), st.sampled_from(COMMANDS))
def test_commands_say_what_is_wrong_with_any_catalog(
    tmp_path_factory: pytest.TempPathFactory, value: Any, command: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-commands.json"
    path.write_text(json.dumps(value))
    said = io.StringIO()
    with in_time(), redirect_stdout(said), redirect_stderr(said):
        code = cli.main([str(path) if word == "FILE" else word for word in command])
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in said.getvalue()
