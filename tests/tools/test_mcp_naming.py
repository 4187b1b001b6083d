"""Names of tools that come from several servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_project import tool_named

from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.mcp.listing import ServerTools
from pytest_tooleval.tools.mcp.naming import merged_offer
from pytest_tooleval.tools.registry import Offer

CASE = ToolUseCase("c", "t", Source(Path("c.json")), tool_permission={"mcp": "allow"})
NOTHING = Offer({}, {})


def tools(server: str, *names: str, **unusable: str) -> ServerTools:
    return ServerTools(server, {name: tool_named(name) for name in names}, unusable)


def test_names_that_are_clear_are_kept() -> None:
    offer = merged_offer(
        CASE, Offer({"grep": tool_named("grep")}, {"glob": "no"}), [tools("a", "x", "y"), tools("b", "z")]
    )
    assert list(offer.offered) == ["grep", "x", "y", "z"]
    assert offer.denied == {"glob": "no"}
    assert all(tool.name == name for name, tool in offer.offered.items())


def test_names_that_stand_twice_are_told_apart_by_their_servers_in_whatever_order() -> None:
    base = Offer({"grep": tool_named("grep")}, {"glob": "no"})
    servers = [tools("a", "find", "grep", "one"), tools("b", "find", "glob")]
    expected = {"grep", "a__find", "a__grep", "one", "b__find", "b__glob"}
    for order in (servers, servers[::-1]):
        offer = merged_offer(CASE, base, order)
        assert offer.offered.keys() == expected
        assert offer.offered["grep"] is base.offered["grep"]
        assert all(tool.name == name for name, tool in offer.offered.items())


def test_a_tool_that_cannot_be_offered_takes_its_name_too() -> None:
    offer = merged_offer(CASE, NOTHING, [tools("a", "find"), tools("b", find="broken")])
    assert list(offer.offered) == ["a__find"]
    assert offer.denied == {"b__find": "broken"}


def test_names_that_cannot_be_told_apart_are_an_error() -> None:
    servers = [tools("a", "b__c", "x"), tools("a__b", "c", "x"), tools("d", "c", "b__c")]
    with pytest.raises(ToolUnavailableError) as caught:
        merged_offer(CASE, NOTHING, servers)
    assert str(caught.value) == (
        "two tools would be called 'a__b__c': choose among a server's tools with 'tools', or rename it"
    )


def test_what_the_case_denies() -> None:
    case = ToolUseCase("c", "t", Source(Path("c.json")), tools_deny=("x", "grep"), tool_permission={"mcp": "ask"})
    offer = merged_offer(case, Offer({}, {"grep": "this task denies it"}), [tools("a", "x", "y")])
    assert list(offer.offered) == ["y"]
    assert offer.denied == {"grep": "this task denies it", "x": "this task denies it"}


def test_without_permission_nothing_is_offered() -> None:
    case = ToolUseCase("c", "t", Source(Path("c.json")))
    offer = merged_offer(case, NOTHING, [tools("a", "x")])
    assert offer == Offer({}, {"x": "the permission of category 'mcp' is 'deny'"})
