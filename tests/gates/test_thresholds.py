from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tooleval.errors import CaseError
from pytest_tooleval.gates.thresholds import Gate, load_thresholds, unknown_ids

SHOWN = Path("evals/thresholds.json")


@pytest.fixture
def load(tmp_path):
    """Load the gates of a threshold file with the given text or value."""

    def loaded(content: object) -> list[Gate]:
        path = tmp_path / "thresholds.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return load_thresholds(path, SHOWN, "evals")

    return loaded


def gate(
    scope: str, metric: str, comparator: str, threshold: float, line: int = 1, ids: tuple[str, ...] = ()
) -> Gate:
    return Gate("tool_use", scope, metric, comparator, threshold, "evals", "evals/thresholds.json", line, ids)


def test_every_gate_in_the_order_of_the_file(load):
    text = """{
      "version": 1,
      "_note": "x",
      "tool_use": {
        "_note": "y",
        "accuracyMin": 0.5,
        "passRateMin": 1,
        "smoke": {"redundantMax": 0,
                  "_note": "z",
                  "errorsMax": 2.5},
        "must_pass": ["a", "b"],
        "slow": {"tokensMax": 1000, "must_pass": ["c"]}
      }
    }"""

    assert load(text) == [
        gate("overall", "accuracy", "min", 0.5, 6),
        gate("overall", "passRate", "min", 1, 7),
        gate("overall", "mustPass", "min", 2, 11, ("a", "b")),
        gate("smoke", "redundant", "max", 0, 8),
        gate("smoke", "errors", "max", 2.5, 10),
        gate("slow", "tokens", "max", 1000, 12),
        gate("slow", "mustPass", "min", 1, 12, ("c",)),
    ]


def test_overall_is_a_scope_of_its_own_name(load):
    assert load({"tool_use": {"overall": {"passRateMin": 0.5}}}) == [gate("overall", "passRate", "min", 0.5)]
    assert gate("overall", "passRate", "min", 0.5).name == "tool_use.overall.passRate"


@pytest.mark.parametrize(
    "value", [{}, {"tool_use": {}}, {"tool_use": {"smoke": {}}}, {"_note": [1], "$schema": "x"}]
)
def test_files_without_a_gate(load, value):
    assert load(value) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", ":1: found a list ([]); expected an object with thresholds"),
        ('[{"tool_use": {}}]', ':1: found a list ([{"tool_use": {}}]); expected an object with thresholds'),
        ("5", ":1: found 5; expected an object with thresholds"),
        ("", ":1: is empty; expected a JSON object or a list of objects"),
        ('{"tool_use": {"passRateMin": NaN}}', ":1: is not strict JSON: NaN is not a JSON number"),
        ('{"tool_use":\n{"passRateMin": 85}}', ":2 at /tool_use/passRateMin: found 85; expected at most 1"),
        ('{"tool_use": {"redundantMax": -1}}', ":1 at /tool_use/redundantMax: found -1; expected at least 0"),
        ('{"tool_use": {"accuracyMin": true}}', ":1 at /tool_use/accuracyMin: found true; expected a number"),
        ('{"tool_use": {"accuracyMin": "0.5"}}', ':1 at /tool_use/accuracyMin: found "0.5"; expected a number'),
        ('{"version": 2}', ":1 at /version: found 2; expected 1, the version of this format"),
        (
            r'{"tool_use": {"no tag": {"passRateMin": 1}}}',
            ":1 at /tool_use/no tag: 'no tag' can be no tag: expected a letter, followed by letters, digits and _ . + -",
        ),
        ('{"tooluse": {}}', ":1 at /tooluse: unknown key 'tooluse' (did you mean 'tool_use'?)"),
        (
            '{"tool_use": {"passRate": 0.5}}',
            ":1 at /tool_use/passRate: unknown gate 'passRate' (did you mean 'passRateMin'?); the gates of a tag are an object",
        ),
        (
            '{"tool_use": {"smoke": 0.5}}',
            (
                ":1 at /tool_use/smoke: unknown gate 'smoke'; known are: accuracyMin, passRateMin, redundantMax, errorsMax, "
                "tokensMax, must_pass; the gates of a tag are an object"
            ),
        ),
        (
            '{"tool_use": {"smoke":\n{"pasRateMin": 0.5}}}',
            ":2 at /tool_use/smoke/pasRateMin: unknown key 'pasRateMin' (did you mean 'passRateMin'?)",
        ),
        (
            '{"tool_use": {"must_pass": []}}',
            ":1 at /tool_use/must_pass: is empty (a list ([])) and so says nothing: fill it or leave it out",
        ),
        (
            '{"tool_use": {"must_pass": ["a", "a"]}}',
            ':1 at /tool_use/must_pass: found a list (["a", "a"]); each name may stand only once',
        ),
        (
            '{"tool_use": {"passRateMin": 0.5,\n"overall": {"errorsMax": 1,\n"passRateMin": 0.6}}}',
            ":3 at /tool_use/overall/passRateMin: 'passRateMin' stands beside 'overall' as well; keep one of them",
        ),
    ],
)
def test_a_file_that_is_refused(load, content, message):
    with pytest.raises(CaseError) as caught:
        load(content)
    assert str(caught.value) == f"{SHOWN}{message}"


def test_every_fault_is_reported(load):
    with pytest.raises(CaseError) as caught:
        load({"version": 3, "tool_use": {"accuracyMin": 2, "smoke": {"x": 1, "errorsMax": "0"}}})
    assert [problem.pointer for problem in caught.value.problems] == [
        "/version",
        "/tool_use/accuracyMin",
        "/tool_use/smoke/x",
        "/tool_use/smoke/errorsMax",
    ]


