from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tooleval.cases.registry import FixtureRegistry
from pytest_tooleval.cases.suite import Suite, find_corpora, load_suite


def fixture(case_id: str, task: str = "t") -> dict[str, object]:
    return {"id": case_id, "task": task, "expected": []}


@pytest.fixture
def put(tmp_path):
    """Write JSON files below a suite's folder."""

    def write(files: dict[str, object]) -> Path:
        for name, value in files.items():
            path = tmp_path / "evals" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))
        return tmp_path / "evals"

    return write


def load(root: Path, *registries: FixtureRegistry) -> Suite:
    return load_suite(root, lambda path: path.relative_to(root.parent), registries)


def registry(*fixtures: dict[str, object]) -> FixtureRegistry:
    made = FixtureRegistry()
    for each in fixtures:
        made.add(each)
    return made


def test_a_suite_of_several_corpora(put):
    root = put(
        {
            "fixtures/b.json": fixture("b"),
            "fixtures/a.json": [fixture("a1"), fixture("a2")],
            "sub/deep/fixtures/nested/c.json": fixture("c"),
            "sub/other/d.json": fixture("not-searched"),
            ".hidden/fixtures/e.json": fixture("hidden"),
            "node_modules/fixtures/f.json": fixture("vendored"),
        }
    )
    suite = load(root)

    assert [(corpus.root, corpus.catalog) for corpus in suite.corpora] == [
        (root, None),
        (root / "sub" / "deep", None),
    ]
    assert {root / "fixtures", root / "sub" / "deep" / "fixtures"} <= set(suite.case_folders)
    assert {folder.parent for folder in suite.case_folders} == {root, root / "sub" / "deep"}
    assert [(found.case.id, found.corpus.root) for found in suite.cases()] == [
        ("a1", root),
        ("a2", root),
        ("b", root),
        ("c", root / "sub" / "deep"),
    ]
    assert suite.faults == {}


def test_a_folder_below_fixtures_is_no_corpus_of_its_own(put):
    root = put({"fixtures/fixtures/a.json": fixture("a")})
    assert list(find_corpora(root)) == [root]


def test_an_empty_suite(tmp_path):
    suite = load(tmp_path)
    assert (suite.corpora, list(suite.cases()), suite.faults) == ((), [], {})


def test_two_local_files_with_one_id_are_an_error_that_names_both(put):
    root = put(
        {
            "fixtures/a.json": [fixture("x"), fixture("same")],
            "more/fixtures/b.json": [fixture("y"), fixture("same")],
        }
    )
    suite = load(root)

    (path,) = suite.faults
    assert path == root / "more/fixtures/b.json"
    assert str(suite.faults[path]) == (
        "evals/more/fixtures/b.json:1: the id 'same' is taken by evals/fixtures/a.json:1; "
        "ids are unique in a suite, give one another"
    )
    assert [found.case.id for found in suite.cases()] == ["x", "same"]


def test_a_broken_file_leaves_the_others(put):
    root = put({"fixtures/a.json": {"id": "a"}, "fixtures/b.json": fixture("b")})
    suite = load(root)

    assert {path: str(error) for path, error in suite.faults.items()} == {
        root / "fixtures/a.json": "evals/fixtures/a.json:1: the key 'task' is missing"
    }
    assert [found.case.id for found in suite.cases()] == ["b"]


def test_a_later_source_wins_and_local_files_over_all(put):
    root = put({"fixtures/a.json": fixture("local", "from the suite")})
    plugins = registry(fixture("local", "p"), fixture("global", "p"), fixture("plugin", "p"))
    home = registry(fixture("global", "h"), fixture("local", "h"))

    tasks = [(found.case.id, found.case.task) for found in load(root, plugins, home).cases()]

    assert tasks == [("global", "h"), ("plugin", "p"), ("local", "from the suite")]


def test_registered_cases_come_first_and_belong_to_the_suites_folder(put):
    root = put({"sub/fixtures/a.json": fixture("local")})
    suite = load(root, registry(fixture("plugin")))

    assert [(found.case.id, found.corpus.root) for found in suite.cases()] == [
        ("plugin", root),
        ("local", root / "sub"),
    ]


def test_problems_of_registrations_are_faults_of_their_files(put):
    root = put({"fixtures/a.json": fixture("a")})
    broken = FixtureRegistry()
    broken.add({"task": "no id", "expected": []})
    broken.add(fixture("b", ""))
    suite = load(root, broken)

    assert set(suite.faults) == {Path(__file__)}
    assert [problem.message for problem in suite.faults[Path(__file__)].problems] == [
        "a registered fixture has no 'id'",
        'found ""; expected what the model is asked, not blank',
    ]


CATALOG = {
    "servers": [{"id": "s"}],
    "tools": [
        {"toolRef": "s.read", "serverId": "s", "name": "read", "description": "Read it", "readOnly": True},
        {"toolRef": "s.write", "serverId": "s", "name": "write"},
    ],
}
ROW = {"intent": "read it", "category": "lexical", "acceptable": ["s.read"], "rationale": "r"}
SCENARIO = {"name": "n", "toolRef": "s.read", "arguments": {}, "expectedOutcome": "success", "rationale": "r"}
FIND = {"name": "n", "kind": "find", "query": "x", "rationale": "r"}
TIMING = {"performance": {"queries": ["read"]}}


