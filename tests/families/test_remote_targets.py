"""Brokers behind MCP: the reference one as a child process, and others that offer less."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_process import listening
from plain_mcp_server import text, tool, written
from small_broker import CATALOG, MESSAGE

from pytest_tooleval.broker.mapping import (
    OWN_MAPPING,
    BrokerMapping,
    CallMapping,
    DescribeMapping,
    ErrorMapping,
    FindMapping,
)
from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool, catalog_document
from pytest_tooleval.cases.gold import DiscoveryRow, ErgonomicsCase, InvocationScenario
from pytest_tooleval.errors import ConfigError, InfrastructureError
from pytest_tooleval.families.gold import CorpusTargets, GoldSettings
from pytest_tooleval.families.remote_session import MeasuredBroker, parse_broker
from pytest_tooleval.families.remote_targets import RemoteErgonomicsTarget, RemoteInvocationTarget
from pytest_tooleval.families.target import Target
from pytest_tooleval.measures.gold import discovery_metrics, ergonomics_metrics, invocation_metrics
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.token_estimates import CharacterEstimator
from pytest_tooleval.tools.mcp.config import Command, McpServer

pytest.importorskip("mcp")

HERE = Source(Path("f"))
ROWS = [
    DiscoveryRow("1", "post a message", "lexical", ("chat.post_message",), "r", HERE),
    DiscoveryRow("2", "search pages of the wiki", "wrong_server", ("wiki.search_pages",), "r", HERE),
    DiscoveryRow("3", "deploy", "lexical", ("cloud.deploy_app",), "r", HERE),
    DiscoveryRow("4", "email a recipient", "lexical", ("chat.post_message", "mail.send_email"), "r", HERE),
    DiscoveryRow("5", "read the secret message", "lexical", ("chat.post_message",), "r", HERE),
    DiscoveryRow("6", "walk the dog", "no_match", (), "r", HERE),
    DiscoveryRow("7", "post a dog to the wiki", "no_match", (), "r", HERE),
    DiscoveryRow("8", "walk the dog to a channel", "semantic", ("chat.post_message",), "r", HERE),
]


def scenario(ref: str, arguments: Any, outcome: Any, error: str = "", **more: Any) -> InvocationScenario:
    return InvocationScenario("n", ref, arguments, outcome, "r", HERE, expected_error=error, **more)


def case(kind: Any = "find", **keys: Any) -> ErgonomicsCase:
    asked = {"query": "post"} if kind == "find" else {"tool_ref": "chat.post_message"}
    return ErgonomicsCase("n", kind, "r", HERE, **asked | keys)


SCENARIOS = [
    scenario("chat.post_message", MESSAGE, "success"),
    scenario("chat.post_message", {}, "repair", "ARGUMENT_VALIDATION_FAILED", corrected=MESSAGE),
    scenario("chat.post_message", {"channel": 1}, "error", "ARGUMENT_VALIDATION_FAILED"),
    scenario("chat.nothing", {}, "error", "TOOL_NOT_FOUND"),
    scenario("mail.send_email", {"query": "x"}, "error", "DOWNSTREAM_SERVER_OFFLINE"),
    scenario("vault.read_secret", {"query": "x"}, "error", "AUTH_UNAVAILABLE"),
    scenario("ghost.tool", {}, "error", "CONFIG_ERROR"),
]
CASES = [
    case(query="post a message"),
    case(query="walk the dog"),
    case("describe"),
    case("describe", tool_ref="chat.nothing"),
    case("call", arguments=MESSAGE),
    case("call", arguments={}),
]


def settings(broker: MeasuredBroker | None = None) -> GoldSettings:
    engines = {"lexical": None} if broker is None else {}
    return GoldSettings(engines, None, CharacterEstimator(), broker=broker)


def measured(target: Target, cases: list[Any], family: str) -> list[Measurement]:
    outcomes = [(one, target.measure(one, 1)) for one in cases if target.cannot_run(one) is None]
    return [
        Measurement(family, "", "", "", 0, one.id, target.name, tags=one.tags, verdict="passed", record=made.record)
        for one, made in outcomes
    ]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorpusTargets]:
    """The targets over the reference broker as a child process."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "world.json").write_text(json.dumps(catalog_document(CATALOG)), encoding="utf-8")
    targets = CorpusTargets(
        CATALOG, settings(parse_broker("tooleval broker --catalog world.json", None, folder, {}, 30))
    )
    yield targets
    targets.close()


