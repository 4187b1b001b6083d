from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mcp
import pytest

from pytest_tooleval.broker import mcp_server

# As in conftest.py: what is imported here is imported once for all inner runs.
IMPORTED_ONCE = (mcp, mcp_server)

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    ("chat.post_message", "Post a message to a channel", TEXT, False),
    ("jira.search_issues", "Search issues of a project", QUERY, True),
    ("mail.send_email", "Send an email to a recipient", TEXT, False),
    ("wiki.delete_page", "Delete a wiki page", QUERY, False),
    ("wiki.search_pages", "Search wiki pages by text", QUERY, True),
]
BROKEN_TOOL = ("lab.run", "Run an experiment", {"properties": {"a": {"type": "strin"}}}, True)
ODD_INTENTS = ["emoji 🚀", "国際標準化", "a\tb\x07c", "{}[]", "::", "x" * 5000, "%s $HOME \\", "\ud83d\ude80"]
ROWS = "evals/discovery/rows.jsonl"
POST = {"id": "post", "intent": "post a message to a channel", "acceptable": ["chat.post_message"]}
WIKI = {"intent": "Search the wiki: pages!", "acceptable": ["wiki.search_pages"]}
TELL = {"intent": "tell my colleagues", "category": "semantic", "acceptable": ["chat.post_message"]}
CAKE = {"intent": "bake a cake", "category": "no_match", "acceptable": []}
CORPUS = [POST, WIKI, TELL, CAKE]
GOLD_ONLY = "--tooleval-family=discovery"
CALL = {"toolRef": "wiki.search_pages", "arguments": {"query": "x"}, "rationale": "r"}


def tool(ref: str, description: str, schema: Any, read_only: bool) -> dict[str, Any]:
    server, _, name = ref.partition(".")
    return {
        "toolRef": ref,
        "serverId": server,
        "name": name,
        "description": description,
        "inputSchema": schema,
        "readOnly": read_only,
    }


def catalog(tools: Iterable[tuple[str, str, Any, bool]] = TOOLS) -> dict[str, Any]:
    made = [tool(*each) for each in tools]
    servers = dict.fromkeys(each["serverId"] for each in made)
    return {"version": 1, "servers": [{"id": server} for server in servers], "tools": made}


def lines(rows: Iterable[dict[str, Any] | str]) -> str:
    filled = {"category": "lexical", "rationale": "It fits."}
    return "".join(f"{row if isinstance(row, str) else json.dumps({**filled, **row})}\n" for row in rows)


@pytest.fixture
def gold(suite):
    """A corpus of four rows, the third of which no lexical search can find, and no workloads."""
    suite.write("catalog/world.json", catalog())
    suite.write("discovery/rows.jsonl", lines([*CORPUS[:2], "", *CORPUS[2:]]))
    suite.write("workloads/none.json", {"_note": "none wanted"})
    return suite


def rows_of(gold, *rows: dict[str, Any] | str) -> None:
    gold.write("discovery/rows.jsonl", lines(rows))


def records(document: dict[str, Any], section: str = "discovery") -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in document[section]["cases"]}


def last_failed(pytester: pytest.Pytester) -> set[str]:
    path = pytester.path / ".pytest_cache/v/cache/lastfailed"
    return set(json.loads(path.read_text())) if path.exists() else set()


def engine_module(pytester: pytest.Pytester, text: str) -> str:
    """Write a module with an engine `rank` and return its name on the command line."""
    pytester.makepyfile(my_search=text)
    pytester.makeini("[pytest]\npythonpath = .")
    return "--tooleval-engine=my_search:rank"


def returning(answer: str) -> str:
    return f"def rank(catalog):\n    return lambda query: {answer}\n"