def gold(*names: str) -> dict[str, object]:
    """Return a catalog and the named files, each with one row that is right."""
    values = {
        "discovery": ROW,
        "invocation": {"scenarios": [SCENARIO]},
        "ergonomics": {"cases": [FIND]},
        "workloads": TIMING,
    }
    return {"catalog/world.json": CATALOG, **{name: values[name.split("/")[0]] for name in names}}


def kinds(suite: Suite) -> list[tuple[str, str]]:
    return [(found.case.family, found.case.id) for found in suite.cases()]


def faults(suite: Suite) -> list[str]:
    return [str(problem) for error in suite.faults.values() for problem in error.problems]


def test_a_corpus_of_every_family(put):
    root = put(
        {
            **gold("discovery/a/r.jsonl", "invocation/i.json", "ergonomics/e.json", "workloads/w.json"),
            "fixtures/f.json": fixture("f"),
            "discovery/notes.json": {"not": "a row"},
        }
    )
    suite = load(root)

    assert faults(suite) == []
    assert kinds(suite) == [
        ("tool_use", "f"),
        ("discovery", "read-it"),
        ("invocation", "n"),
        ("ergonomics", "n"),
        ("performance", "performance"),
    ]
    (corpus,) = suite.corpora
    assert [tool.ref for tool in corpus.catalog.tools] == ["s.read", "s.write"]
    assert {found.corpus.root for found in suite.cases()} == {root}


def test_a_corpus_without_workloads_gets_those_of_its_catalog(put):
    root = put(gold("discovery/r.jsonl"))
    suite = load(root)

    assert kinds(suite) == [
        ("discovery", "read-it"),
        ("tokens", "tokens"),
        ("cache", "cache"),
        ("performance", "performance"),
    ]
    assert [found.case.id for found in suite.local[root / "catalog/world.json"]] == [
        "tokens",
        "cache",
        "performance",
    ]


def test_the_catalog_files_of_a_corpus_are_one_catalog(put):
    more = {"servers": [{"id": "t"}], "tools": [{"toolRef": "t.run", "serverId": "t", "name": "run"}]}
    root = put(
        {
            **gold(),
            "catalog/more.json": more,
            "catalog/listed.json": {"tools": [{"name": "ping"}]},
            "discovery/r.jsonl": {**ROW, "acceptable": ["t.run", "listed.ping", "s.read"]},
        }
    )
    suite = load(root)
    assert faults(suite) == []
    assert ("discovery", "read-it") in kinds(suite)


def test_every_corpus_has_a_catalog_of_its_own(put):
    root = put({**gold("discovery/r.jsonl"), "sub/discovery/r.jsonl": ROW})
    assert faults(load(root)) == [
        "evals/sub/discovery/r.jsonl: the corpus has no catalog; put the tools that it speaks of into evals/sub/catalog/"
    ]


def test_a_broken_catalog_is_the_only_fault_of_its_corpus(put):
    root = put({**gold("discovery/r.jsonl"), "catalog/bad.json": {"servers": [], "tools": 5}})
    suite = load(root)
    assert faults(suite) == ["evals/catalog/bad.json:1 at /tools: found 5; expected a list"]
    assert kinds(suite) == []


def test_an_empty_catalog_can_be_searched_and_has_no_workload(put):
    root = put(
        {
            "catalog/world.json": {"servers": [], "tools": []},
            "discovery/r.jsonl": {**ROW, "category": "no_match", "acceptable": []},
            "sub/catalog/world.json": {"servers": [], "tools": []},
            "sub/discovery/r.jsonl": ROW,
        }
    )
    suite = load(root)
    assert kinds(suite) == [("discovery", "read-it")]
    assert faults(suite) == [
        "evals/sub/discovery/r.jsonl:1 at /acceptable/0: the catalog has no tool 's.read'",
    ]


def test_names_are_unique_in_a_corpus(put):
    names = (
        "invocation/a.json",
        "invocation/b.json",
        "ergonomics/a.json",
        "ergonomics/b.json",
        "workloads/a.json",
        "workloads/b.json",
        "discovery/a.jsonl",
        "discovery/b.jsonl",
    )
    files = gold(*names)
    root = put({**files, **{f"sub/{name}": value for name, value in files.items()}})
    suite = load(root)

    rule = "ids are unique in a corpus, give one another"
    own = [
        f"invocation/b.json:1: the id 'n' is taken by PLACE/invocation/a.json:1; {rule}",
        f"ergonomics/b.json:1: the id 'n' is taken by PLACE/ergonomics/a.json:1; {rule}",
        "workloads/b.json:1: the id 'performance' is taken by PLACE/workloads/a.json:1; "
        "a corpus has one workload of a kind, keep one of them",
    ]
    assert faults(suite) == [
        f"{place}/{text.replace('PLACE', place)}" for place in ("evals", "evals/sub") for text in own
    ]
    assert kinds(suite).count(("discovery", "read-it")) == 4
