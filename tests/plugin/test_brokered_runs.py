from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_project import misbehaving
from obedient_model import obedient_model, task
from seeking_model import GIVEN_UP, seeking_model

BOTH = ("--tooleval-tools", "direct,broker")
TARGETS = ("openai:seeker", "openai:seeker+broker")
FILES = {"service.ini": "port = 8443\n"}
READ = ("file_read", {"path": "service.ini"})


@pytest.fixture
def catalog(pytester):
    """Write what a server with many tools listed, and return the options that take distractors from it."""
    schema = {
        "type": "object",
        "properties": {"subject": {"type": "string", "description": "What it is about. " * 9}},
    }
    tools = [
        {"name": f"{verb}_{noun}", "description": f"To {verb} a {noun}.", "inputSchema": schema}
        for verb in VERBS
        for noun in NOUNS
    ]
    (pytester.path / "office.json").write_text(json.dumps({"tools": tools}))
    return "--tooleval-distractor-catalog", "office.json"


VERBS = ("send", "print", "archive", "approve", "schedule", "translate")
NOUNS = ("invoice", "fax", "meeting", "contract", "parcel", "badge", "holiday", "survey")


@pytest.fixture
def reading(suite):
    verifier = {"args": {"file_read": {"path": {"$path": "service.ini"}}}, "max_calls": 2, "avoid": ["run_command"]}
    suite.fixture(
        "read", task=task(READ, answer="8443"), files=FILES, expected=["file_read"], verifier=verifier, max_turns=2
    )
    two = [
        ("grep", {"pattern": "port"}),
        ("file_edit", {"path": "service.ini", "old_text": "8443", "new_text": "1"}),
    ]
    suite.fixture(
        "edit",
        task=task(*two),
        files=FILES,
        expected=["grep", "file_edit"],
        verifier={"in_order": ["grep", "file_edit"], "files": {"service.ini": {"equals": "port = 1\n"}}},
        tool_permission={"edit": "allow"},
    )
    suite.fixture("twice", task=task(READ, READ), files=FILES, expected=["file_read"])
    return suite


def cases(document: dict[str, Any], target: str) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in document["toolUse"]["cases"] if case["target"] == target}


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_same_fixtures_are_judged_alike_on_both_ways(reading, workers):
    with seeking_model() as model:
        document = reading.result(*BOTH, *model.options, *workers)
    direct, brokered = (cases(document, target) for target in TARGETS)

    for way in (direct, brokered):
        assert {case_id: case["pass"] for case_id, case in way.items()} == {
            "read": True,
            "edit": True,
            "twice": False,
        }
        assert way["edit"]["names"] == ["grep", "file_edit"]
        assert (way["twice"]["calls"], way["twice"]["redundant"], way["twice"]["lostAt"]) == (2, 1, "answer")
        assert (way["read"]["accuracy"], way["read"]["lostAt"]) == (1, None)
    same = ("names", "accuracy", "pass", "calls", "redundant", "errors", "expectedNames", "mismatches", "checks")
    for case_id, case in direct.items():
        assert {key: brokered[case_id][key] for key in same} == {key: case[key] for key in same}
        assert [entry["arguments"] for entry in brokered[case_id]["trace"]] == [
            e["arguments"] for e in case["trace"]
        ]
    assert [(each["name"], each["shown"][0]) for each in brokered["edit"]["brokerCalls"]] == [
        ("findTool", "grep"),
        ("findTool", "file_edit"),
    ]
    assert "brokerCalls" not in direct["edit"]
    assert (direct["edit"]["turns"], brokered["edit"]["turns"]) == (3, 5)
    assert brokered["read"]["toolSet"] == {"model": "openai:seeker", "tools": "broker", "distractors": 0, "size": 5}
    totals = document["toolUse"]["byTarget"]
    assert totals[TARGETS[1]]["brokerCalls"] == {"finds": 5, "describes": 0, "errors": 0}
    assert totals[TARGETS[0]]["brokerCalls"] is None
    assert [totals[target]["passRate"] for target in TARGETS] == [pytest.approx(2 / 3)] * 2
    assert [totals[target]["lostAt"]["answer"] for target in TARGETS] == [1, 1]
    assert document["provenance"]["targets"] == list(TARGETS)