class TestItems:
    def test_rows_are_items_that_know_their_file_and_line(self, gold, pytester):
        gold.passing("fixture")
        items, _ = pytester.inline_genitems("-p", "no:randomly")
        assert [(item.nodeid, item.location) for item in items] == [
            (f"{ROWS}::post", (ROWS, 0, "post")),
            (f"{ROWS}::search-the-wiki-pages", (ROWS, 1, "search-the-wiki-pages")),
            (f"{ROWS}::tell-my-colleagues", (ROWS, 3, "tell-my-colleagues")),
            (f"{ROWS}::bake-a-cake", (ROWS, 4, "bake-a-cake")),
            ("evals/fixtures/fixture.json::fixture", ("evals/fixtures/fixture.json", 0, "fixture")),
        ]

    def test_scenarios_cases_and_workloads_are_items_too(self, gold, pytester):
        scenario = {"name": "search", "expectedOutcome": "success", **CALL}
        asked = {"name": "found", "kind": "find", "query": "wiki", "rationale": "r"}
        gold.write("invocation/more/calls.json", '{"scenarios": [\n' + json.dumps(scenario) + "]}")
        gold.write("ergonomics/asked.json", {"cases": [asked]})
        gold.write("workloads/none.json", '{"version": 1,\n"performance": {"queries": ["x"]}}')
        items, _ = pytester.inline_genitems("-p", "no:randomly")
        assert [(item.nodeid, item.location[1]) for item in items if "rows.jsonl" not in item.nodeid] == [
            ("evals/ergonomics/asked.json::found", 2),
            ("evals/invocation/more/calls.json::search", 1),
            ("evals/workloads/none.json::performance", 1),
        ]

    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            (["-k", "wiki"], ["search-the-wiki-pages"]),
            (["-k", "rows.jsonl and post"], ["post"]),
            (["-m", "semantic"], ["tell-my-colleagues"]),
            (["-m", "no_match or semantic"], ["tell-my-colleagues", "bake-a-cake"]),
            ([f"{ROWS}::post"], ["post"]),
            ([f"{ROWS}::search-the-wiki-pages", f"{ROWS}::bake-a-cake"], ["search-the-wiki-pages", "bake-a-cake"]),
            ([ROWS], ["post", "search-the-wiki-pages", "tell-my-colleagues", "bake-a-cake"]),
            (["evals/discovery", "-k", "not semantic and not no_match"], ["post", "search-the-wiki-pages"]),
        ],
    )
    def test_rows_are_selected_as_any_item_is(self, gold, case_ids, arguments, names):
        assert case_ids("--strict-markers", *arguments) == [f"{ROWS}::{name}" for name in names]

    def test_a_missed_row_fails_with_what_came_and_why_it_is_labelled_so(self, gold):
        result = gold.run()
        result.assert_outcomes(passed=3, failed=1)
        result.stdout.fnmatch_lines(
            [
                "expected chat.post_message first; got no_good_match: nothing",
                "intent: tell my colleagues",
                "first acceptable tool: not found",
                "why it is labelled so: It fits.",
                "overall *4 *0.667 *0.667 *0.667 *1.000 *0.333",
                f"FAILED {ROWS}::tell-my-colleagues*",
            ]
        )

    def test_last_failed_runs_the_missed_row(self, gold, pytester):
        gold.run()
        assert last_failed(pytester) == {f"{ROWS}::tell-my-colleagues"}
        gold.run("--lf").assert_outcomes(failed=1)

    def test_a_failed_gate_leaves_its_misses_for_last_failed(self, gold, pytester):
        gold.write("thresholds.json", {"discovery": {"semantic": {"top1Min": 1}}})
        gold.run().assert_outcomes(passed=3, xfailed=1, failed=1)
        assert last_failed(pytester) == {f"{ROWS}::tell-my-colleagues"}

    def test_junit_holds_every_row_and_gate(self, gold, pytester):
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 1}}})
        gold.run("--junitxml", "junit.xml", "-o", "junit_family=xunit1")
        cases = list(ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase"))
        found = {case.get("name"): (case.get("file"), case.get("line"), [e.tag for e in case]) for case in cases}
        assert found == {
            "post": (ROWS, "0", []),
            "search-the-wiki-pages": (ROWS, "1", []),
            "tell-my-colleagues": (ROWS, "3", ["skipped"]),
            "bake-a-cake": (ROWS, "4", []),
            "discovery.overall.top1": ("evals/thresholds.json", "3", ["failure"]),
        }

    def test_workers_give_the_same_result_file(self, gold, pytester):
        text = """
            def rank(catalog):
                def search(query):
                    if "wiki" in query:
                        raise ValueError("no index for \\ud800")
                    return [("jira.search_issues", 1.0), ("chat.post_message", 1.0), ("\\ud800", 0.5)]
                return search
        """
        engine = engine_module(pytester, text)
        gold.write("catalog/world.json", catalog([*TOOLS, BROKEN_TOOL]))
        odd = ({"intent": intent, "category": "no_match", "acceptable": []} for intent in ODD_INTENTS)
        rows_of(gold, *CORPUS, *odd)
        gold.write("invocation/calls.json", {"scenarios": [{"name": "ok", "expectedOutcome": "success", **CALL}]})
        gold.write(
            "ergonomics/e.json", {"cases": [{"name": "f", "kind": "find", "query": "wiki", "rationale": "r"}]}
        )
        gold.write(
            "workloads/none.json",
            {
                "tokens": {"query": "wiki", "toolRef": "wiki.search_pages", "arguments": {"query": "x"}},
                "cache": {"calls": [{"operation": "find", "query": "wiki"}] * 3},
            },
        )
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.9}, "semantic": {}}})
        options = (engine, "--tooleval-engine=lexical")
        alone, shared = gold.result(*options), gold.result(*options, "-n", "2")
        del alone["generatedAt"], shared["generatedAt"]
        assert alone == shared
        assert list(alone["discovery"]["byTarget"]) == ["my_search:rank", "lexical"]
        assert [(record["id"], record["target"]) for record in alone["discovery"]["cases"]][:3] == [
            ("post", "my_search:rank"),
            ("post", "lexical"),
            ("search-the-wiki-pages", "my_search:rank"),
        ]
        counts = Counter(record["verdict"] for record in alone["discovery"]["cases"])
        assert (len(alone["discovery"]["cases"]), counts["error"]) == (2 * (4 + len(ODD_INTENTS)), 1)
        assert {"invocation", "ergonomics", "tokenEconomy", "cache"} <= alone.keys()
        assert [note for note in alone["notes"] if note.startswith("lab.run")] == alone["notes"][:1]

    def test_fixtures_from_elsewhere_stand_beside_rows(self, gold, pytester):
        pytester.makeconftest(
            """
            def pytest_tooleval_register_fixtures(fixtures):
                fixtures.add({"id": "hello", "task": "t", "expected": [], "mock": [{"text": "hi"}]})
            """
        )
        gold.write("thresholds.json", {"discovery": {"overall": {}}, "tool_use": {"passRateMin": 1}})
        gold.run().assert_outcomes(passed=5, xfailed=1)


