from __future__ import annotations

import copy
from typing import Any

from pytest_tooleval.providers.provider import ChatRequest, Sampling, ToolSpec
from pytest_tooleval.providers.tool_adaptation import AdaptedTools, ToolRules
from pytest_tooleval.providers.tool_names import NameRule
from pytest_tooleval.transcript import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

RULES = ToolRules(arguments=NameRule(characters="A-Za-z0-9_.-"))
FILTER = {
    "type": "object",
    "properties": {"filter[id]": {"type": "string"}, "filter_id_": {"type": "string"}, "sort": {}},
    "required": ["filter[id]", "sort"],
}
TOOLS = [
    ToolSpec("apps.list", "List apps.", FILTER),
    ToolSpec("apps_list", "List them another way.", {"type": "object"}),
    ToolSpec("grep", "Search.", {"properties": {"pattern": {"type": "string"}}}),
]


def adapted(*messages: Message, rules: ToolRules = RULES) -> AdaptedTools:
    return AdaptedTools(ChatRequest("s", [UserMessage("t"), *messages], TOOLS, Sampling(), until=9.5), rules)


def test_offered_tools_get_names_and_arguments_that_the_api_takes() -> None:
    before = copy.deepcopy(FILTER)
    request = adapted().request
    first, second, third = request.tools
    assert (second.name, third.name) == ("apps_list", "grep")
    assert RULES.names.takes(first.name)
    assert first.name.startswith("apps_list_")
    sent = [name for name in first.parameters["properties"] if name not in ("filter_id_", "sort")]
    assert [name.startswith("filter_id__") for name in sent] == [True]
    assert first.parameters["required"] == [sent[0], "sort"]
    assert [tool.description for tool in request.tools] == [tool.description for tool in TOOLS]
    assert (request.system, request.until, request.messages) == ("s", 9.5, (UserMessage("t"),))
    assert before == FILTER


def argument_names(tools: AdaptedTools) -> dict[str, str]:
    return dict(zip(FILTER["properties"], tools.request.tools[0].parameters["properties"], strict=True))


def test_the_history_says_what_was_offered() -> None:
    call = ToolCall("a", "apps.list", {"filter[id]": "7", "sort": None, "odd": 1}, '{"filter[id]": "7"}', "x")
    broken = ToolCall("b", "apps.list", None, "{", "apps.list")
    result = ToolMessage("a", "apps.list", "none", is_error=True)
    tools = adapted(AssistantMessage("text", (call, broken), opaque={"k": 1}), result)
    name, names = tools.request.tools[0].name, argument_names(tools)
    _, reply, said = tools.request.messages
    assert isinstance(reply, AssistantMessage)
    assert [sent.name for sent in reply.calls] == [name, name]
    assert [sent.arguments for sent in reply.calls] == [{names["filter[id]"]: "7", "sort": None, "odd": 1}, None]
    assert (reply.text, reply.opaque, reply.calls[0].id) == ("text", {"k": 1}, "a")
    assert said == ToolMessage("a", name, "none", is_error=True)


def test_a_reply_gets_the_real_names_back() -> None:
    tools = adapted()
    name, names = tools.request.tools[0].name, argument_names(tools)
    came = ToolCall("a", name, {names["filter[id]"]: "7", "sort": "x"}, "raw", name)
    reply = tools.restored(AssistantMessage("t", (came,), finish="length", opaque={"k": 1}))
    assert reply == AssistantMessage(
        "t",
        (ToolCall("a", "apps.list", {"filter[id]": "7", "sort": "x"}, "raw", "apps.list"),),
        finish="length",
        opaque={"k": 1},
    )


def test_the_raw_name_shows_what_the_model_added_to_the_name_it_was_told() -> None:
    tools = adapted()
    told = tools.request.tools[0].name
    calls = (
        ToolCall("a", told, {}, "", f"functions.{told}"),
        ToolCall("b", "functions.apps.list", {}, "", "functions.apps.list"),
        ToolCall("c", "apps.list", {}, "", "apps.list"),
        ToolCall("d", "grep", {}, "", "tools.grep"),
        ToolCall("e", "rm", {}, "", "rm"),
        ToolCall("f", "grep", {}),
    )
    found = [(call.name, call.raw_name) for call in tools.restored(AssistantMessage(calls=calls)).calls]
    assert found == [
        ("apps.list", "functions.apps.list"),
        ("apps.list", "functions.apps.list"),
        ("apps.list", "apps.list"),
        ("grep", "tools.grep"),
        ("rm", "rm"),
        ("grep", "grep"),
    ]


def test_an_invented_name_is_sent_in_characters_that_the_api_takes() -> None:
    call = ToolCall("a", "web search!", {"q": 1}, "", "web search!")
    tools = adapted(AssistantMessage(calls=(call,)), ToolMessage("a", "web search!", "no such tool"))
    sent: list[Any] = list(tools.request.messages[1:])
    assert (sent[0].calls[0].name, sent[1].name) == ("web_search_", "web_search_")
    assert sent[0].calls[0].arguments == {"q": 1}


def test_a_tool_keeps_its_name_on_the_wire_when_the_model_invents_one_like_it() -> None:
    tools = [ToolSpec("fs.read", "", {})]
    quiet = AdaptedTools(ChatRequest("", [], tools), ToolRules())
    invented = AssistantMessage(calls=(ToolCall("a", "fs read", {}),))
    later = AdaptedTools(ChatRequest("", [invented], tools), ToolRules())
    assert quiet.request.tools[0].name == later.request.tools[0].name == "fs_read"


def test_arguments_keep_their_names_where_any_are_taken() -> None:
    assert list(adapted(rules=ToolRules()).request.tools[0].parameters["properties"]) == list(FILTER["properties"])


def test_losses_name_the_tool() -> None:
    tools = [ToolSpec("odd", "", {"anyOf": [{"required": ["a"]}]}), ToolSpec("plain", "", {})]
    assert AdaptedTools(ChatRequest("", [], tools), ToolRules()).losses == (
        "odd: /anyOf: not sent, every alternative's properties are offered",
    )


def test_tools_that_differ_in_one_thing_are_not_taken_for_each_other() -> None:
    schema, other = {"properties": {"a": {}}}, {"properties": {"b": {}}}
    tools = [
        ToolSpec("x", "One.", schema),
        ToolSpec("y", "One.", schema),
        ToolSpec("x", "Two.", schema),
        ToolSpec("x", "One.", other),
    ]
    for rules in (RULES, ToolRules(names=NameRule(longest=1))):
        for tool in (*tools, *tools):
            (sent,) = AdaptedTools(ChatRequest("", [], [tool]), rules).request.tools
            assert (sent.name, sent.description, list(sent.parameters["properties"])) == (
                tool.name,
                tool.description,
                list(tool.parameters["properties"]),
            )


def test_schemas_that_come_and_go_are_each_sent() -> None:
    for number in range(1000):
        tool = ToolSpec("x", "", {"properties": {f"a{number}": {}}})
        (sent,) = AdaptedTools(ChatRequest("", [], [tool]), RULES).request.tools
        assert list(sent.parameters["properties"]) == [f"a{number}"]


def test_junk_in_required_does_no_harm() -> None:
    schema: Any = {"properties": {"a": {}}, "required": ["a", 3, ["b"]]}
    (tool,) = AdaptedTools(ChatRequest("", [], [ToolSpec("t", "", schema)]), RULES).request.tools
    assert tool.parameters["required"] == ["a"]