@pytest.mark.parametrize(
    ("family", "cases", "metrics"),
    [
        ("discovery", ROWS, discovery_metrics),
        ("invocation", SCENARIOS, invocation_metrics),
        ("ergonomics", CASES, ergonomics_metrics),
    ],
)
def test_the_reference_broker_is_the_same_over_mcp(
    own: CorpusTargets, family: str, cases: list[Any], metrics: Any
) -> None:
    reference = CorpusTargets(CATALOG, settings())
    (remote,), (direct,) = own.of(family), reference.of(family)
    over_mcp, in_process = measured(remote, cases, family), measured(direct, cases, family)
    reference.close()

    assert len(over_mcp) == len(in_process) == len(cases)
    expected = {**metrics(in_process), **({"parityRate": None} if family == "ergonomics" else {})}
    assert dict(metrics(over_mcp)) == expected
    assert set(expected.values()) - {None, 0, 1} or family != "discovery"
    for one, other in zip(over_mcp, in_process, strict=True):
        own_fields = {"expectedRank", "parity", "bytes", "confidence"}
        assert {key: value for key, value in one.record.items() if key not in own_fields} == {
            key: value for key, value in other.record.items() if key not in own_fields
        }


def test_a_broker_that_listens(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps(catalog_document(CATALOG)), encoding="utf-8")
    with listening(path) as (_, url):
        targets = CorpusTargets(CATALOG, settings(parse_broker(f"http={url}", None, tmp_path, {}, 30)))
        (remote,), reference = targets.of("discovery"), CorpusTargets(CATALOG, settings())
        over_http = measured(remote, ROWS, "discovery")
        targets.close()

    assert remote.name == "http"
    (direct,) = reference.of("discovery")
    assert discovery_metrics(over_http) == discovery_metrics(measured(direct, ROWS, "discovery"))


def test_the_other_families_are_skipped(own: CorpusTargets) -> None:
    for family in ("tokens", "cache", "performance"):
        (target,) = own.of(family)
        assert target.name == "broker"
        assert "measured on the reference broker only" in str(target.cannot_run(None))


TWO = Catalog(
    (CatalogServer("chat"), CatalogServer("wiki", "offline")),
    (CatalogTool("chat.post", "chat", "post"), CatalogTool("wiki.search", "wiki", "search")),
)
SEARCH = FindMapping("search_tools", "q", results=("/tools",), ref="/name")
BARE = BrokerMapping(SEARCH, refs="{server}__{name}")
FOUND = {
    "tools": [{"name": "wiki__search", "score": 2}, {"name": "chat__post", "score": 1}],
    "verdict": "yes",
    "sure": 1,
}


def structured(value: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": value}


def texts(*said: str) -> dict[str, Any]:
    """Return a result of a text for each."""
    return {"content": [{"type": "text", "text": one} for one in said]}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Any]:
    """Make a broker that answers its tools with results; closed in the end."""
    made: list[MeasuredBroker] = []

    def broker(mapping: BrokerMapping, **results: Any) -> CorpusTargets:
        entry = written(tmp_path, tools=[tool(name) for name in results], results=results)
        server = McpServer("b", Command(entry["command"], tuple(entry["args"])), tmp_path)
        made.append(MeasuredBroker("mine", server, mapping))
        return CorpusTargets(TWO, settings(made[-1]))

    yield broker
    for one in made:
        one.close()


