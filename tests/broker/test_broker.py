"""The reference broker's three operations: contract, errors, drift, budgets."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from small_broker import CATALOG, HUGE_SCHEMA, MESSAGE, POST_SCHEMA, SEARCH_SCHEMA, broker_over, one_tool

from pytest_tooleval.broker.broker import Broker, reference_broker
from pytest_tooleval.broker.downstream import (
    CallResult,
    DownstreamAuthError,
    DownstreamError,
    DownstreamOfflineError,
    InProcessDownstream,
    ToolGoneError,
)
from pytest_tooleval.broker.envelope import (
    CALL_BUDGET,
    DESCRIBE_BUDGET,
    FIND_BUDGET,
    error_type,
    json_size,
    json_text,
)
from pytest_tooleval.broker.search import Found, Hit
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.errors import ToolevalError


@dataclass
class Recording:
    """A downstream that keeps what it was asked, and answers what it was told to."""

    content: Any = "fine"
    is_error: bool = False
    raised: Exception | None = None
    live: Any = None
    status: str = "online"
    calls: list[Any] = field(default_factory=list)

    def server_status(self, server_id: str) -> str:
        return self.status

    def live_schema(self, ref: str) -> Any:
        return self.live

    def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
        self.calls.append((ref, arguments))
        if self.raised is not None:
            raise self.raised
        return CallResult(self.content, self.is_error)


@dataclass
class FixedSearch:
    """A search that always finds the same, or fails."""

    found: Found | None

    def decide(self, query: str, limit: int) -> Found:
        if self.found is None:
            raise ToolevalError("the embedding server is gone")
        return self.found


def _ambiguous(*refs: str) -> FixedSearch:
    return FixedSearch(Found("ambiguous", tuple(Hit(ref, 1.0) for ref in refs), 0.5, "two fit"))


class TestFind:
    def test_a_small_schema_comes_whole_with_a_call_to_make(self) -> None:
        answer = broker_over().find_tool("post a message to a channel")

        assert answer["ok"] is True
        assert answer["query"] == "post a message to a channel"
        assert answer["decision"] == "use"
        assert answer["selectedToolRef"] == "chat.post_message"
        assert 0 < answer["confidence"] <= 1
        assert answer["reason"]
        assert answer["selected"]["inputSchema"] == POST_SCHEMA
        assert answer["selected"]["recommendedCall"] == {
            "toolRef": "chat.post_message",
            "arguments": {"channel": "<channel>", "text": "<text>"},
        }
        assert answer["nextAction"]["tool"] == "callTool"
        assert answer["nextAction"]["arguments"] == {"toolRef": "chat.post_message"}
        assert "be sure that the user wants that" in answer["nextAction"]["instruction"]
        assert answer["catalogStats"] == {"tools": 6, "servers": 5, "offlineServers": ["mail"]}

    def test_a_large_schema_comes_as_a_preview_with_describe_as_the_next_step(self) -> None:
        answer = broker_over().find_tool("deploy an application")

        preview = answer["selected"]["schemaPreview"]
        assert preview == {"arguments": {"name": "string, required", "spec": "object"}, "omitted": 0}
        assert answer["nextAction"]["tool"] == "describeTool"
        assert answer["nextAction"]["arguments"] == {"toolRef": "cloud.deploy_app"}

    def test_alternatives_have_reasons(self) -> None:
        search = FixedSearch(
            Found(
                "use",
                (Hit("chat.post_message", 2.0), Hit("mail.send_email", 1.0), Hit("wiki.search_pages", 0.5)),
                0.9,
                "fits",
            )
        )

        answer = Broker(CATALOG, search, InProcessDownstream(CATALOG)).find_tool("Sending a message, by email?")

        assert [(other["toolRef"], other["reason"]) for other in answer["alternatives"]] == [
            ("mail.send_email", "has 'Sending', 'email'; its server is offline"),
            ("wiki.search_pages", "related by its arguments or its meaning"),
        ]

    def test_an_ambiguous_answer_names_the_rivals(self) -> None:
        broker = Broker(CATALOG, _ambiguous("chat.post_message", "wiki.search_pages"), InProcessDownstream(CATALOG))

        answer = broker.find_tool("message")

        assert answer["selectedToolRef"] == "chat.post_message"
        assert answer["nextAction"]["tool"] == "describeTool"
        assert "wiki.search_pages" in answer["nextAction"]["instruction"]

    def test_nothing_fits(self) -> None:
        answer = broker_over().find_tool("translate a poem into Latin")

        assert answer["ok"] is True
        assert answer["decision"] == "no_good_match"
        assert answer["selectedToolRef"] is None
        assert "selected" not in answer
        assert answer["nextAction"]["tool"] == "findTool"
        assert "chat, wiki, cloud" in answer["nextAction"]["instruction"]
        assert "tell the user" in answer["nextAction"]["instruction"]

    @pytest.mark.parametrize("query", ["", "  ", "the of and", "\x00\ud800"])
    def test_a_query_without_words(self, query: str) -> None:
        answer = broker_over().find_tool(query)

        assert (answer["decision"], answer["selectedToolRef"]) == ("empty_query", None)
        assert answer["nextAction"]["tool"] == "findTool"

    def test_a_catalog_without_tools(self) -> None:
        answer = reference_broker(Catalog()).find_tool("send a message")

        assert answer["decision"] == "catalog_empty"
        assert "tell the user" in answer["nextAction"]["instruction"]
        assert answer["catalogStats"] == {"tools": 0, "servers": 0}

    def test_a_selected_tool_on_an_offline_server_is_not_to_be_called(self) -> None:
        broker = Broker(CATALOG, _ambiguous("mail.send_email", "chat.post_message"), InProcessDownstream(CATALOG))

        answer = broker.find_tool("send an email")

        assert answer["selected"]["serverStatus"] == "offline"
        assert answer["nextAction"]["arguments"] == {"toolRef": "chat.post_message"}
        assert "do not call mail.send_email" in answer["nextAction"]["instruction"]

    def test_without_an_alternative_the_user_is_to_be_told(self) -> None:
        answer = broker_over().find_tool("send an email to a recipient")

        assert "tell the user" in answer["nextAction"]["instruction"]
        assert "tool" not in answer["nextAction"]

    def test_a_search_that_fails_is_an_error(self) -> None:
        answer = Broker(CATALOG, FixedSearch(None), InProcessDownstream(CATALOG)).find_tool("x")

        assert error_type(answer) == "SEMANTIC_SEARCH_UNAVAILABLE"
        assert "the embedding server is gone" in answer["error"]["message"]

    def test_refs_that_the_catalog_lacks_are_left_out(self) -> None:
        broker = Broker(CATALOG, _ambiguous("no.such", "chat.post_message"), InProcessDownstream(CATALOG))

        assert broker.find_tool("x")["selectedToolRef"] == "chat.post_message"

    def test_it_fits_whatever_the_catalog_holds(self) -> None:
        schema = {
            "type": "object",
            "properties": {f"p{i}" * 50: {"type": "string", "description": "é" * 500} for i in range(300)},
        }
        tools = [
            CatalogTool(f"s.{'t' * 100}{i}", "s", f"{'t' * 100}{i}", "titel " * 500, "send message " * 3000, schema)
            for i in range(40)
        ]
        broker = reference_broker(Catalog((CatalogServer("s"),), tuple(tools)))

        answer = broker.find_tool("send message " * 2000, 25)

        assert json_size(answer) <= FIND_BUDGET
        assert answer["selectedToolRef"].startswith("s.ttt")
        assert answer["notices"] == ["cut to fit: describeTool shows a tool in full"]

    def test_a_name_that_no_answer_can_hold(self) -> None:
        name = "send_message_" * 1000
        catalog = Catalog((CatalogServer("s"),), (CatalogTool(f"s.{name}", "s", name, "", "Send a message"),))

        assert error_type(reference_broker(catalog).find_tool("send message")) == "CONFIG_ERROR"

    @pytest.mark.parametrize("limit", [-1, 0, 1, 10**9])
    def test_any_limit_is_put_within_bounds(self, limit: int) -> None:
        assert (
            broker_over().find_tool("post a message to a channel", limit)["selectedToolRef"] == "chat.post_message"
        )


class TestDescribe:
    def test_the_exact_schema_with_hints_an_example_and_the_next_step(self) -> None:
        answer = broker_over().describe_tool("chat.post_message")

        assert answer["inputSchema"] == POST_SCHEMA
        assert answer["hints"]["readOnly"] is False
        assert answer["serverStatus"] == "online"
        assert answer["schemaSource"] == "catalog"
        assert answer["exampleCall"]["arguments"] == {"channel": "<channel>", "text": "<text>"}
        assert answer["nextAction"]["tool"] == "callTool"
        assert "notices" not in answer

    def test_a_server_that_cannot_be_used_is_said(self) -> None:
        answer = broker_over().describe_tool("mail.send_email")

        assert answer["serverStatus"] == "offline"
        assert "do not call the tool now" in answer["nextAction"]["instruction"]

    @pytest.mark.parametrize(
        ("ref", "nearest"),
        [
            ("chat.post_mesage", "chat.post_message"),
            ("wiki.page_search", "wiki.search_pages"),
            ("chta.post_message", "chat.post_message"),
        ],
    )
    def test_an_unknown_ref_names_the_nearest(self, ref: str, nearest: str) -> None:
        error = broker_over().describe_tool(ref)["error"]

        assert (error["type"], error["toolRef"], error["serverId"]) == (
            "TOOL_NOT_FOUND",
            ref,
            ref.split(".", maxsplit=1)[0],
        )
        assert f"nearest: {nearest}" in error["message"]
        assert f"describeTool for {nearest}" in error["agentInstruction"]

    @pytest.mark.parametrize("ref", ["", "chat", "noSeparatorHere", "\x00", "x" * 100_000])
    def test_a_ref_without_a_server(self, ref: str) -> None:
        answer = broker_over().describe_tool(ref)

        assert error_type(answer) == "TOOL_NOT_FOUND"
        assert "server.name" in answer["error"]["message"]
        assert json_size(answer) < DESCRIBE_BUDGET

    def test_a_broken_schema_is_shown_with_what_is_wrong(self) -> None:
        answer = broker_over().describe_tool("cloud.broken")

        assert answer["inputSchema"] == {"type": "nonsense"}
        assert "exampleCall" not in answer
        assert "not a valid JSON Schema" in answer["notices"][0]
        assert answer["nextAction"]["tool"] == "findTool"

    def test_a_schema_that_does_not_fit_is_never_shown_in_part_without_a_word(self) -> None:
        answer = broker_over().describe_tool("cloud.deploy_app")

        assert json_size(answer) <= DESCRIBE_BUDGET
        assert "inputSchema" not in answer
        assert [part["part"] for part in answer["parts"]] == ["/properties/spec", "/properties/name"]
        assert answer["required"] == ["name"]
        assert f"{json_size(HUGE_SCHEMA)} bytes" in answer["notices"][0]
        assert answer["nextAction"]["arguments"] == {"toolRef": "cloud.deploy_app", "part": "/properties/spec"}

    def test_every_part_of_it_can_be_had(self) -> None:
        broker = broker_over()

        assert broker.describe_tool("cloud.deploy_app", "/properties/name")["schemaPart"] == {"type": "string"}
        spec = broker.describe_tool("cloud.deploy_app", "#/properties/spec")
        assert "schemaPart" not in spec
        assert len(spec["parts"]) == 120
        field_schema = broker.describe_tool("cloud.deploy_app", spec["parts"][7]["part"])["schemaPart"]
        assert field_schema == HUGE_SCHEMA["properties"]["spec"]["properties"]["field_7"]

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            ("properties", "no JSON pointer"),
            ("/propertes", "did you mean 'properties'"),
            ("/properties/x/y", "nothing at"),
        ],
    )
    def test_a_part_that_is_not_there(self, part: str, expected: str) -> None:
        answer = broker_over().describe_tool("cloud.deploy_app", part)

        assert error_type(answer) == "ARGUMENT_VALIDATION_FAILED"
        assert expected in answer["error"]["message"]

    def test_a_value_too_large_for_any_part_still_fits(self) -> None:
        catalog = one_tool({"type": "object", "properties": {"a": {"enum": [f"value {i}" for i in range(5000)]}}})
        broker = reference_broker(catalog)

        for part in (None, "/properties/a", "/properties/a/enum"):
            answer = broker.describe_tool("s.t", part)
            assert answer["ok"]
            assert json_size(answer) <= DESCRIBE_BUDGET
        assert broker.describe_tool("s.t", "/properties/a/enum/4999")["schemaPart"] == "value 4999"

    def test_the_live_schema_is_shown_when_it_has_changed(self) -> None:
        live = {"type": "object", "properties": {"cql": {"type": "string"}}, "required": ["cql"]}

        answer = broker_over(InProcessDownstream(CATALOG, live_schemas={"wiki.search_pages": live})).describe_tool(
            "wiki.search_pages"
        )

        assert answer["inputSchema"] == live
        assert answer["schemaSource"] == "live"
        assert "'cql' is a new required argument" in answer["notices"][0]
        assert answer["exampleCall"]["arguments"] == {"cql": "<cql>"}

    def test_the_catalogs_schema_is_shown_when_the_live_one_cannot_be_had(self) -> None:
        class Failing(Recording):
            def live_schema(self, ref: str) -> Any:
                raise DownstreamOfflineError("gone")

        assert broker_over(Failing()).describe_tool("wiki.search_pages")["inputSchema"] == SEARCH_SCHEMA


class TestCall:
    def test_a_call_that_goes_well(self) -> None:
        downstream = Recording(content={"ts": 1})

        answer = broker_over(downstream).call_tool("chat.post_message", MESSAGE)

        assert answer["ok"] is True
        assert (answer["toolRef"], answer["serverId"], answer["result"]) == ("chat.post_message", "chat", {"ts": 1})
        assert "do not repeat it" in answer["nextActions"][0]["instruction"]
        assert "notices" not in answer
        assert downstream.calls == [("chat.post_message", {"channel": "#dev", "text": "hi"})]

    def test_a_result_of_null_is_a_result(self) -> None:
        answer = broker_over(Recording(content=None)).call_tool("chat.post_message", MESSAGE)

        assert answer["ok"] is True
        assert answer["result"] is None

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({"channel": "#dev"}, "the required argument 'text' is missing (a string)"),
            (None, "'channel' is missing (a string: Channel to post to.); the required argument 'text' is missing"),
            ({**MESSAGE, "mentions": "ann"}, 'at /mentions: found "ann"; expected a list of strings'),
            ({**MESSAGE, "chanel": "x"}, "there is no argument 'chanel' (did you mean 'channel'?)"),
            ('{"channel": "x"}', "pass the object itself"),
            ([1], "of type list; expected a JSON object"),
            ({**MESSAGE, "text": "\ud800"}, "surrogate"),
            ({**MESSAGE, "text": float("nan")}, "not JSON"),
            ({**MESSAGE, "text": {1, 2}}, "not JSON"),
        ],
    )
    def test_arguments_that_do_not_fit_never_reach_the_tool(self, arguments: Any, expected: str) -> None:
        downstream = Recording()

        answer = broker_over(downstream).call_tool("chat.post_message", arguments)

        assert error_type(answer) == "ARGUMENT_VALIDATION_FAILED"
        assert expected in answer["error"]["message"]
        assert downstream.calls == []

    def test_deep_arguments_are_refused(self) -> None:
        deep: Any = 1
        for _ in range(300):
            deep = [deep]

        assert error_type(broker_over().call_tool("wiki.search_pages", {"query": "x", "y": deep})) == (
            "ARGUMENT_VALIDATION_FAILED"
        )

    def test_what_is_passed_is_neither_changed_nor_shared(self) -> None:
        arguments = {**MESSAGE, "mentions": ["ann"]}
        before = copy.deepcopy(arguments)

        class Grabbing(Recording):
            def call(self, ref: str, arguments: Mapping[str, Any]) -> CallResult:
                arguments["mentions"].append("bob")
                return CallResult("ok")

        broker_over(Grabbing()).call_tool("chat.post_message", arguments)

        assert arguments == before

    @pytest.mark.parametrize("text", ["\x00\x1b[31m", "\u2028\u202e", "emoji 🎉", ""])
    def test_any_text_that_can_be_encoded_is_passed_on(self, text: str) -> None:
        downstream = Recording(content=text)

        answer = broker_over(downstream).call_tool("chat.post_message", {"channel": "#dev", "text": text})

        assert downstream.calls[0][1]["text"] == text
        assert answer["result"] == text
        json_text(answer).encode()

    def test_an_unknown_server_is_a_matter_of_configuration(self) -> None:
        error = broker_over().call_tool("ghost.do_thing", {})["error"]

        assert (error["type"], error["serverId"]) == ("CONFIG_ERROR", "ghost")
        assert "'ghost'" in error["message"]

    @pytest.mark.parametrize("ref", ["chat.nothing_like_it", "noSeparatorHere"])
    def test_an_unknown_tool(self, ref: str) -> None:
        assert error_type(broker_over().call_tool(ref, {})) == "TOOL_NOT_FOUND"

    def test_a_server_whose_id_has_dots_is_recognized(self) -> None:
        catalog = Catalog((CatalogServer("com.example.chat"),), ())

        error = reference_broker(catalog).call_tool("com.example.chat.post", {})["error"]

        assert (error["type"], error["serverId"]) == ("TOOL_NOT_FOUND", "com.example.chat")

    def test_a_broken_schema_is_a_matter_of_configuration(self) -> None:
        answer = broker_over().call_tool("cloud.broken", {})

        assert error_type(answer) == "CONFIG_ERROR"
        assert "at /type" in answer["error"]["message"]

    @pytest.mark.parametrize(
        ("ref", "expected"),
        [("mail.send_email", "DOWNSTREAM_SERVER_OFFLINE"), ("vault.read_secret", "AUTH_UNAVAILABLE")],
    )
    def test_a_server_that_the_catalog_calls_unusable_is_not_asked(self, ref: str, expected: str) -> None:
        downstream = Recording()

        answer = broker_over(downstream).call_tool(ref, {"query": "x"})

        assert error_type(answer) == expected
        assert downstream.calls == []

    def test_a_server_that_has_gone_offline(self) -> None:
        answer = broker_over(Recording(status="offline")).call_tool("wiki.search_pages", {"query": "x"})

        assert error_type(answer) == "DOWNSTREAM_SERVER_OFFLINE"
        assert "wiki" in answer["error"]["agentInstruction"]

    @pytest.mark.parametrize(
        ("raised", "expected"),
        [
            (DownstreamOfflineError("refused"), "DOWNSTREAM_SERVER_OFFLINE"),
            (DownstreamAuthError("401"), "AUTH_UNAVAILABLE"),
            (ToolGoneError("404"), "TOOL_NOT_FOUND"),
            (DownstreamError("500"), "DOWNSTREAM_CALL_FAILED"),
            (KeyError("x"), "DOWNSTREAM_CALL_FAILED"),
            (RecursionError(), "DOWNSTREAM_CALL_FAILED"),
        ],
    )
    @pytest.mark.parametrize("ref", ["chat.post_message", "wiki.search_pages"])
    def test_whatever_a_downstream_raises_is_an_envelope(self, ref: str, raised: Exception, expected: str) -> None:
        answer = broker_over(Recording(raised=raised)).call_tool(ref, {"query": "x"} if ref[0] == "w" else MESSAGE)

        assert error_type(answer) == expected

    def test_only_a_call_that_reads_may_be_sent_once_more(self) -> None:
        broker = broker_over(Recording(raised=OSError("reset")))

        reading = broker.call_tool("wiki.search_pages", {"query": "x"})["error"]
        writing = broker.call_tool("chat.post_message", MESSAGE)["error"]

        assert (reading["retryable"], writing["retryable"]) == (True, False)
        assert "once more" in reading["agentInstruction"]
        assert "do not repeat it" in reading["agentInstruction"]
        assert "may have taken effect" in writing["agentInstruction"]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("no such page", "the tool reports: no such page"),
            ({"content": [{"type": "text", "text": "no such page"}]}, "the tool reports: no such page"),
            (
                [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
                "the tool reports: a\nb",
            ),
            ({"code": 7}, 'the tool reports: {"code":7}'),
            ({1, 2}, "the tool reports: {1, 2}"),
            ("x" * 100_000, "the tool reports: xxx"),
        ],
    )
    def test_an_error_of_the_tool_itself_is_passed_on(self, content: Any, expected: str) -> None:
        answer = broker_over(Recording(content=content, is_error=True)).call_tool("chat.post_message", MESSAGE)

        assert error_type(answer) == "DOWNSTREAM_CALL_FAILED"
        assert answer["error"]["message"].startswith(expected)
        assert answer["error"]["retryable"] is False
        assert json_size(answer) <= CALL_BUDGET

    @pytest.mark.parametrize(
        "content", ["x" * 200_000, [{"n": i, "t": "é" * 300} for i in range(1000)], {"k" * 90_000: 1}]
    )
    @pytest.mark.parametrize("ref", ["chat.post_message", "wiki.search_pages"])
    def test_a_huge_result_is_cut_and_says_so(self, ref: str, content: Any) -> None:
        answer = broker_over(Recording(content=content)).call_tool(
            ref, {"query": "x"} if ref[0] == "w" else MESSAGE
        )

        assert json_size(answer) <= CALL_BUDGET
        assert "cut to fit" in answer["notices"][0]
        assert len(answer["nextActions"]) == 2

    def test_the_next_step_after_a_cut_names_the_arguments_that_narrow(self) -> None:
        answer = broker_over(Recording(content="x" * 20_000)).call_tool("wiki.search_pages", {"query": "x"})

        assert "narrower arguments (query, limit)" in answer["nextActions"][1]["instruction"]

    def test_what_is_not_json_in_a_result_is_replaced_with_a_notice(self) -> None:
        answer = broker_over(Recording(content={"a": float("nan"), "b": "\ud800"})).call_tool(
            "chat.post_message", MESSAGE
        )

        assert answer["result"] == {"a": None, "b": "\ufffd"}
        assert "NaN by null" in answer["notices"][0]

    def test_a_result_that_refers_to_itself(self) -> None:
        circular: list[Any] = []
        circular.append(circular)

        answer = broker_over(Recording(content=circular)).call_tool("chat.post_message", MESSAGE)

        assert error_type(answer) == "DOWNSTREAM_CALL_FAILED"
        assert "the call was made" in answer["error"]["message"]


RENAMED = {"type": "object", "properties": {"cql": {"type": "string"}}, "required": ["cql"]}


class TestDrift:
    def test_a_call_that_the_live_schema_refuses_is_not_made(self) -> None:
        downstream = Recording(live=RENAMED)

        answer = broker_over(downstream).call_tool("wiki.search_pages", {"query": "x"})

        assert error_type(answer) == "TOOL_SCHEMA_CHANGED"
        assert "'query' is no longer an argument" in answer["error"]["message"]
        assert "describeTool for wiki.search_pages" in answer["error"]["agentInstruction"]
        assert downstream.calls == []

    def test_a_call_made_from_the_live_schema_goes_through(self) -> None:
        answer = broker_over(Recording(live=RENAMED)).call_tool("wiki.search_pages", {"cql": "x"})

        assert answer["ok"] is True
        assert "the schema changed since the catalog was made" in answer["notices"][0]

    def test_a_change_that_the_call_does_not_touch_is_a_notice(self) -> None:
        live = {**SEARCH_SCHEMA, "properties": {**SEARCH_SCHEMA["properties"], "space": {"type": "string"}}}

        answer = broker_over(Recording(live=live)).call_tool("wiki.search_pages", {"query": "x"})

        assert answer["ok"] is True
        assert "'space' is a new argument" in answer["notices"][0]

    def test_other_words_are_no_change(self) -> None:
        live = {"description": "Other words", **dict(reversed(SEARCH_SCHEMA.items()))}

        answer = broker_over(Recording(live=live)).call_tool("wiki.search_pages", {"query": "x"})

        assert "notices" not in answer

    def test_bad_arguments_to_an_unchanged_tool_are_no_drift(self) -> None:
        answer = broker_over(Recording(live=copy.deepcopy(SEARCH_SCHEMA))).call_tool("wiki.search_pages", {})

        assert error_type(answer) == "ARGUMENT_VALIDATION_FAILED"

    def test_a_live_schema_that_is_none(self) -> None:
        answer = broker_over(Recording(live={"type": "nonsense"})).call_tool("wiki.search_pages", {"query": "x"})

        assert error_type(answer) == "TOOL_SCHEMA_CHANGED"
        assert "not a JSON Schema" in answer["error"]["message"]
