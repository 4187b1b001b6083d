from __future__ import annotations

from pathlib import Path

import pytest
from small_broker import CATALOG, MESSAGE, POST_SCHEMA, SEARCH_SCHEMA

from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.case import Source
from pytest_tooleval.cases.gold import InvocationScenario
from pytest_tooleval.families.invocation import InvocationTarget

TARGET = InvocationTarget("broker", CATALOG, ToolSearch(CATALOG))
LIVE = {**SEARCH_SCHEMA, "properties": {"cql": {"type": "string"}}, "required": ["cql"]}
POST, SEARCH = "chat.post_message", "wiki.search_pages"
FIELDS = (
    "pass",
    "errorType",
    "secondErrorType",
    "validArguments",
    "firstCallOk",
    "repaired",
    "schemaErrorSurfaced",
    "offlineHandled",
    "clearErrors",
)


def scenario(ref: str, arguments: dict, outcome: str, error: str = "", **keys) -> InvocationScenario:
    return InvocationScenario("n", ref, arguments, outcome, "r", Source(Path("f")), expected_error=error, **keys)


@pytest.mark.parametrize(
    ("case", "record"),
    [
        (scenario(POST, MESSAGE, "success"), (True, None, None, True, True, None, None, None, [])),
        (
            scenario(POST, {"channel": "#dev"}, "success"),
            (False, "ARGUMENT_VALIDATION_FAILED", None, False, False, None, None, None, [True]),
        ),
        (
            scenario(POST, {"text": "hi"}, "repair", "ARGUMENT_VALIDATION_FAILED", corrected=MESSAGE),
            (True, "ARGUMENT_VALIDATION_FAILED", None, True, None, True, None, None, [True]),
        ),
        (
            scenario(POST, {"text": "hi"}, "repair", "ARGUMENT_VALIDATION_FAILED", corrected={"text": 5}),
            (
                False,
                "ARGUMENT_VALIDATION_FAILED",
                "ARGUMENT_VALIDATION_FAILED",
                False,
                None,
                False,
                None,
                None,
                [True, True],
            ),
        ),
        (
            scenario(
                POST, {"text": "hi"}, "repair", "TOOL_SCHEMA_CHANGED", corrected=MESSAGE, live_schema=POST_SCHEMA
            ),
            (False, "ARGUMENT_VALIDATION_FAILED", None, True, None, False, False, None, [True]),
        ),
        (
            scenario(POST, MESSAGE, "repair", "ARGUMENT_VALIDATION_FAILED", corrected=MESSAGE),
            (False, None, None, True, None, False, None, None, []),
        ),
        (
            scenario(
                SEARCH, {"query": "x"}, "repair", "TOOL_SCHEMA_CHANGED", corrected={"cql": "x"}, live_schema=LIVE
            ),
            (True, "TOOL_SCHEMA_CHANGED", None, False, None, True, True, None, [True]),
        ),
        (
            scenario(SEARCH, {"query": "x"}, "error", "TOOL_SCHEMA_CHANGED", live_schema=LIVE),
            (True, "TOOL_SCHEMA_CHANGED", None, None, None, None, True, None, [True]),
        ),
        (
            scenario(SEARCH, {"query": "x"}, "error", "TOOL_SCHEMA_CHANGED", live_schema=SEARCH_SCHEMA),
            (False, None, None, None, None, None, False, None, []),
        ),
        (
            scenario(POST, MESSAGE, "error", "DOWNSTREAM_SERVER_OFFLINE"),
            (True, "DOWNSTREAM_SERVER_OFFLINE", None, None, None, None, None, True, [True]),
        ),
        (
            scenario("mail.send_email", {"query": "x"}, "success"),
            (False, "DOWNSTREAM_SERVER_OFFLINE", None, True, False, None, None, None, [True]),
        ),
        (
            scenario("vault.read_secret", {"query": "x"}, "error", "DOWNSTREAM_SERVER_OFFLINE"),
            (False, "AUTH_UNAVAILABLE", None, None, None, None, None, False, [True]),
        ),
        (
            scenario("vault.read_secret", {"query": "x"}, "error", "AUTH_UNAVAILABLE"),
            (True, "AUTH_UNAVAILABLE", None, None, None, None, None, None, [True]),
        ),
        (
            scenario("chat.nope", {}, "error", "TOOL_NOT_FOUND"),
            (True, "TOOL_NOT_FOUND", None, None, None, None, None, None, [True]),
        ),
        (
            scenario(POST, MESSAGE, "error", "DOWNSTREAM_CALL_FAILED"),
            (True, "DOWNSTREAM_CALL_FAILED", None, None, None, None, None, None, [True]),
        ),
        (
            scenario("cloud.broken", {}, "success"),
            (False, "CONFIG_ERROR", None, False, False, None, None, None, [True]),
        ),
        (
            scenario("cloud.broken", {}, "error", "CONFIG_ERROR"),
            (True, "CONFIG_ERROR", None, None, None, None, None, None, [True]),
        ),
        (
            scenario(POST, {"text": 5}, "error", "DOWNSTREAM_CALL_FAILED"),
            (False, "ARGUMENT_VALIDATION_FAILED", None, None, None, None, None, None, [True]),
        ),
    ],
)
def test_what_comes_of_a_scenario(case, record):
    outcome = TARGET.measure(case)
    assert tuple(outcome.record[field] for field in FIELDS) == record
    assert outcome.passed is record[0]


def test_the_rest_of_the_record():
    record = TARGET.measure(scenario(POST, {"channel": "#dev"}, "error", "ARGUMENT_VALIDATION_FAILED")).record
    assert record["toolRef"] == POST
    assert (record["expectedOutcome"], record["expectedError"]) == ("error", "ARGUMENT_VALIDATION_FAILED")
    assert "'text'" in record["message"]
    assert TARGET.measure(scenario(POST, MESSAGE, "success")).record["message"] == ""


def test_a_scenario_leaves_nothing_behind_for_the_next():
    arguments = {"channel": "#dev", "text": "hi", "mentions": ["a"]}
    offline = scenario(POST, arguments, "error", "DOWNSTREAM_SERVER_OFFLINE")
    healthy = scenario(POST, arguments, "success")

    outcomes = [TARGET.measure(case).passed for case in (offline, healthy, offline, healthy)]

    assert outcomes == [True] * 4
    assert arguments == {"channel": "#dev", "text": "hi", "mentions": ["a"]}


def test_a_live_schema_that_is_no_schema():
    case = scenario(POST, MESSAGE, "error", "TOOL_SCHEMA_CHANGED", live_schema={**POST_SCHEMA, "type": "nonsense"})
    assert TARGET.measure(case).record["errorType"] == "TOOL_SCHEMA_CHANGED"
