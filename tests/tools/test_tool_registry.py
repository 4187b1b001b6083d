from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.tools.registry import ToolRegistry, denial
from pytest_tooleval.tools.tool import Tool


def tool(name: str, category: str = "read") -> Tool:
    return Tool(name, "d", {"type": "object"}, category, lambda arguments, context: "")


def case(**keys: object) -> ToolUseCase:
    return ToolUseCase("c", "t", Source(Path("c.json")), **keys)


@pytest.fixture
def built_in() -> ToolRegistry:
    registry = ToolRegistry()
    registry.add_built_in()
    return registry


def test_the_built_in_tools_and_their_categories(built_in):
    assert {name: each.category for name, each in built_in.tools.items()} == {
        "file_read": "read",
        "list_dir": "list",
        "glob": "list",
        "grep": "read",
        "file_write": "edit",
        "file_edit": "edit",
        "run_command": "bash",
        "web_fetch": "web",
    }


@pytest.mark.parametrize(
    ("keys", "offered"),
    [
        ({}, ["file_read", "list_dir", "glob", "grep", "web_fetch"]),
        (
            {"tool_permission": {"edit": "allow", "web": "deny"}},
            ["file_read", "list_dir", "glob", "grep", "file_write", "file_edit"],
        ),
        ({"tool_permission": {"bash": "ask", "read": "deny"}}, ["list_dir", "glob", "run_command", "web_fetch"]),
        ({"tools_deny": ("grep", "web_fetch")}, ["file_read", "list_dir", "glob"]),
        (
            {"tool_permission": {"edit": "allow"}, "tools_deny": ("file_edit",)},
            ["file_read", "list_dir", "glob", "grep", "file_write", "web_fetch"],
        ),
    ],
)
def test_what_a_case_offers(built_in, keys, offered):
    offer = built_in.offer_for(case(**keys))

    assert list(offer.offered) == offered
    assert set(offer.offered) | set(offer.denied) == set(built_in.tools)
    assert set(offer.offered) & set(offer.denied) == set()


@pytest.mark.parametrize(
    ("category", "keys", "reason"),
    [
        ("read", {}, None),
        ("mcp", {}, "the permission of category 'mcp' is 'deny'"),
        ("mcp", {"tool_permission": {"mcp": "ask"}}, None),
        ("read", {"tool_permission": {"read": "deny"}}, "the permission of category 'read' is 'deny'"),
        ("read", {"tools_deny": ("own",)}, "this task denies it"),
        ("edit", {"tools_deny": ("own",)}, "this task denies it"),
    ],
)
def test_why_a_tool_is_denied(category, keys, reason):
    assert denial(tool("own", category), case(**keys)) == reason


def test_a_registered_tool_comes_after_the_built_in_ones(built_in):
    own = tool("own")
    built_in.add(own)
    assert list(built_in.tools)[-1] == "own"
    assert built_in.offer_for(case()).offered["own"] is own


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (tool("grep"), "a tool named 'grep' is registered already; give yours another name"),
        (tool("own", "write"), "tool 'own': unknown category 'write'; there are: read, list, web, edit, bash, mcp"),
    ],
)
def test_registrations_that_are_refused(built_in, added, message):
    with pytest.raises(ConfigError) as caught:
        built_in.add(added)
    assert str(caught.value) == message
    assert len(built_in.tools) == 8


def test_names_in_tools_deny_that_no_tool_has(built_in):
    assert built_in.unknown_names(case(tools_deny=("grep", "file_raed", "zzzz"))) == [
        "'tools_deny' names 'file_raed', and there is no such tool (did you mean 'file_read'?)",
        "'tools_deny' names 'zzzz', and there is no such tool",
    ]
