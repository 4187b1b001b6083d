"""Result files that somebody changed: `tooleval merge` takes them or says what is wrong, and never fails otherwise."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values
from parts import ORIGIN, TIME, case, gate, planned, whole_run

from pytest_tooleval.cli.main import main
from pytest_tooleval.gates.evaluate import evaluate_gates
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.result_file import document_of
from pytest_tooleval.reports.suite_result import SuiteResult

GOLD_RECORDS: dict[str, dict[str, Any]] = {
    "discovery": {
        "intent": "read",
        "category": "lexical",
        "acceptable": ["a.b"],
        "pass": True,
        "rank": 1,
        "expectedRank": 1.0,
        "decision": "use",
        "confidence": 0.9,
        "wrongServer": None,
        "top": ["a.b"],
        "hygiene": "too easy",
        "notes": ["odd"],
    },
    "invocation": {
        "toolRef": "a.b",
        "pass": True,
        "validArguments": True,
        "firstCallOk": True,
        "repaired": None,
        "schemaErrorSurfaced": None,
        "offlineHandled": None,
        "clearErrors": [True],
        "errorType": None,
        "secondErrorType": None,
    },
    "ergonomics": {
        "pass": True,
        "decisionKnown": True,
        "instructive": True,
        "errorDisposed": None,
        "withinBudget": True,
        "parity": True,
    },
    "tokens": {
        "pass": True,
        "estimator": "chars/4",
        "directStartupTokens": 9,
        "brokerStartupTokens": 3,
        "startupReductionRatio": 0.5,
        "directTokensToSuccess": 20,
        "brokerTokensToSuccess": None,
    },
    "cache": {
        "pass": True,
        "servedFromCache": 1,
        "cacheableOps": 2,
        "redundantCallReduction": 0.5,
        "tokensAvoided": 7,
    },
    "performance": {"pass": True, "lexical": {"n": 1, "p50Micros": 2.0, "p95Micros": 3.0, "opsPerSec": None}},
}


def documented() -> dict[str, Any]:
    """Return the result file of a run with every family."""
    tool_use = [
        case("c1", "passed", "m", 1, "easy"),
        case("c2", "missed"),
        case("c3", "error"),
        case("c4", "skipped"),
    ]
    gold = [
        Measurement(family, f"b::{family}", "b", "f", 0, family, "t", tags=("lexical",), record=record)
        for family, record in GOLD_RECORDS.items()
    ]
    whole = whole_run(tool_use)
    plan = planned(tool_use, tool_use, [gate(), gate("mustPass", 1, ids=("c1",)), gate("tokens", 5, "easy")], whole)
    everything = (*tool_use, *gold)
    results = tuple(evaluate_gates(plan, everything, 1.0))
    result = SuiteResult(everything, results, ("m",), 10, gold_targets=("t",), planned=tuple(plan), whole=whole)
    return json.loads(json.dumps(document_of(result, TIME, ORIGIN)))


DOCUMENT = documented()


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in entries:
        yield from paths(member, (*path, key))


PATHS = list(paths(DOCUMENT))
ODD = st.sampled_from([None, True, -1, 0, 1e300, 10**400, "", "x", [], {}, [[]], {"x": {}}]) | json_values()


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return the document with another value at a path, or without what is there."""
    document = copy.deepcopy(DOCUMENT)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    if value is paths:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


def merged(document: dict[str, Any], folder: Path) -> int:
    (folder / "a.json").write_text(json.dumps(document))
    return main(["merge", str(folder / "a.json"), "-o", str(folder / "out.json")])


def test_the_document_itself_is_taken(tmp_path):
    assert merged(DOCUMENT, tmp_path) == 1
    assert json.loads((tmp_path / "out.json").read_text())["toolUse"] == DOCUMENT["toolUse"]


@fuzzed(100)
@given(st.sampled_from(PATHS), st.just(paths) | ODD)
def test_a_changed_file_is_taken_or_refused(path, value):
    with tempfile.TemporaryDirectory() as name:
        assert merged(changed(path, value), Path(name)) in {0, 1, 2}
