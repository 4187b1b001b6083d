from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzzing import ODD_TEXT, ODD_VALUES, check_told, fuzzed, in_time, mutations, spoilt_texts
from hypothesis import given
from hypothesis import strategies as st
from mcp_misbehaving import ODD_TOOLS, TOOLS
from terminal_output import is_control

from pytest_tooleval.errors import CaseError, ToolError, ToolUnavailableError
from pytest_tooleval.tools.arguments import argument_faults, without_refused_nulls
from pytest_tooleval.tools.mcp.answers import answer_text
from pytest_tooleval.tools.mcp.config import expand, load_mcp_config
from pytest_tooleval.tools.mcp.listing import server_tools
from pytest_tooleval.tools.mcp.stdio import message_of
from pytest_tooleval.tools.tool import ToolContext

CONFIG = {
    "mcpServers": {
        "git": {"command": "mcp-git", "args": ["--repository", "{worktree}", "${HOME:-x}"], "env": {"A": "${B:-}"}},
        "wiki": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-t}"}},
        "off": {
            "command": "x",
            "disabled": True,
            "isolated": True,
            "startSeconds": 5,
            "callSeconds": 1.5,
            "cwd": ".",
        },
    }
}
RESULT = {
    "content": [
        {"type": "text", "text": "a", "annotations": {}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "description": "d"},
        {"type": "resource", "resource": {"uri": "x", "text": "t"}},
        {"type": "resource", "resource": {"uri": "x", "blob": "aGk=", "mimeType": "a/b"}},
    ],
    "structuredContent": {"a": [1, 2]},
    "isError": False,
}
CONTEXT = ToolContext(Path("/nowhere"))


@fuzzed(60)
@given(mutations(st.just(CONFIG)).map(json.dumps).map(str.encode) | spoilt_texts(st.just(CONFIG)))
def test_any_configuration_is_servers_or_problems(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-mcp.json"
    path.write_bytes(data)
    with in_time():
        try:
            config = load_mcp_config(path, Path("mcp.json"))
        except CaseError as error:
            check_told(error)
            return
        for name, server in config.servers.items():
            assert isinstance(config.refusal(name), str)
            try:
                expanded = expand(server, {"HOME": "/h"}, Path("/w"))
            except ToolUnavailableError:
                continue
            assert all(isinstance(secret, str) for secret in expanded.secrets)


@fuzzed(80)
@given(mutations(st.just(RESULT)), st.sampled_from([200, 30_000]))
def test_any_result_is_a_text_in_bounds(result: Any, most: int) -> None:
    with in_time():
        try:
            text = answer_text(result if isinstance(result, dict) else {"content": result}, most)
        except ToolError as error:
            text = str(error)
    assert len(text) <= most
    text.encode()


@fuzzed(50)
@given(mutations(st.just([*TOOLS[:4], *ODD_TOOLS[1:4]])), st.dictionaries(ODD_TEXT, ODD_VALUES, max_size=2))
def test_any_list_of_tools_gives_tools_that_can_be_called(listed: Any, arguments: dict[str, Any]) -> None:
    listed = listed if isinstance(listed, list) else [listed]
    with in_time():
        found = server_tools("s", listed, lambda name, given, context: "called")
        for name, tool in found.tools.items():
            assert name == tool.name
            assert not any(map(is_control, name))
            json.dumps(tool.parameters).encode()
            assert isinstance(argument_faults(tool, without_refused_nulls(tool, arguments)), list)
            assert tool.run(arguments, CONTEXT) == "called"
        assert all(reason.strip() for reason in found.unusable.values())


REQUEST = {"jsonrpc": "2.0", "id": 5, "result": {"content": [], "structuredContent": {"a": 1}}}
FAILURE = {"jsonrpc": "2.0", "id": "x", "error": {"code": -32000, "message": "no", "data": [1]}}


@fuzzed(80)
@given(st.sampled_from([REQUEST, FAILURE]).flatmap(lambda value: spoilt_texts(mutations(st.just(value)))))
def test_any_line_is_a_message_or_none(line: bytes) -> None:
    with in_time():
        message_of(line)