class TestWorkloads:
    def test_a_corpus_without_workloads_is_measured_on_the_default_ones(self, suite, pytester):
        suite.write("catalog/world.json", catalog())
        document = suite.result()
        assert sorted(document.keys() & {"tokenEconomy", "cache", "performance", "discovery"}) == [
            "cache",
            "performance",
            "tokenEconomy",
        ]
        assert (document["cache"]["operations"], document["cache"]["cacheableOps"]) == (8, 6)
        assert document["cache"]["redundantCallReduction"] == 0.5
        assert document["tokenEconomy"]["brokerTokensToSuccess"] > document["tokenEconomy"]["brokerStartupTokens"]
        assert document["performance"]["endToEnd"]["n"] == 100
        suite.run("--collect-only", "-q").stdout.fnmatch_lines(
            [f"evals/catalog/world.json::{name}" for name in ("tokens", "cache", "performance")]
        )

    def test_nothing_is_timed_among_workers(self, suite):
        suite.write("catalog/world.json", catalog())
        result = suite.run("-n", "2", "-rs")
        result.assert_outcomes(passed=2, skipped=1)
        result.stdout.fnmatch_lines(["SKIPPED*other worker processes would be timed too; run without -n"])

    def test_token_estimators_come_by_hook(self, suite, pytester):
        pytester.makeconftest(
            """
            class Words:
                name = "words"
                def count(self, text):
                    return len(text.split())
            def pytest_tooleval_register_estimators(estimators):
                estimators.add("words", Words)
            """
        )
        suite.write("catalog/world.json", catalog())
        document = suite.result("--tooleval-token-estimator", "words", "--tooleval-family", "tokens")
        assert document["tokenEconomy"]["estimator"] == "words"
        assert document["provenance"]["tokenEstimator"] == "words"
        default = suite.result("--tooleval-family", "tokens")["tokenEconomy"]
        assert default["estimator"] == "chars/4"
        assert default["directStartupTokens"] != document["tokenEconomy"]["directStartupTokens"]