def search(targets: CorpusTargets, category: Any = "lexical", acceptable: tuple[str, ...] = ("chat.post",)) -> Any:
    (target,) = targets.of("discovery")
    return target.measure(DiscoveryRow("1", "post", category, acceptable, "r", HERE), 1).record


@pytest.mark.parametrize(
    ("more", "answer", "top", "decision", "confidence"),
    [
        ({}, structured(FOUND), ["wiki.search", "chat.post"], "use", None),
        ({}, text(json.dumps(FOUND)), ["wiki.search", "chat.post"], "use", None),
        ({}, structured({"tools": []}), [], "no_good_match", None),
        ({}, structured({}), [], "no_good_match", None),
        ({"score": "/score"}, structured(FOUND), ["wiki.search", "chat.post"], "use", None),
        (
            {"decision": "/verdict", "decisions": {"yes": "ambiguous"}, "confidence": "/sure"},
            structured(FOUND),
            ["wiki.search", "chat.post"],
            "ambiguous",
            1,
        ),
        ({"results": ("",), "ref": ""}, text('["chat__post", "chat__post"]'), ["chat.post"], "use", None),
        ({"results": ("/result",), "ref": ""}, structured({"result": ["chat__post"]}), ["chat.post"], "use", None),
        (
            {"results": ("",), "ref": ""},
            texts("chat__post", "wiki__search"),
            ["chat.post", "wiki.search"],
            "use",
            None,
        ),
        ({"results": ("",), "ref": ""}, texts('["chat__', 'post"]'), ["chat.post"], "use", None),
        (
            {"results": ("",), "ref": ""},
            texts("wiki__search\n\n  chat__post\n"),
            ["wiki.search", "chat.post"],
            "use",
            None,
        ),
        ({"results": ("",), "ref": ""}, texts("chat__post"), ["chat.post"], "use", None),
        ({"results": ("",), "ref": ""}, texts(), [], "no_good_match", None),
        (
            {"results": ("",)},
            texts('{"name": "chat__post"}', '{"name": "wiki__search"}'),
            ["chat.post", "wiki.search"],
            "use",
            None,
        ),
        ({"results": ("",)}, texts('{"name": "chat__post"}'), ["chat.post"], "use", None),
    ],
)
def test_what_another_broker_finds(
    broker: Any, more: dict[str, Any], answer: Any, top: list[str], decision: str, confidence: Any
) -> None:
    find = FindMapping(**{"tool": "search_tools", "query": "q", "results": ("/tools",), "ref": "/name", **more})
    record = search(broker(BrokerMapping(find, refs="{server}__{name}"), search_tools=answer))
    assert (record["top"], record["decision"], record["confidence"]) == (top, decision, confidence)
    assert (record["expectedRank"] is None) == ("score" not in more)


def test_names_that_the_catalog_lacks_are_noted(broker: Any) -> None:
    record = search(broker(BARE, search_tools=structured({"tools": [{"name": "post"}, {"name": "chat__post"}]})))
    assert (record["rank"], record["pass"]) == (1, True)
    assert record["notes"] == ["the broker returned what is not in the catalog: 'post' (did you mean 'chat.post'?)"]


@pytest.mark.parametrize(
    ("mapping", "answer", "note"),
    [
        (
            BrokerMapping(SEARCH),
            structured(FOUND),
            "nothing that the broker found is a tool of the catalog; 'refs' of the mapping, '{server}.{name}', "
            "says how the broker writes names",
        ),
        (
            BARE,
            structured({"found": {"a/b": []}, "warnings": []}),
            "there is nothing at '/tools' of the broker's answer; lists stand at '/found/a~1b', '/warnings': "
            "name the right one as 'results' under 'find' of the mapping",
        ),
        (
            BARE,
            structured({}),
            "there is nothing at '/tools' of the broker's answer; see 'results' under 'find' of the mapping",
        ),
    ],
)
def test_a_mapping_that_may_not_fit_is_noted(broker: Any, mapping: BrokerMapping, answer: Any, note: str) -> None:
    record = search(broker(mapping, search_tools=answer))
    assert record["decision"] == "no_good_match"
    assert record["notes"][-1] == note


