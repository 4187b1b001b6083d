"""The parts of a run put together say what the whole run says."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import case, gate, run_document, whole_run

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.reports.merge import Baseline, baseline_of, merge, merged_version, read_part
from pytest_tooleval.reports.result_file import json_text
from pytest_tooleval.reports.whole_run import WholeCorpus

GATES = [
    gate(),
    gate("accuracy", 0.9, "easy"),
    gate("mustPass", 1, ids=("c1",)),
    gate("tokens", 5, "none"),
]


class Files:
    """Writes documents as files and reads them back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def part(self, document: dict, name: str = ""):
        self._count += 1
        path = self._folder / (name or f"part-{self._count}.json")
        path.write_text(json_text(document), encoding="utf-8")
        return read_part(path)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


CASES = [
    case("c1"),
    case("c2", "missed"),
    case("c3", "passed", "m", 1, "easy"),
    case("c4", "missed", "m", 1, "easy"),
]


def split(every, *groups, gates=GATES, **more):
    """Return a document for each group of positions, made as shards are."""
    return [run_document(every, [every[i] for i in group], gates, defer=True, **more) for group in groups]


def test_the_parts_give_the_whole_run(files):
    merged = merge([files.part(document) for document in split(CASES, [0, 1], [2, 3])])
    assert merged.document == run_document(CASES, CASES, GATES)
    assert [record["pass"] for record in merged.document["gates"]] == [True, False, True, False]
    assert merged.document["toolUse"]["byTarget"]["m"]["passRate"] == 0.5