GOLD_TEXT = """{
  "discovery": {
    "_note": "x",
    "overall": {"top1Min": 0.5, "_why": "y",
                "mrrMin": 0.25},
    "semantic": {"top3Min": 0.4, "requiresSemanticLeg": true},
    "lexical": {"requiresSemanticLeg": false, "top1Min": 1},
    "wrong_server": {"wrongServerRateMax": 0},
    "ambiguous": {"_why": "tracked"},
    "no_match": {}
  },
  "invocation": {"firstCallSuccessMin": 1, "errorClarityMin": 0.9},
  "ergonomics": {"parityRateMin": 1},
  "tokens": {"startupReductionMin": 0.5},
  "cache": {}
}"""


def gold_gate(
    family: str, scope: str, metric: str, comparator: str, threshold: float, line: int, **keys: bool
) -> Gate:
    return Gate(family, scope, metric, comparator, threshold, "evals", "evals/thresholds.json", line, **keys)


def test_the_gates_of_gold_sets_and_the_scopes_that_are_only_tracked(load):
    gates = load(GOLD_TEXT)

    assert gates == [
        gold_gate("discovery", "overall", "top1", "min", 0.5, 4),
        gold_gate("discovery", "overall", "mrr", "min", 0.25, 5),
        gold_gate("discovery", "semantic", "top3", "min", 0.4, 6, requires_semantic_leg=True),
        gold_gate("discovery", "lexical", "top1", "min", 1, 7),
        gold_gate("discovery", "wrong_server", "wrongServerRate", "max", 0, 8),
        gold_gate("discovery", "ambiguous", "", "min", 0, 9),
        gold_gate("discovery", "no_match", "", "min", 0, 10),
        gold_gate("invocation", "overall", "firstCallSuccess", "min", 1, 12),
        gold_gate("invocation", "overall", "errorClarity", "min", 0.9, 12),
        gold_gate("ergonomics", "overall", "parityRate", "min", 1, 13),
        gold_gate("tokens", "overall", "startupReduction", "min", 0.5, 14),
        gold_gate("cache", "overall", "", "min", 0, 15),
    ]
    assert [gate.name for gate in gates if gate.tracked_only] == [
        "discovery.ambiguous.",
        "discovery.no_match.",
        "cache.",
    ]
    assert [gate.name for gate in gates if not gate.tracked_only] == [
        "discovery.overall.top1",
        "discovery.overall.mrr",
        "discovery.semantic.top3",
        "discovery.lexical.top1",
        "discovery.wrong_server.wrongServerRate",
        "invocation.firstCallSuccess",
        "invocation.errorClarity",
        "ergonomics.parityRate",
        "tokens.startupReduction",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"discovery": {"overall":\n{"top1min": 0.5}}}',
            ":2 at /discovery/overall/top1min: unknown key 'top1min' (did you mean 'top1Min'?)",
        ),
        (
            '{"discovery": {"lexcal": {}}}',
            ":1 at /discovery/lexcal: unknown key 'lexcal' (did you mean 'lexical'?)",
        ),
        (
            '{"invocation": {"firstCallSucessMin": 1}}',
            ":1 at /invocation/firstCallSucessMin: unknown key 'firstCallSucessMin' (did you mean 'firstCallSuccessMin'?)",
        ),
        (
            '{"discovry": {}}',
            ":1 at /discovry: unknown key 'discovry' (did you mean 'discovery'?)",
        ),
        (
            '{"discovery": {"overall": {"top1Min": "0.5"}}}',
            ':1 at /discovery/overall/top1Min: found "0.5"; expected a number',
        ),
        (
            '{"discovery": {"overall": {"top1Min": true}}}',
            ":1 at /discovery/overall/top1Min: found true; expected a number",
        ),
        (
            '{"discovery": {"overall": {"top1Min": 64}}}',
            ":1 at /discovery/overall/top1Min: found 64; expected at most 1",
        ),
        (
            '{"discovery": {"semantic": {"requiresSemanticLeg": "yes"}}}',
            ':1 at /discovery/semantic/requiresSemanticLeg: found "yes"; expected true or false',
        ),
        ('{"discovery": {"overall": 0.5}}', ":1 at /discovery/overall: found 0.5; expected an object"),
        ('{"tokens": 0.5}', ":1 at /tokens: found 0.5; expected an object"),
        ('{"version": 2}', ":1 at /version: found 2; expected 1, the version of this format"),
    ],
)
def test_gold_gates_that_are_refused(load, content, message):
    with pytest.raises(CaseError) as caught:
        load(content)
    assert str(caught.value) == f"{SHOWN}{message}"


def test_ids_that_no_case_has():
    gates = [
        gate("overall", "mustPass", "min", 3, 7, ("grep-symbol", "grep-symbl", "zzz")),
        gate("smoke", "errors", "max", 1),
    ]

    assert [str(problem) for problem in unknown_ids(gates, iter(["grep-symbol", "list-directory"]))] == [
        f"{SHOWN}:7: must_pass names 'grep-symbl', and there is no such case (did you mean 'grep-symbol'?)",
        f"{SHOWN}:7: must_pass names 'zzz', and there is no such case",
    ]


def test_a_gate_survives_a_process_boundary():
    sent = gate("smoke", "mustPass", "min", 2, 3, ("a", "b"))
    assert Gate.from_plain(json.loads(json.dumps(sent.to_plain()))) == sent
    semantic = gold_gate("discovery", "semantic", "top1", "min", 0.5, 2, requires_semantic_leg=True)
    assert Gate.from_plain(json.loads(json.dumps(semantic.to_plain()))) == semantic
    assert type(sent.to_plain()["ids"]) is list