def test_null_for_no_tools_is_no_misfit(broker: Any) -> None:
    record = search(broker(BARE, search_tools=structured({"tools": None, "warnings": []})), "no_match", ())
    assert record["pass"] is True
    assert "notes" not in record


def test_a_decision_that_nobody_knows_is_noted(broker: Any) -> None:
    find = FindMapping("search_tools", "q", results=("/tools",), ref="/name", decision="/verdict")
    record = search(broker(BrokerMapping(find, refs="{server}__{name}"), search_tools=structured(FOUND)))
    assert record["decision"] == "use"
    assert record["notes"] == [
        "the broker's decision 'yes' is none that is known: name it under 'decisions' of its mapping"
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (text("out of order", is_error=True), "the broker 'mine' answered with an error: out of order"),
        ({"error": {"code": -32603, "message": "boom"}}, "boom (code -32603)"),
        (structured({"tools": "none"}), "at '/tools' of the answer stands 'none'; expected a list of tools"),
        (structured({"tools": [{"name": 5}]}), "returned 5; expected a list of refs"),
        (
            structured({"tools": "see hits", "hits": []}),
            "expected a list of tools; lists stand at '/hits': name the right one as 'results' under 'find' of the",
        ),
        ({"exit": 1}, "lost during the call of search_tools"),
    ],
)
def test_an_answer_that_cannot_be_read_is_no_measurement(broker: Any, answer: Any, told: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        search(broker(BARE, search_tools=answer))
    assert told in str(caught.value)


def test_an_error_that_means_a_refusal(broker: Any) -> None:
    find = FindMapping("search_tools", "q", results=("/tools",), ref="/name", decisions={"NONE": "no_good_match"})
    mapping = BrokerMapping(find, error=ErrorMapping("/code"), refs="{server}__{name}")
    record = search(broker(mapping, search_tools=structured({"code": "NONE"})), "no_match", ())
    assert (record["decision"], record["pass"]) == ("no_good_match", True)


def test_a_tool_that_the_broker_does_not_have(broker: Any) -> None:
    with pytest.raises(InfrastructureError, match=r"has no tool 'search_tools' \(did you mean 'search_tool'\?\)"):
        search(broker(BARE, search_tool=structured(FOUND)))


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    targets = CorpusTargets(TWO, settings(parse_broker("no-such-broker --now", BARE, tmp_path, {}, 30)))
    with pytest.raises(InfrastructureError, match=r"no program 'no-such-broker' on PATH.*; see --tooleval-broker$"):
        search(targets)
    targets.close()


def test_a_broker_that_speaks_otherwise_needs_a_mapping(broker: Any) -> None:
    with pytest.raises(
        InfrastructureError, match=r"it has: search_tools; a mapping file \(--tooleval-broker-mapping\)"
    ):
        search(broker(OWN_MAPPING, search_tools=structured(FOUND)))


def test_prose_is_no_list_of_names(broker: Any) -> None:
    mapping = BrokerMapping(FindMapping("search_tools", "q"), refs="{server}__{name}")
    with pytest.raises(
        InfrastructureError, match=r"at the top of the answer stands 'Use chat__post\.'; expected a list"
    ):
        search(broker(mapping, search_tools=text("Use chat__post.")))


CALL = CallMapping("run_tool", "name", "input")
ERROR = ErrorMapping("/code", {"BAD_INPUT": "ARGUMENT_VALIDATION_FAILED"}, "/text", "/again", "/hint")
BAD = {
    **structured(
        {"code": "BAD_INPUT", "text": "x is missing", "again": False, "hint": "Add x, then call once more."}
    ),
    "isError": True,
}


def invocation(targets: CorpusTargets, one: InvocationScenario) -> Any:
    (target,) = targets.of("invocation")
    assert target.cannot_run(one) is None
    return target.measure(one, 1).record


def test_calls_through_another_broker(broker: Any) -> None:
    good = broker(BrokerMapping(SEARCH, call=CALL), search_tools={}, run_tool=structured({"done": True}))
    assert invocation(good, scenario("chat.post", {}, "success"))["firstCallOk"] is True

    bad = broker(BrokerMapping(SEARCH, call=CALL, error=ERROR), search_tools={}, run_tool=BAD)
    record = invocation(bad, scenario("chat.post", {}, "error", "ARGUMENT_VALIDATION_FAILED"))
    assert (record["pass"], record["errorType"], record["clearErrors"]) == (
        True,
        "ARGUMENT_VALIDATION_FAILED",
        [True],
    )
    assert record["message"] == "x is missing"


def test_what_errors_do_not_say_is_not_scored(broker: Any) -> None:
    targets = broker(BrokerMapping(SEARCH, call=CALL), search_tools={}, run_tool=BAD)
    record = invocation(targets, scenario("chat.post", {}, "success"))
    assert (record["pass"], record["firstCallOk"], record["errorType"], record["clearErrors"]) == (
        False,
        False,
        "",
        [],
    )


@pytest.mark.parametrize(
    ("mapping", "one", "reason"),
    [
        (BARE, scenario("chat.post", {}, "success"), "its mapping has no 'call'"),
        (BrokerMapping(SEARCH, call=CALL), scenario("chat.post", {}, "error", "TOOL_NOT_FOUND"), "no 'type'"),
        (
            BrokerMapping(SEARCH, call=CALL, error=ERROR),
            scenario("chat.post", {}, "error", "TOOL_SCHEMA_CHANGED", live_schema={}),
            "cannot be given another schema",
        ),
        (
            BrokerMapping(SEARCH, call=CALL, error=ERROR),
            scenario("chat.post", {}, "error", "DOWNSTREAM_CALL_FAILED"),
            "cannot be made to fail",
        ),
        (
            BrokerMapping(SEARCH, call=CALL, error=ERROR),
            scenario("chat.post", {}, "error", "DOWNSTREAM_SERVER_OFFLINE"),
            "the catalog does not say that this one is offline",
        ),
        (
            BrokerMapping(SEARCH, call=CALL, error=ERROR),
            scenario("wiki.search", {}, "error", "DOWNSTREAM_SERVER_OFFLINE"),
            None,
        ),
    ],
)
def test_what_cannot_be_staged_or_judged_is_skipped(
    broker: Any, mapping: BrokerMapping, one: InvocationScenario, reason: str | None
) -> None:
    (target,) = broker(mapping).of("invocation")
    assert isinstance(target, RemoteInvocationTarget)
    found = target.cannot_run(one)
    assert found is None if reason is None else reason in str(found)


DEMANDS = ("decisionKnown", "instructive", "errorDisposed", "withinBudget", "parity")
STEP = "Call the tool with the arguments of your task."


@pytest.mark.parametrize(
    ("mapping", "one", "answer", "demands"),
    [
        (BARE, case(), structured(FOUND), (None, None, None, True, None)),
        (BARE, case(), text("x" * 6001, is_error=True), (None, None, None, False, None)),
        (
            BrokerMapping(FindMapping("t", "q", decision="/verdict", next_action="/next")),
            case(),
            structured({"verdict": "use", "next": STEP}),
            (True, True, None, True, None),
        ),
        (
            BrokerMapping(FindMapping("t", "q", decision="/verdict", next_action="/next")),
            case(),
            structured({"verdict": "perhaps"}),
            (False, False, None, True, None),
        ),
        (
            BrokerMapping(SEARCH, DescribeMapping("t", "name", next_action="/steps")),
            case("describe"),
            structured({"steps": [{"instruction": STEP}]}),
            (True, True, None, True, None),
        ),
        (
            BrokerMapping(SEARCH, call=CallMapping("t", "name", "input")),
            case("call"),
            {},
            (True, None, None, True, None),
        ),
        (
            BrokerMapping(SEARCH, call=CallMapping("t", "name", "input"), error=ERROR),
            case("call"),
            BAD,
            (True, True, True, True, None),
        ),
        (
            BrokerMapping(SEARCH, call=CallMapping("t", "name", "input"), error=ERROR),
            case("call"),
            text("it failed", is_error=True),
            (False, False, False, True, None),
        ),
        (
            BrokerMapping(SEARCH, call=CallMapping("t", "name", "input"), error=ErrorMapping("/code")),
            case("call"),
            BAD,
            (True, None, None, True, None),
        ),
    ],
)
def test_only_what_a_broker_offers_is_judged(
    broker: Any, mapping: BrokerMapping, one: ErgonomicsCase, answer: Any, demands: tuple[Any, ...]
) -> None:
    (target,) = broker(mapping, search_tools=answer, t=answer).of("ergonomics")
    assert target.cannot_run(one) is None
    outcome = target.measure(one, 1)
    assert tuple(outcome.record[demand] for demand in DEMANDS) == demands
    assert outcome.passed is (False not in demands)


def test_an_operation_that_is_not_offered_is_skipped(broker: Any) -> None:
    (target,) = broker(BARE).of("ergonomics")
    assert isinstance(target, RemoteErgonomicsTarget)
    assert target.cannot_run(case()) is None
    assert target.cannot_run(case("describe")) == "the broker offers no describe: its mapping has no 'describe'"
    assert target.cannot_run(case("call")) == "the broker offers no call: its mapping has no 'call'"


@pytest.mark.parametrize(
    ("given", "name", "target"),
    [
        ("tooleval broker --catalog 'a b'", "broker", ("tooleval", "broker", "--catalog", "a b")),
        ("mine=env KEY=1 serve", "mine", ("env", "KEY=1", "serve")),
        ("env KEY=1 serve", "broker", ("env", "KEY=1", "serve")),
        ("http://localhost:1/mcp?a=b", "broker", "http://localhost:1/mcp?a=b"),
        (" mine = https://x/mcp", "broker", None),
        ("mine=https://x/mcp", "mine", "https://x/mcp"),
    ],
)
def test_how_a_broker_is_named(given: str, name: str, target: Any, tmp_path: Path) -> None:
    broker = parse_broker(given, None, tmp_path, {}, 30)
    assert (broker.name, broker.mapping) == (name, OWN_MAPPING)
    reached = broker._server.target
    found = (reached.program, *reached.args) if isinstance(reached, Command) else reached.url
    assert target is None or found == target
    broker.close()


def test_a_configured_server_can_be_measured(tmp_path: Path) -> None:
    server = McpServer("kept", Command("serve"), tmp_path)
    assert parse_broker("mine=kept", None, tmp_path, {"kept": server}, 30)._server is server


@pytest.mark.parametrize(("given", "told"), [("", "is blank"), ("serve 'it", "is no command line")])
def test_what_names_no_broker(given: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_broker(given, None, tmp_path, {}, 30)


def test_refs_that_do_not_tell_tools_apart_are_refused() -> None:
    same = BrokerMapping(SEARCH, refs="{name}")
    tools = (CatalogTool("a.x", "a", "x"), CatalogTool("b.x", "b", "x"))
    measured_broker = parse_broker("serve", same, Path(), {}, 30)
    with pytest.raises(ConfigError, match="the same name, 'x'"):
        CorpusTargets(Catalog(tools=tools), settings(measured_broker)).of("discovery")