VERDICTS = st.sampled_from(["passed", "missed", "missed", "error", "skipped"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_however_a_run_is_split_its_parts_give_the_same(tmp_path_factory, data):
    trials = data.draw(st.integers(1, 2), label="trials")
    ids = [f"c{number}" for number in range(1, data.draw(st.integers(1, 4), label="cases") + 1)]
    tags = {name: data.draw(st.sampled_from([(), ("easy",)])) for name in ids}
    skipped = {name for name in ids if data.draw(st.booleans(), label="has no script") and name != "c1"}
    every = [
        case(
            name,
            "skipped" if name in skipped else data.draw(VERDICTS.filter(lambda v: v != "skipped")),
            target,
            trial,
            *tags[name],
        )
        for name in ids
        for target in ("m", "n")
        for trial in range(1, trials + 1)
    ]
    whole = whole_run(every, trials, strict=data.draw(st.booleans(), label="strict"))
    groups: dict[int, list] = {}
    for measurement in every:
        groups.setdefault(data.draw(st.integers(0, 2)), []).append(measurement)
    files = Files(tmp_path_factory.mktemp("parts"))
    parts = [files.part(run_document(every, group, GATES, whole, defer=True)) for group in groups.values()]
    expected = run_document(every, every, [] if whole.strict else GATES, whole)
    merged = merge(data.draw(st.permutations(parts)))
    if whole.strict:
        assert merged.document["toolUse"] == expected["toolUse"]
        return
    assert merged.document == expected
    if len(parts) == 3:
        again = merge([files.part(dict(merge(parts[:2]).document)), parts[2]])
        assert again.document == expected


def test_the_same_file_twice_changes_nothing(files):
    first, second = (files.part(document) for document in split(CASES, [0, 1], [2, 3]))
    assert merge([first, second, first]).document == run_document(CASES, CASES, GATES)
    assert merge([first, first], partial=True).result.selected == 2


def test_different_results_of_one_case_are_refused(files):
    first, second = split(CASES, [0, 1], [1, 2, 3])
    second["toolUse"]["cases"][0]["tokens"] += 1
    parts = [files.part(first, "a.json"), files.part(second, "b.json")]
    with pytest.raises(ConfigError) as caught:
        merge(parts)
    names = [Path(part.name).as_posix() for part in parts]
    assert str(caught.value) == (
        f"{names[0]} and {names[1]} have different results of evals/fixtures/all.json::c2[m-t1]: "
        "each case belongs into one part"
    )


def test_a_missing_part_is_noticed_and_its_gates_are_not_evaluated(files):
    every = [case(f"c{number}") for number in range(1, 5)]
    parts = [files.part(document) for document in split(every, [0, 1, 2], gates=[gate()])]
    merged = merge(parts)
    assert merged.result.not_whole == "not whole: 3 of 4 items"
    assert merged.document["verdict"] == "fail"
    assert merged.document["gates"][0]["skipReason"] == "not evaluated: 3 of 4 cases selected"
    assert merge(parts, partial=True).document["verdict"] == "pass"


def test_in_a_partial_run_a_miss_fails(files):
    parts = [files.part(document) for document in split(CASES, [0, 1])]
    merged = merge(parts, partial=True)
    assert merged.document["verdict"] == "fail"
    assert [record["deferred"] for record in merged.document["toolUse"]["cases"]] == [False, False]


def test_a_case_is_covered_when_all_its_trials_are(files):
    every = [case("c1"), case("c1", trial=2), case("c2"), case("c2", trial=2)]
    whole = whole_run(every, trials=2)
    parts = [files.part(document) for document in split(every, [0, 1, 2], [3], gates=[gate()], whole=whole)]
    merged = merge(parts[:1], partial=True)
    assert merged.document["gates"][0]["skipReason"] == "not evaluated: 1 of 2 cases selected"
    assert merge(parts).document["gates"][0]["pass"] is True


def test_an_item_that_never_ended_makes_the_gate_unmeasured(files):
    every = [case("c1"), case("c2"), case("c3")]
    first, second = split(every, [0, 1], [2], gates=[gate()])
    del first["toolUse"]["cases"][1]
    merged = merge([files.part(first), files.part(second)])
    assert merged.document["gates"][0]["detail"] == "not measured: 2 of 3 cases measured"
    assert merged.result.not_whole == ""
    assert merged.document["verdict"] == "fail"


def test_an_interrupted_part_makes_the_run_interrupted(files):
    first, second = split(CASES[:1] + CASES[2:3], [0], [1], gates=[])
    first["interrupted"] = True
    merged = merge([files.part(first), files.part(second)])
    assert (merged.document["interrupted"], merged.document["verdict"]) == (True, "fail")


def test_one_file_is_evaluated_again(files):
    document = run_document(CASES, CASES, GATES)
    assert merge([files.part(document)]).document == document


def test_times_hosts_and_notes_are_those_of_all(files):
    first, second = split(CASES, [0, 1], [2, 3])
    first |= {"generatedAt": "2026-01-02T09:00:00+00:00", "notes": ["one", "both"]}
    second["notes"] = ["both", "two"]
    second["provenance"] = {**second["provenance"], "host": "g"}
    document = merge([files.part(second), files.part(first)]).document
    assert document["generatedAt"] == "2026-01-02T09:00:00+00:00"
    assert document["provenance"]["host"] == "g, h"
    assert document["notes"] == ["one", "both", "two"]


def without_seed(document):
    document["plan"]["options"] = {}


def other_trials(document):
    document["plan"]["trials"] = 3


def other_suites(document):
    document["plan"]["suites"] = ["more"]


def other_cases(document):
    document["plan"]["corpora"]["evals"]["digest"] = "e"


def other_corpora(document):
    document["plan"]["corpora"]["evals/b"] = {"items": 1, "digest": "e", "catalogVersion": None}


def other_targets(document):
    document["plan"]["targets"]["tool_use"] = ["m", "n"]


def other_commit(document):
    document["provenance"]["gitCommit"] = "def"


def other_versions(document):
    document["provenance"]["versions"] = {"pytest-tooleval": "2"}


def other_gates(document):
    document["plan"]["gates"][0]["threshold"] = 0.9


def strict(document):
    document["plan"]["strict"] = True


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_seed, "seed: 7 and none"),
        (other_trials, "trials: 1 and 3"),
        (other_suites, "suites: evals and more"),
        (other_cases, "the cases or the catalog of evals are not the same"),
        (other_corpora, "corpora: evals and evals, evals/b"),
        (other_targets, "targets of tool_use: m and m, n"),
        (other_commit, "gitCommit: abc and def"),
        (other_versions, "versions: pytest-tooleval 1 and pytest-tooleval 2"),
        (other_gates, "the gates are not the same"),
        (strict, "strict: no and yes"),
    ],
)
def test_what_is_no_part_of_the_same_run_is_refused(files, change, said):
    first, second = copy.deepcopy(split(CASES, [0, 1], [2, 3]))
    change(second)
    parts = [files.part(first, "a.json"), files.part(second, "b.json")]
    with pytest.raises(ConfigError) as caught:
        merge(parts)
    assert str(caught.value) == f"{parts[0].name} and {parts[1].name} are not parts of one run:\n  {said}"