class TestRules:
    def test_a_semantic_row_that_words_win_is_a_hygiene_finding(self, gold):
        rows_of(gold, {**WIKI, "category": "semantic"}, TELL)
        document = gold.result()
        issue = "lexical search alone finds it at rank 1, so the row does not measure meaning"
        assert document["hygiene"] == [
            {"intent": "Search the wiki: pages!", "category": "semantic", "issue": issue}
        ]
        result = gold.run()
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines([f"hygiene: semantic row 'Search the wiki: pages!': {issue}"])

    @pytest.mark.parametrize(
        ("row", "passed"),
        [
            ({"intent": "search", "acceptable": ["wiki.search_pages"]}, False),
            ({"intent": "search", "acceptable": ["wiki.search_pages"], "k": 2}, True),
            ({"intent": "search", "acceptable": ["wiki.search_pages"], "category": "ambiguous"}, True),
            ({"intent": "search", "acceptable": ["mail.send_email"], "category": "ambiguous"}, False),
            ({"intent": "search", "acceptable": [], "category": "no_match"}, False),
            ({"intent": "qwertz", "acceptable": [], "category": "no_match"}, True),
        ],
    )
    def test_when_a_row_passes(self, gold, row, passed):
        rows_of(gold, row)
        gold.run().assert_outcomes(**{"passed" if passed else "failed": 1})

    @pytest.mark.parametrize(
        ("family", "sections", "gates", "passed"),
        [
            (["tool_use"], ["toolUse"], ["tool_use.overall.passRate[mock]"], 2),
            (["discovery"], ["discovery", "hygiene"], ["discovery.lexical.top1"], 4),
            (["tokens", "cache"], ["cache", "tokenEconomy"], ["cache.redundantCallReduction"], 3),
            (
                ["tool_use", "discovery"],
                ["discovery", "hygiene", "toolUse"],
                ["tool_use.overall.passRate[mock]", "discovery.lexical.top1"],
                6,
            ),
        ],
    )
    def test_a_run_of_some_families_knows_no_others(self, suite, family, sections, gates, passed):
        suite.write("catalog/world.json", catalog())
        rows_of(suite, *[POST, WIKI, CAKE])
        suite.passing("fixture")
        thresholds = {
            "tool_use": {"passRateMin": 1},
            "discovery": {"lexical": {"top1Min": 1}},
            "cache": {"redundantCallReductionMin": 0.5},
        }
        suite.write("thresholds.json", thresholds)
        options = [f"--tooleval-family={name}" for name in family]
        document = suite.result(*options)
        known = {
            "toolUse",
            "discovery",
            "hygiene",
            "cache",
            "tokenEconomy",
            "performance",
            "invocation",
            "ergonomics",
        }
        assert sorted(document.keys() & known) == sections
        assert [gate["name"] for gate in document["gates"]] == gates
        suite.run(*options).assert_outcomes(passed=passed)

    def test_an_unknown_family(self, gold):
        result = gold.run("--tooleval-family", "discovry")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*'discovry' is none of: tool_use, discovery, *"])


