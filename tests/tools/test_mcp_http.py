"""MCP servers behind HTTP: real ones on the loopback, well behaved and not."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from loopback import Scripted, as_json, serving, unused_port
from mcp_misbehaving import Quirk, serving_http
from mcp_project import McpProject

from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools.source import CaseTools


@pytest.fixture
def project(tmp_path: Path) -> McpProject:
    return McpProject(tmp_path, {"PATH": os.environ["PATH"], "API_TOKEN": "s3cr3t-t0k3n"})


def refusal(project: McpProject, **entry: Any) -> str:
    with (
        project.servers(web=entry) as servers,
        pytest.raises(ToolUnavailableError) as caught,
        project.case(servers),
    ):
        pass
    return str(caught.value)


def loss(project: McpProject, tools: CaseTools, name: str, **arguments: Any) -> str:
    with pytest.raises(ToolUnavailableError) as caught:
        project.call(tools, name, **arguments)
    return str(caught.value)


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
def test_a_tool_is_called_over_http(project: McpProject, *, as_events: bool) -> None:
    headers = {"Authorization": "Bearer ${API_TOKEN}"}
    with serving_http(as_events=as_events) as server:
        with project.servers(web={"url": server.url, "headers": headers}) as servers:
            for _ in range(2):
                with project.case(servers) as tools:
                    assert project.call(tools, "echo", text="ä") == "echo: ä"
        assert {asked["authorization"] for asked in server.headers} == {"Bearer s3cr3t-t0k3n"}
        assert server.sessions == ["session-0"]
        assert server.ended_sessions == ["session-0"]
        assert {asked.get("mcp-session-id") for asked in server.headers} == {None, "session-0"}


def test_a_server_without_handshake_is_told_the_revision_with_every_request(project: McpProject) -> None:
    with serving_http(Quirk.MODERN_ONLY) as server, project.servers(web={"url": server.url}) as servers:
        with project.case(servers) as tools:
            assert project.call(tools, "echo", text="x") == "echo: x"
        last = server.headers[-1]
        told = [last[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-name")]
        assert told == ["2026-07-28", "tools/call", "echo"]


def test_a_long_result_comes_whole_over_either_kind_of_answer(project: McpProject) -> None:
    for as_events in (False, True):
        with (
            serving_http(as_events=as_events) as server,
            project.servers(web={"url": server.url}) as servers,
            project.case(servers) as tools,
        ):
            assert "of 3000000 characters" in project.call(tools, "huge", chars=3_000_000)


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
def test_a_result_beyond_all_bounds_is_no_measurement(project: McpProject, *, as_events: bool) -> None:
    with (
        serving_http(as_events=as_events) as server,
        project.servers(web={"url": server.url}) as servers,
        project.case(servers) as tools,
    ):
        message = loss(project, tools, "huge", chars=17 * 1024 * 1024)
    assert message.startswith("MCP server 'web' was lost during the call of huge: ")


def test_each_case_has_a_session_of_its_own_where_the_server_is_isolated(project: McpProject) -> None:
    with serving_http() as server, project.servers(web={"url": server.url, "isolated": True}) as servers:
        for _ in range(2):
            with project.case(servers):
                pass
        assert server.sessions == server.ended_sessions == ["session-0", "session-1"]


# Sessions


@pytest.mark.parametrize("faults", [[404], [404, 404]])
def test_a_session_that_the_server_forgot_is_begun_anew_once(project: McpProject, faults: list[int]) -> None:
    with serving_http() as server, project.servers(web={"url": server.url}) as servers:
        with project.case(servers) as tools:
            assert project.call(tools, "echo", text="a") == "echo: a"
            server.faults += faults
            if len(faults) == 1:
                assert project.call(tools, "echo", text="b") == "echo: b"
            else:
                said = "MCP server 'web' lost the session before the call of echo: Session terminated"
                assert loss(project, tools, "echo") == said
        assert server.sessions == ["session-0", "session-1"]
        assert server.faults == []
        assert server.server.calls == 3 - len(faults)


def test_an_error_of_the_tool_with_the_code_404_is_no_lost_session(project: McpProject) -> None:
    with (
        serving_http() as server,
        project.servers(web={"url": server.url}) as servers,
        project.case(servers) as tools,
    ):
        with pytest.raises(ToolError, match=r"^The server answered with an error: no such page \(code 404\)$"):
            project.call(tools, "refuse", code=404, text="no such page")
        assert server.sessions == ["session-0"]


def test_a_session_that_ended_between_cases_is_begun_anew(project: McpProject) -> None:
    with serving_http(Quirk.MUTE_LIST) as server:
        entry = {"url": server.url, "startSeconds": 1}
        with project.servers(web=entry) as servers:
            with project.case(servers):
                pass
            server.server.quirks = frozenset()
            with project.case(servers) as tools:
                assert project.call(tools, "echo", text="x") == "echo: x"


# What goes wrong


@pytest.mark.parametrize(
    ("status", "words"), [(500, "HTTP 500 Internal Server Error"), (429, "HTTP 429 Too Many Requests")]
)
def test_a_status_that_is_no_answer_is_no_measurement(project: McpProject, status: int, words: str) -> None:
    with (
        serving_http() as server,
        project.servers(web={"url": server.url}) as servers,
        project.case(servers) as tools,
    ):
        server.faults = [status]
        assert loss(project, tools, "echo") == f"MCP server 'web' was lost during the call of echo: {words}"
        assert project.call(tools, "echo", text="x") == "echo: x"


def test_nobody_listens(project: McpProject) -> None:
    address = f"127.0.0.1:{unused_port()}"
    for kind in ("http", "sse"):
        message = refusal(project, url=f"http://me:pa55word@{address}/mcp?api_key=sk-12345678", type=kind)
        assert message == (
            f"MCP server 'web' could not be reached: no connection to http://{address} "
            "(All connection attempts failed); is it running, and is the address right?"
        )


CREDENTIALS = "; give credentials that it accepts under 'headers'"
ADDRESS = '; is the path of the URL right? For the other transport say "type": '


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("http", 401, f"HTTP 401 Unauthorized{CREDENTIALS}"),
        ("sse", 401, f"HTTP 401 Unauthorized{CREDENTIALS}"),
        ("sse", 403, f"HTTP 403 Forbidden{CREDENTIALS}"),
        ("http", 404, f'HTTP 404 Not Found{ADDRESS}"sse"'),
        ("http", 405, f'HTTP 405 Method Not Allowed{ADDRESS}"sse"'),
        ("sse", 404, f'HTTP 404 Not Found{ADDRESS}"http"'),
        ("http", 500, "HTTP 500 Internal Server Error"),
        ("sse", 500, "HTTP 500 Internal Server Error"),
    ],
)
def test_a_server_that_does_not_let_us_in(project: McpProject, kind: str, status: int, told: str) -> None:
    with serving_http() as server:
        server.refuses = status
        message = refusal(project, url=f"{server.url}?api_key=sk-12345678", type=kind)
    assert message == f"MCP server 'web' could not be reached: it answered with {told}"


def test_what_a_server_says_beside_the_status_is_told(project: McpProject) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no tenant s3cr3t-t0k3n"}}
    with serving(as_json(error, 400)) as server:
        message = refusal(project, url=server.url, headers={"X-Tenant": "${API_TOKEN}"})
    assert message == (
        "MCP server 'web' could not be reached: it answered with HTTP 400 Bad Request: no tenant [redacted]"
    )


def test_a_web_page_is_no_server(project: McpProject) -> None:
    with serving(Scripted(200, body=b"<html>", headers={"Content-Type": "text/html"})) as server:
        message = refusal(project, url=server.url)
    assert message == (
        "MCP server 'web' could not be reached: Unexpected content type: text/html; "
        "is this the URL of an MCP server?"
    )


def test_a_server_that_never_answers(project: McpProject) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        message = refusal(project, url=f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", startSeconds=0.3)
    assert message == (
        "MCP server 'web' could not be reached: no answer to initialize within 0.3 s; "
        "raise its startSeconds if it needs longer"
    )


def test_a_server_that_goes_away_in_a_call(project: McpProject) -> None:
    with serving_http() as server, project.servers(web={"url": server.url}) as servers:
        with project.case(servers) as tools:
            server.hangs_up = True
            assert "was lost during the call of echo: RemoteProtocolError" in loss(project, tools, "echo")
        server.hangs_up = False
        with project.case(servers) as tools:
            assert project.call(tools, "echo", text="x") == "echo: x"


def test_a_call_without_an_answer_is_given_up(project: McpProject) -> None:
    with (
        serving_http() as server,
        project.servers(web={"url": server.url, "callSeconds": 0.3}) as servers,
        project.case(servers) as tools,
    ):
        message = loss(project, tools, "raw", line="")
    assert message == (
        "MCP server 'web' gave no answer to the call of raw within 0.3 s; raise its callSeconds if it needs longer"
    )


def test_a_url_from_a_variable_is_checked_when_it_is_known(project: McpProject) -> None:
    message = refusal(project, url="${API_TOKEN}")
    assert message == (
        "the URL of MCP server 'web' does not begin with http:// or https://; see mcp.json at /mcpServers/web"
    )
