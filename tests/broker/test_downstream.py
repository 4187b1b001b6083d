"""The downstream without any I/O."""

from __future__ import annotations

import pytest
from small_broker import CATALOG, MESSAGE, SEARCH_SCHEMA

from pytest_tooleval.broker.downstream import (
    CallResult,
    DownstreamAuthError,
    DownstreamOfflineError,
    InProcessDownstream,
    ToolGoneError,
    plausible_result,
)
from pytest_tooleval.cases.catalog import CatalogTool


def test_results_depend_on_name_and_arguments_alone() -> None:
    first, second = InProcessDownstream(CATALOG), InProcessDownstream(CATALOG)

    result = first.call("chat.post_message", MESSAGE)

    assert result == second.call("chat.post_message", dict(reversed(MESSAGE.items())))
    assert result != first.call("chat.post_message", {**MESSAGE, "text": "bye"})


@pytest.mark.parametrize(
    ("name", "read_only", "keys"),
    [
        ("search_pages", True, {"simulated", "items", "total"}),
        ("listIssues", False, {"simulated", "items", "total"}),
        ("get-page", False, {"simulated", "item"}),
        ("whoami", True, {"simulated", "item"}),
        ("createIssue", False, {"simulated", "status", "id"}),
        ("送信", False, {"simulated", "status", "id"}),
    ],
)
def test_results_look_like_what_the_name_promises_and_say_that_they_are_simulated(
    name: str, read_only: bool, keys: set[str]
) -> None:
    result = plausible_result(CatalogTool(f"s.{name}", "s", name, read_only=read_only), {})

    assert set(result) == keys
    assert result["simulated"] is True


def test_statuses_are_the_catalogs_but_for_servers_taken_offline() -> None:
    downstream = InProcessDownstream(CATALOG, offline={"chat"})

    assert [downstream.server_status(name) for name in ("chat", "wiki", "mail", "vault", "other")] == [
        "offline",
        "online",
        "offline",
        "auth_required",
        "online",
    ]
    with pytest.raises(DownstreamOfflineError):
        downstream.call("chat.post_message", MESSAGE)


def test_live_schemas_are_the_catalogs_but_for_those_given() -> None:
    live = {"type": "object"}
    downstream = InProcessDownstream(CATALOG, live_schemas={"chat.post_message": live})

    assert downstream.live_schema("chat.post_message") is live
    assert downstream.live_schema("wiki.search_pages") is SEARCH_SCHEMA


def test_tools_fail_as_they_are_told_to() -> None:
    failing = {"wiki.search_pages": "no index", "chat.post_message": DownstreamAuthError("token expired")}
    downstream = InProcessDownstream(CATALOG, failing=failing)

    assert downstream.call("wiki.search_pages", {"query": "x"}) == CallResult("no index", is_error=True)
    with pytest.raises(DownstreamAuthError, match="token expired"):
        downstream.call("chat.post_message", MESSAGE)


def test_a_tool_that_is_not_there_is_gone() -> None:
    with pytest.raises(ToolGoneError, match=r"chat\.nothing"):
        InProcessDownstream(CATALOG).call("chat.nothing", {})