class TestEngines:
    def test_refs(self, gold, pytester):
        engine = engine_module(pytester, returning("['wiki.search_pages', 'chat.post_message']"))
        document = gold.result(engine)
        found = records(document)
        assert {name: (record["rank"], record["pass"]) for name, record in found.items()} == {
            "post": (2, False),
            "search-the-wiki-pages": (1, True),
            "tell-my-colleagues": (2, False),
            "bake-a-cake": (None, False),
        }
        assert found["post"]["target"] == "my_search:rank"
        assert found["post"]["expectedRank"] is None
        assert document["discovery"]["overall"]["mrr"] == pytest.approx(2 / 3)

    def test_pairs_with_ties_repeats_and_unknown_refs(self, gold, pytester):
        pairs = "[(ref, 0.5) for ref in ('wiki.search_pages', 'chat.post_message', 'search_pages', 'chat.post_message')]"
        engine = engine_module(pytester, returning(pairs))
        rows_of(gold, POST, WIKI)
        found = records(gold.result(engine))
        notes = [
            "the engine returned more than once: 'chat.post_message'",
            "the engine returned what is not in the catalog: 'search_pages' (did you mean 'wiki.search_pages'?)",
        ]
        assert [(r["rank"], r["expectedRank"], r["notes"]) for r in found.values()] == [
            (1, 1.5, notes),
            (2, 1.5, notes),
        ]
        gold.run(engine).stdout.fnmatch_lines([f"note: post [[]my_search:rank]: {notes[0]}"])

    def test_an_engine_that_finds_nothing_refuses(self, gold, pytester):
        document = gold.result(engine_module(pytester, returning("[]")))
        overall = document["discovery"]["overall"]
        assert (overall["top1"], overall["noMatchCorrectness"], overall["falseRefusalRate"]) == (0.0, 1.0, 1.0)

    def test_an_exception_is_that_rows_error_and_nothing_elses(self, gold, pytester):
        text = """
            def rank(catalog):
                def search(query):
                    if "wiki" in query:
                        raise ValueError("no index for it")
                    return ["chat.post_message"]
                return search
        """
        engine = engine_module(pytester, text)
        rows_of(gold, POST, WIKI, CAKE)
        result = gold.run(engine)
        result.assert_outcomes(passed=1, failed=1, errors=1)
        result.stdout.fnmatch_lines(
            [
                "*ERROR at setup of search-the-wiki-pages*",
                "not measured: the engine 'my_search:rank' raised ValueError: no index for it",
                "lexical *1 of 2 *1.000*",
                "not measured: 1 item error: the engine 'my_search:rank' raised ValueError: no index for it",
            ]
        )
        document = gold.result(engine)
        assert document["discovery"]["overall"]["measured"] == 2
        assert document["verdict"] == "fail"
        assert records(document)["search-the-wiki-pages"]["verdict"] == "error"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "def rank(catalog):\n    raise OSError('no model')\n",
                "the engine 'my_search:rank' could not be made: OSError: no model",
            ),
            (
                "rank = None\n",
                "the engine 'my_search:rank' is None; expected what takes a catalog",
            ),
            (
                "def rank(catalog):\n    return ['chat.post_message']\n",
                "the engine 'my_search:rank' gave ['chat.post_message'] for a catalog; expected a callable",
            ),
            (
                "def rnk(catalog):\n    pass\n",
                "the engine 'my_search:rank' cannot be imported: AttributeError: module 'my_search' has no attribute "
                "'rank'",
            ),
        ],
    )
    def test_an_engine_that_cannot_be_made_is_one_clear_error(self, gold, pytester, text, message):
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.5}}})
        result = gold.run(engine_module(pytester, text))
        result.assert_outcomes(errors=1)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert [line for line in result.outlines if "my_search" in line] == [message]

    @pytest.mark.parametrize(
        ("engine", "message"),
        [
            ("lexcal", "no engine 'lexcal' (did you mean 'lexical'?); known: hybrid, lexical; or give module:attr"),
            ("hybrid", "the engine 'hybrid' needs the semantic leg: add --tooleval-semantic"),
        ],
    )
    def test_an_engine_that_is_not_there(self, gold, engine, message):
        result = gold.run("--tooleval-engine", engine)
        result.assert_outcomes(errors=1)
        assert message in result.outlines

    def test_engines_side_by_side_have_gates_of_their_own(self, gold, pytester, case_ids):
        engine = engine_module(pytester, returning("['chat.post_message']"))
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.6}, "no_match": {}}})
        document = gold.result(engine, "--tooleval-engine", "lexical")
        assert [(gate["name"], gate["pass"]) for gate in document["gates"]] == [
            ("discovery.overall.top1[my_search:rank]", True),
            ("discovery.overall.top1[lexical]", True),
        ]
        assert list(document["discovery"]["byTarget"]) == ["my_search:rank", "lexical"]
        assert [(record["id"], record["target"]) for record in document["discovery"]["cases"]][:2] == [
            ("post", "my_search:rank"),
            ("post", "lexical"),
        ]
        assert case_ids(engine, "--tooleval-engine=lexical", "-k", "cake") == [
            f"{ROWS}::bake-a-cake[my_search:rank]",
            f"{ROWS}::bake-a-cake[lexical]",
        ]

    def test_engines_come_by_hook(self, gold, pytester):
        pytester.makeconftest(
            """
            def first(catalog):
                refs = sorted(tool.ref for tool in catalog.tools)
                return lambda query: refs[:1]
            def pytest_tooleval_register_engines(engines):
                engines.add("first", first)
            """
        )
        document = gold.result("--tooleval-engine", "first")
        assert {record["target"] for record in document["discovery"]["cases"]} == {"first"}
        assert document["discovery"]["overall"]["top1"] == pytest.approx(2 / 3)


