from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_broker import CATALOG, MESSAGE, broker_over

from pytest_tooleval.broker.surface import ToolBroker
from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.gold import ErgonomicsCase
from pytest_tooleval.families.ergonomics import ErgonomicsTarget

DEMANDS = ("decisionKnown", "instructive", "errorDisposed", "withinBudget", "parity")
STEP = {"tool": "callTool", "instruction": "Call callTool for the selected tool."}
FIND = {"ok": True, "decision": "use", "selectedToolRef": "s.t", "nextAction": STEP}
DONE = {"ok": True, "toolRef": "s.t", "nextActions": [STEP]}
ERROR = {"type": "X", "toolRef": "s.t", "retryable": False, "agentInstruction": "Tell the user that it failed."}


def case(kind: str = "find", **keys: Any) -> ErgonomicsCase:
    asked = {"query": "post"} if kind == "find" else {"tool_ref": "s.t"}
    return ErgonomicsCase("n", kind, "r", Source(Path("f")), **asked | keys)


@dataclass
class Scripted:
    """A broker that gives its answers in turn, whatever it is asked."""

    answers: tuple[Mapping[str, Any], ...]
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def _next(self, *request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return dict(self.answers[(len(self.asked) - 1) % len(self.answers)])

    def find_tool(self, query: str, limit: int = 5) -> dict[str, Any]:
        return self._next("find", query)

    def describe_tool(self, ref: str, part: str | None = None) -> dict[str, Any]:
        return self._next("describe", ref)

    def call_tool(self, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        return self._next("call", ref, arguments)


def measured(broker: ToolBroker, *cases: ErgonomicsCase) -> Iterator[Mapping[str, Any]]:
    target = ErgonomicsTarget("broker", broker)
    try:
        for each in cases:
            outcome = target.measure(each)
            assert outcome.passed is outcome.record["pass"]
            yield outcome.record
    finally:
        target.close()


@pytest.mark.parametrize(
    ("kind", "answers", "demands"),
    [
        ("find", (FIND,), (True, True, None, True, True)),
        ("find", ({**FIND, "decision": "perhaps"},), (False, True, None, True, True)),
        ("find", ({**FIND, "decision": None},), (False, True, None, True, True)),
        ("find", ({**FIND, "nextAction": None},), (True, False, None, True, True)),
        ("find", ({**FIND, "pad": "x" * 6000},), (True, True, None, False, True)),
        ("find", (FIND, {**FIND, "decision": "ambiguous"}), (True, True, None, True, False)),
        ("find", (FIND, {**FIND, "selectedToolRef": "s.u"}), (True, True, None, True, False)),
        ("find", (FIND, {**FIND, "nextAction": None}), (True, False, None, True, True)),
        ("find", (FIND, {**FIND, "decision": "perhaps"}), (False, True, None, True, False)),
        ("find", (FIND, {"ok": False, "error": ERROR}), (True, True, None, True, False)),
        ("describe", (DONE,), (True, True, None, True, True)),
        ("describe", ({**DONE, "pad": "x" * 8000},), (True, True, None, True, True)),
        ("describe", ({**DONE, "ok": None},), (False, True, None, True, True)),
        ("call", ({**DONE, "pad": "x" * 8000},), (True, True, None, False, True)),
        ("call", ({"ok": False, "error": ERROR},), (True, True, True, True, True)),
        ("call", ({"ok": False, "error": {**ERROR, "type": ""}},), (False, True, False, True, True)),
        ("call", ({"ok": False, "error": {**ERROR, "retryable": None}},), (True, True, False, True, True)),
        ("call", ({"ok": False, "error": {**ERROR, "agentInstruction": "Hm."}},), (True, False, True, True, True)),
        (
            "call",
            ({"ok": False, "error": ERROR}, {"ok": False, "error": {**ERROR, "type": "Y"}}),
            (True, True, True, True, False),
        ),
        ("call", ({"ok": False, "error": "it failed"},), (False, False, False, True, True)),
    ],
)
def test_what_is_demanded_of_answers(kind, answers, demands):
    (record,) = measured(Scripted(answers), case(kind))
    assert tuple(record[demand] for demand in DEMANDS) == demands
    assert record["pass"] is (False not in demands)


def test_both_surfaces_are_asked_the_same():
    broker = Scripted((FIND,))
    list(measured(broker, case(), case("describe"), case("call", arguments={"a": 1})))
    assert broker.asked == [
        ("find", "post"),
        ("find", "post"),
        ("describe", "s.t"),
        ("describe", "s.t"),
        ("call", "s.t", {"a": 1}),
        ("call", "s.t", {"a": 1}),
    ]


def test_size_is_counted_in_bytes_of_the_larger_answer():
    answers = tuple({**FIND, "pad": "é" * count} for count in (10, 200))
    larger = json.dumps(answers[1], ensure_ascii=False, separators=(",", ":"))
    for order in (answers, answers[::-1]):
        (record,) = measured(Scripted(order), case())
        assert record["bytes"] == len(larger.encode()) > len(larger)


@pytest.mark.parametrize(
    ("asked", "decision", "error", "ref"),
    [
        (case(query="post a message"), "use", None, "chat.post_message"),
        (case(query=""), "empty_query", None, None),
        (case(query="zzz"), "no_good_match", None, None),
        (case("describe", tool_ref="wiki.search_pages"), None, None, "wiki.search_pages"),
        (case("describe", tool_ref="cloud.deploy_app"), None, None, "cloud.deploy_app"),
        (case("describe", tool_ref="chat.nope"), None, "TOOL_NOT_FOUND", "chat.nope"),
        (case("call", tool_ref="chat.post_message", arguments=MESSAGE), None, None, "chat.post_message"),
        (
            case("call", tool_ref="chat.post_message", arguments={}),
            None,
            "ARGUMENT_VALIDATION_FAILED",
            "chat.post_message",
        ),
        (
            case("call", tool_ref="mail.send_email", arguments={"query": "x"}),
            None,
            "DOWNSTREAM_SERVER_OFFLINE",
            "mail.send_email",
        ),
    ],
)
def test_the_reference_broker_keeps_every_demand(asked, decision, error, ref):
    (record,) = measured(broker_over(), asked)
    assert record["pass"] is True
    assert (record["decision"], record["errorType"], record["toolRef"]) == (decision, error, ref)
    assert 0 < record["bytes"] < 6000
    assert record["errorDisposed"] is (None if error is None else True)


def test_what_was_expected_is_recorded_and_decides_nothing():
    expectations = {"expect_decision": "ambiguous", "expect_error_type": "CONFIG_ERROR"}
    (record,) = measured(broker_over(), case(query="post a message", **expectations))
    assert record["pass"] is True
    assert (record["expectDecision"], record["expectErrorType"]) == ("ambiguous", "CONFIG_ERROR")
    (plain,) = measured(broker_over(), case(query="post a message"))
    assert (plain["expectDecision"], plain["expectErrorType"]) == (None, None)


def test_a_target_can_run_and_be_closed_unused():
    target = ErgonomicsTarget("broker", broker_over(catalog=CATALOG))
    assert target.cannot_run(case()) is None
    target.close()