def test_more_tools_cost_where_they_are_offered_and_not_behind_the_broker(reading, catalog):
    with seeking_model() as model:
        result = reading.run(
            *BOTH,
            "--tooleval-distractors",
            "8,40",
            *catalog,
            *model.options,
            "-k",
            "read",
            "--tooleval-json",
            "r.json",
        )
        offered = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in model.asked]
    document = json.loads((reading.root.parent / "r.json").read_text())
    totals = document["toolUse"]["byTarget"]
    assert list(totals) == [
        f"openai:seeker{suffix}" for suffix in ("", "+8", "+40", "+broker", "+8+broker", "+40+broker")
    ]
    assert {target: each["passRate"] for target, each in totals.items()} == dict.fromkeys(totals, 1)
    assert [each["toolSet"]["mostSize"] for each in totals.values()] == [5, 13, 45, 5, 13, 45]
    direct, _, direct_40, brokered, _, brokered_40 = (each["tokensPerSolved"] for each in totals.values())
    assert direct_40 > 3 * direct
    assert brokered_40 < 1.5 * brokered
    assert brokered_40 < direct_40
    assert sorted({len(names) for names in offered}) == [3, 5, 13, 45]
    widest = max(offered, key=len)
    assert set(next(names for names in offered if len(names) == 13)) <= set(widest)
    result.stdout.fnmatch_lines(
        [
            "tokens per solved *",
            "finds * 1 *",
            "metric * distractors tools openai:seeker openai:seeker+broker",
            "accuracy * 0 *5 *1.00 *1.00",
            " *40 *45 *1.00 *1.00",
            "pass rate *",
            "tokens per solved * 0 *",
        ]
    )


def test_a_tool_that_no_search_shows_is_lost_at_the_search(suite):
    verifier = {"must_include": ["run_command"], "answer": {"contains": "a file"}}
    suite.fixture("hidden", task=task(("run_command", {"command": "ls"})), verifier=verifier)
    suite.fixture("unseen", task=task(("file_read", {"path": "x"})), files=FILES, expected=["web_fetch"])
    suite.fixture("shown", task=task(("list_dir", {})), expected=["glob"])
    with seeking_model() as model:
        document = suite.result(*BOTH, *model.options)
    found = {target: {key: case["lostAt"] for key, case in cases(document, target).items()} for target in TARGETS}
    assert found[TARGETS[0]] == {"hidden": "execution", "unseen": "selection", "shown": "selection"}
    assert found[TARGETS[1]]["hidden"] is None, "it is denied, so no search could have shown it"
    assert found[TARGETS[1]]["unseen"] == "search"
    assert cases(document, TARGETS[1])["hidden"]["answer"] == GIVEN_UP


def test_a_distractor_that_is_called_shows_as_a_confusion(suite, catalog):
    suite.fixture("lured", task=task(("print_fax", {}), answer="Printed."), expected=["list_dir"])
    with obedient_model() as model:
        document = suite.result("--tooleval-distractors", "48", *catalog, *model.options)
    lured = cases(document, "openai:obedient+48")["lured"]
    assert [(call["name"], call["outcome"]) for call in lured["trace"]] == [("print_fax", "error")]
    assert lured["trace"][0]["result"] == "the tool print_fax is not available in this run: do without it"
    pair = {"expected": "list_dir", "called": "print_fax", "count": 1}
    assert document["toolUse"]["confusion"]["openai:obedient+48"]["pairs"] == [pair]
    assert document["toolUse"]["confusion"]["openai:obedient"]["pairs"] == [{**pair, "unknownTool": True}]


def test_a_model_that_calls_past_the_broker_reaches_nothing(suite):
    suite.fixture("past", task=task(READ, answer="8443"), files=FILES, expected=["file_read"])
    with obedient_model() as model:
        result = suite.run("--tooleval-tools", "broker", *model.options)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  no tool was called",
            "beside that the broker was asked:",
            '  file_read({"path": "service.ini"}) -> TOOL_NOT_FOUND',
            "openai:obedient+broker asked the broker: 0 finds, 0 describes, 1 error",
            "openai:obedient+broker: lost at search 1",
        ]
    )


@pytest.fixture
def scripted(suite):
    suite.passing("good")
    suite.missing("bad")
    return suite


def test_scripts_measure_fixtures_through_the_brokers_call_path(scripted):
    document = scripted.result(*BOTH)
    for target in ("mock", "mock+broker"):
        found = cases(document, target)
        assert {key: (case["pass"], case["names"]) for key, case in found.items()} == {
            "good": (True, ["list_dir"]),
            "bad": (False, ["glob"]),
        }
    result = scripted.run("--tooleval-tools", "broker")
    result.stdout.fnmatch_lines(["note: provider mock plays the fixtures' scripts*"])


def test_items_are_named_and_chosen_by_their_tools(scripted, case_ids, pytester):
    prefix = "evals/fixtures/"
    assert case_ids(*BOTH, "-k", "broker") == [
        f"{prefix}bad.json::bad[mock+broker]",
        f"{prefix}good.json::good[mock+broker]",
    ]
    assert case_ids(*BOTH, "-k", "good and not broker") == [f"{prefix}good.json::good[mock]"]
    assert case_ids(*BOTH, "-k", "good and mock+broker") == [f"{prefix}good.json::good[mock+broker]"]
    assert case_ids(*BOTH, "--tooleval-trials", "2", f"{prefix}good.json::good[mock+broker-t2]") == [
        f"{prefix}good.json::good[mock+broker-t2]"
    ]
    assert case_ids("--tooleval-tools", "broker", "-k", "good") == [f"{prefix}good.json::good"]
    scripted.run(*BOTH)
    assert case_ids(*BOTH, "--lf") == [f"{prefix}bad.json::bad[mock]", f"{prefix}bad.json::bad[mock+broker]"]