class TestGates:
    def test_a_tracked_scope_leaves_its_misses_xfailed(self, gold):
        gold.write("thresholds.json", {"discovery": {"semantic": {}}})
        result = gold.run("-rx")
        result.assert_outcomes(passed=3, xfailed=1)
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines([f"XFAIL {ROWS}::tell-my-colleagues - reason: expected chat.post_message*"])
        result.stdout.no_fnmatch_line("*discovery.semantic*")

    def test_a_tracked_scope_leaves_other_misses_alone(self, gold):
        gold.write("thresholds.json", {"discovery": {"lexical": {}}, "invocation": {}})
        gold.run().assert_outcomes(passed=3, failed=1)

    def test_a_gate_that_wants_meaning_is_skipped_without_it(self, gold):
        gold.write("thresholds.json", {"discovery": {"semantic": {"top1Min": 1, "requiresSemanticLeg": True}}})
        result = gold.run("-rsx")
        result.assert_outcomes(passed=3, xfailed=1, skipped=1)
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(["SKIPPED*semantic leg did not run"])
        document = gold.result()
        (gate,) = document["gates"]
        assert (gate["name"], gate["skipped"], gate["skipReason"]) == (
            "discovery.semantic.top1",
            True,
            "semantic leg did not run",
        )
        assert document["verdict"] == "pass"

    def test_a_gate_over_a_scope_without_rows_fails(self, gold):
        gold.write(
            "thresholds.json", {"discovery": {"ambiguous": {"top1Min": 0}}, "invocation": {"errorClarityMin": 0}}
        )
        result = gold.run()
        result.assert_outcomes(passed=3, failed=3)
        result.stdout.fnmatch_lines(
            [
                "no cases: none of evals is in the scope 'ambiguous'",
                "no cases: none of evals is in the scope 'overall'",
            ]
        )

    def test_in_a_partial_run_the_gate_is_skipped_and_the_miss_fails(self, gold):
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.1}, "semantic": {}}})
        result = gold.run("-rs", "-k", "wiki or bake")
        result.assert_outcomes(passed=2, skipped=1, deselected=2)
        result.stdout.fnmatch_lines(["SKIPPED*not evaluated: 2 of 4 cases selected"])
        gold.run(f"{ROWS}::tell-my-colleagues").assert_outcomes(xfailed=1, skipped=1)
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.1}}})
        gold.run(f"{ROWS}::tell-my-colleagues").assert_outcomes(failed=1, skipped=1)
        gold.run("-k", "tell", "--tooleval-defer-gates").assert_outcomes(xfailed=1, skipped=1, deselected=3)

    @pytest.mark.parametrize("option", ["--tooleval-strict", "--runxfail"])
    def test_strict_runs_fail_on_every_miss(self, gold, option):
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.1}, "semantic": {}}})
        gold.run(option).assert_outcomes(passed=4, failed=1)

    def test_each_corpus_has_gates_of_its_own(self, gold):
        gold.write("thresholds.json", {"discovery": {"overall": {}}})
        gold.write("sub/catalog/world.json", catalog())
        gold.write("sub/discovery/rows.jsonl", lines([TELL]))
        gold.run(GOLD_ONLY).assert_outcomes(passed=3, xfailed=1, failed=1)

    def test_must_pass_names_fixtures_and_no_rows(self, gold):
        gold.passing("fixture")
        gold.write("thresholds.json", {"tool_use": {"must_pass": ["post"]}})
        result = gold.run()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["evals/thresholds.json:3: must_pass names 'post', and there is no such case"])

    def test_broker_families_are_gated_too(self, gold):
        scenarios = [
            {"name": "ok", "expectedOutcome": "success", **CALL},
            {"name": "bad", "expectedOutcome": "success", **CALL, "arguments": {}},
        ]
        gold.write("invocation/calls.json", {"scenarios": scenarios})
        gold.write("thresholds.json", {"invocation": {"firstCallSuccessMin": 0.6, "errorClarityMin": 1}})
        result = gold.run("--tooleval-family=invocation")
        result.assert_outcomes(passed=2, xfailed=1, failed=1)
        result.stdout.fnmatch_lines(
            [
                "firstCallSuccess is 0.5, expected at least 0.6; missed: bad",
                "  evals/invocation/calls.json::bad: expected success; got ARGUMENT_VALIDATION_FAILED",
            ]
        )