def delete(*path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def put(value, *path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (delete("plan"), "does not say of which run it is a part: it was written by an earlier version; run that"),
        (delete("plan", "gates"), "at /plan: the key 'gates' is missing"),
        (delete("notes"), "at its top: the key 'notes' is missing"),
        (delete("provenance", "host"), "at /provenance: the key 'host' is missing"),
        (put("x", "plan", "trials"), 'at /plan/trials: found "x"; expected a whole number'),
        (put(-1, "plan", "selected"), "at /plan/selected: found -1; expected at least 0"),
        (put([3], "plan", "targets", "tool_use"), "at /plan/targets/tool_use/0: found 3; expected a string"),
        (delete("plan", "gates", 0, "metric"), "at /plan/gates/0: the key 'metric' is missing"),
        (
            put("speed", "plan", "gates", 0, "metric"),
            "has a gate over tool_use.overall.speed, which this version does",
        ),
        (put("magic", "plan", "gates", 0, "family"), "has a gate over magic.overall.passRate, which this version"),
        (delete("toolUse", "cases", 0, "nodeid"), "at /toolUse/cases/0: the key 'nodeid' is missing"),
        (delete("toolUse", "cases", 0, "tokens"), "at /toolUse/cases/0: the key 'tokens' is missing"),
        (put("2", "toolUse", "cases", 0, "calls"), 'at /toolUse/cases/0/calls: found "2"'),
        (put(10**400, "toolUse", "cases", 0, "calls"), "at /toolUse/cases/0/calls: found 1"),
        (put([{}], "plan", "workloads"), "at /plan/workloads/0: the key 'id' is missing"),
    ],
)
def test_a_damaged_file_is_told_and_never_a_traceback(files, change, said):
    (document,) = copy.deepcopy(split(CASES, [0, 1]))
    change(document)
    with pytest.raises(ConfigError) as caught:
        files.part(document, "a.json")
    assert said in str(caught.value)
    assert "a.json" in str(caught.value)


def regressions_gate():
    from pytest_tooleval.gates.thresholds import Gate

    return Gate("regressions", "overall", "regressions", "max", 0, "evals", "evals/thresholds.json", 1)


def test_the_comparison_is_that_of_the_whole_run(files):
    before = [case("c1"), case("c2"), case("c3"), case("c4", "missed")]
    baseline = run_document(before, before)
    parts = [files.part(document) for document in split(CASES, [0, 1], [2, 3], gates=[regressions_gate()])]
    without = merge(parts)
    assert without.document["gates"][0]["skipReason"] == "no baseline: give --tooleval-baseline FILE"
    merged = merge(parts, Baseline("base.json", baseline))
    section = merged.document["comparison"]
    assert section["baseline"] == {"file": "base.json", "generatedAt": baseline["generatedAt"], "gitCommit": "abc"}
    assert (section["compared"], [record["id"] for record in section["regressions"]]) == (4, ["c2"])
    assert merged.document["gates"][0]["actual"] == 1
    assert merged.document["gates"][0]["pass"] is False


def test_the_baseline_of_the_parts_is_known(files):
    first, second = split(CASES, [0, 1], [2, 3])
    assert baseline_of([files.part(first), files.part(second)]) is None
    for document, time in ((first, "1"), (second, "2")):
        document["comparison"] = {"baseline": {"file": "b.json", "generatedAt": time}}
    assert baseline_of([files.part(first)]) == ("b.json", "1")
    with pytest.raises(
        ConfigError, match="were not compared with the same baseline; name one with --baseline FILE"
    ):
        baseline_of([files.part(first), files.part(second)])


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, None),
        ({"a": 3}, 3),
        ({"a": None}, None),
        ({"b": "x", "a": 3}, {"a": 3, "b": "x"}),
        ({"a": None, "b": "x"}, {"a": None, "b": "x"}),
        ({"a": None, "b": None}, None),
    ],
)
def test_the_corpus_version_is_that_of_the_corpora_that_ran(versions, expected):
    assert merged_version(versions) == expected


def test_the_plan_survives_the_file(files):
    run = whole_run(CASES, strict=True, min_measured=0.8)
    part = files.part(run_document(CASES, CASES, GATES, run))
    assert part.whole == run
    assert part.whole.corpora == {"evals": WholeCorpus(4, "d")}
    assert json.loads(json.dumps(run.to_json())) == run.to_json()