def test_a_gate_judges_each_way_by_itself(scripted):
    scripted.thresholds(overall={"passRateMin": 0.5, "tokensMax": 10})
    gates = {gate["name"]: gate for gate in scripted.result(*BOTH)["gates"]}
    assert {name: gate["pass"] for name, gate in gates.items() if "passRate" in name} == {
        "tool_use.overall.passRate[mock]": True,
        "tool_use.overall.passRate[mock+broker]": True,
    }
    skipped = gates["tool_use.overall.tokens[mock+broker]"]
    assert skipped["skipReason"] == "not evaluated: the provider mock uses no tokens"


def test_first_calls_are_asked_with_distractors(suite, catalog):
    suite.fixture("a", task=task(("print_fax", {})), expected=["list_dir"])
    with obedient_model() as model:
        document = suite.result("--tooleval-first-call", "--tooleval-distractors", "48", *catalog, *model.options)
    lured = cases(document, "openai:obedient+48")["a"]
    assert (lured["names"], lured["trace"][0]["outcome"], lured["toolSet"]["size"]) == (
        ["print_fax"],
        "not_run",
        53,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tooleval-tools", "both"), "*'both' is none of: direct, broker*"),
        (("--tooleval-tools", "direct,"), "*'' is none of: direct, broker*"),
        (("--tooleval-distractors", "10,none"), "*'none' is not a whole number of at least 1*"),
        (("--tooleval-distractors", "10"), "*--tooleval-distractors needs a catalog*"),
        (
            ("--tooleval-distractors", "1", "--tooleval-distractor-catalog", "gone.json"),
            "*gone.json does not exist*",
        ),
        (("--tooleval-first-call", *BOTH), "*through the broker that is a search*"),
    ],
)
def test_options_that_make_no_sense_are_refused(scripted, options, message):
    result = scripted.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_too_many_distractors_are_an_error_before_anything_is_run(scripted, catalog):
    result = scripted.run("--tooleval-distractors", "49", *catalog)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*office.json has 48 tools that can stand beside the suite's own*asks for 49*"])


def test_ways_and_distractors_may_stand_in_the_ini_file(scripted, catalog, pytester, case_ids):
    pytester.makeini(
        "[pytest]\ntooleval_tools = broker, direct\ntooleval_distractors = 3\ntooleval_distractor_catalog = office.json"
    )
    assert [line.partition("[")[2] for line in case_ids("-k", "good")] == [
        "mock+broker]",
        "mock+3+broker]",
        "mock]",
        "mock+3]",
    ]


def test_the_targets_of_a_model_share_its_provider(suite, pytester):
    suite.passing("good")
    (suite.root / "conftest.py").write_text(PROVIDER)
    result = suite.run(*BOTH, "--provider", "counted")
    result.assert_outcomes(passed=2)
    assert (pytester.path / "log.txt").read_text() == "opened\nclosed\n"


PROVIDER = """
from pathlib import Path
from pytest_tooleval.transcript import AssistantMessage, ToolCall

class Counted:
    def note(self, word):
        with Path("log.txt").open("a") as file:
            file.write(word + "\\n")

    def __init__(self):
        self.note("opened")

    def cannot_run(self, case):
        return None

    def reply(self, case, request):
        if len(request.messages) > 1:
            return AssistantMessage("Done.")
        names = [tool.name for tool in request.tools]
        if "callTool" in names:
            return AssistantMessage("", (ToolCall("1", "callTool", {"toolRef": "suite.list_dir", "arguments": {}}),))
        return AssistantMessage("", (ToolCall("1", "list_dir", {}),))

    def close(self):
        self.note("closed")

def pytest_tooleval_register_providers(providers):
    providers.add("counted", lambda settings: Counted())
"""


def test_the_tools_of_a_server_are_reached_through_the_broker_too(suite):
    pytest.importorskip("mcp")
    suite.write("mcp.json", {"mcpServers": {"own": misbehaving()}})
    suite.fixture(
        "hello",
        mcp=["own"],
        expected=["echo"],
        mock=[{"calls": [{"name": "echo", "arguments": {"text": "hello"}}]}, {"text": "Done."}],
    )
    document = suite.result(*BOTH)
    for target in ("mock", "mock+broker"):
        case = cases(document, target)["hello"]
        assert (case["pass"], [call["outcome"] for call in case["trace"]]) == (True, ["ok"])