def one_row(**fields: Any) -> dict[str, Any]:
    return {"discovery/rows.jsonl": lines([{**POST, **fields}])}


DOUBLE = catalog([TOOLS[0], TOOLS[0]])
WRONG_REF = catalog(TOOLS[:1])
WRONG_REF["tools"][0]["toolRef"] = "chat_post_message"


class TestWrongInput:
    @pytest.mark.parametrize(
        ("files", "messages"),
        [
            (
                one_row(acceptable=["chat.post_mesage"]),
                [
                    f"{ROWS}:1 at /acceptable/0: the catalog has no tool 'chat.post_mesage' "
                    "(did you mean 'chat.post_message'?)"
                ],
            ),
            (one_row(rationale=""), [f'{ROWS}:1 at /rationale: found ""; expected why, not blank']),
            (one_row(intent=" "), [f'{ROWS}:1 at /intent: found " "; expected what is searched for, not blank']),
            (
                one_row(category="lexicl"),
                [
                    f'{ROWS}:1 at /category: found "lexicl"; expected one of: lexical, semantic, no_match, ambiguous, '
                    "wrong_server (did you mean 'lexical'?)"
                ],
            ),
            (
                {"discovery/rows.jsonl": lines([POST, WIKI, POST])},
                [f"{ROWS}:3: the name 'post' is taken on line 1; give it another"],
            ),
            (
                {"discovery/rows.jsonl": lines([POST, "{", WIKI, "5", {**TELL, "acceptable": ["x"]}])},
                [
                    f"{ROWS}:2: is not JSON: Expecting property name enclosed in double quotes (column 2)",
                    f"{ROWS}:4: found 5; expected a row, which is an object",
                    f"{ROWS}:5 at /acceptable/0: the catalog has no tool 'x'",
                ],
            ),
            (
                {"catalog/world.json": json.dumps(DOUBLE)},
                [
                    "evals/catalog/world.json:1 at /tools/1/toolRef: the toolRef 'chat.post_message' stands at "
                    "/tools/0/toolRef already; give each its own"
                ],
            ),
            (
                {"catalog/world.json": json.dumps(WRONG_REF)},
                [
                    'evals/catalog/world.json:1 at /tools/0/toolRef: found "chat_post_message"; expected serverId.name, '
                    "which is chat.post_message"
                ],
            ),
            (
                {"catalog/world.json": '{"servers": [], "tools": []}', **one_row()},
                [f"{ROWS}:1 at /acceptable/0: the catalog has no tool 'chat.post_message'"],
            ),
            (
                {"thresholds.json": '{"discovery": {"overall": {"top1Mni": 0.5}}}'},
                [
                    "evals/thresholds.json:1 at /discovery/overall/top1Mni: unknown key 'top1Mni' (did you mean 'top1Min'?)"
                ],
            ),
            (
                {"thresholds.json": '{"discovery": {"overall": {"top1Min": "0.5"}}}'},
                ['evals/thresholds.json:1 at /discovery/overall/top1Min: found "0.5"; expected a number'],
            ),
        ],
    )
    def test_what_is_wrong_is_one_clear_error(self, gold, files, messages):
        for name, text in files.items():
            gold.write(name, text)
        result = gold.run()
        result.assert_outcomes(errors=1)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert [line for line in result.outlines if line.startswith("evals/")] == messages

    def test_rows_without_a_catalog(self, suite):
        rows_of(suite, POST)
        result = suite.run()
        result.assert_outcomes(errors=1)
        assert (
            f"{ROWS}: the corpus has no catalog; put the tools that it speaks of into evals/catalog/"
            in result.outlines
        )

    def test_a_catalog_of_no_tools_can_be_searched(self, gold):
        gold.write("catalog/world.json", {"servers": [], "tools": []})
        rows_of(gold, CAKE)
        (record,) = gold.result()["discovery"]["cases"]
        assert (record["decision"], record["pass"]) == ("catalog_empty", True)

    def test_a_schema_that_is_no_schema_is_told_once(self, gold):
        gold.write("catalog/world.json", catalog([*TOOLS, BROKEN_TOOL]))
        scenario = {"name": "broken", "toolRef": "lab.run", "arguments": {}, "rationale": "r"}
        scenario |= {"expectedOutcome": "error", "expectedError": "CONFIG_ERROR"}
        gold.write("invocation/calls.json", {"scenarios": [scenario, {**scenario, "name": "again"}]})
        result = gold.run("-k", "not colleagues")
        result.assert_outcomes(passed=5, deselected=1)
        (told,) = (line for line in result.outlines if line.startswith("note: lab.run "))
        assert told.startswith("note: lab.run (evals): its input schema is not a JSON Schema: ")
        assert "strin" in told

    def test_a_broken_file_leaves_gates_unevaluated_and_other_rows_running(self, gold):
        gold.write("thresholds.json", {"discovery": {"overall": {"top1Min": 0.1}}})
        gold.write("discovery/more.jsonl", "{\n")
        result = gold.run("--continue-on-collection-errors")
        result.assert_outcomes(passed=3, failed=1, errors=1)
        result.stdout.no_fnmatch_line("*discovery.overall*")


def test_a_list_of_tools_as_a_server_gives_it_is_a_catalog(suite, tmp_path: Path):
    listed = [{"name": "search_pages", "description": "Search wiki pages", "inputSchema": QUERY}]
    suite.write("catalog/wiki.json", {"tools": listed})
    rows_of(suite, {"intent": "search wiki pages", "acceptable": ["wiki.search_pages"]})
    suite.run(GOLD_ONLY).assert_outcomes(passed=1)
