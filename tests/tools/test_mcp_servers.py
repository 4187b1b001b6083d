"""MCP servers as cases use them: real processes, well behaved and not, and nothing of them left afterwards."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp_misbehaving import Quirk
from mcp_project import MARK, McpProject, misbehaving, processes_with, soon, tool_named

from pytest_tooleval.cases.case import ServerUse
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools.mcp.servers import McpServers
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.source import CaseTools
from pytest_tooleval.tools.tool import ToolLimits


@pytest.fixture
def project(tmp_path: Path) -> McpProject:
    return McpProject(tmp_path, {"PATH": os.environ["PATH"], "HOME": "/home/me", "OPENAI_API_KEY": "sk-secret-key"})


def refusal(project: McpProject, *quirks: Quirk, **keys: Any) -> str:
    """Return what is said when no case can use a server of these quirks."""
    with project.servers(odd=misbehaving(*quirks, **keys)) as servers:
        return refusal_of_case(project, servers)


def refusal_of_case(project: McpProject, servers: McpServers, *uses: ServerUse | str, **keys: Any) -> str:
    with pytest.raises(ToolUnavailableError) as caught, project.case(servers, *uses, **keys):
        pass
    return str(caught.value)


def loss(project: McpProject, tools: CaseTools, name: str, **arguments: Any) -> str:
    """Return what is said when a call loses its server."""
    with pytest.raises(ToolUnavailableError) as caught:
        project.call(tools, name, **arguments)
    return str(caught.value)


def tool_error(project: McpProject, tools: CaseTools, name: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        project.call(tools, name, **arguments)
    return str(caught.value)


def process_of_own(project: McpProject, tools: CaseTools) -> int:
    return int(project.call(tools, "own__count").split()[0])


def process_of(project: McpProject, tools: CaseTools) -> int:
    return int(project.call(tools, "count").split()[0])


# The tools


def test_a_tool_of_a_server_is_called(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        assert project.call(tools, "echo", text="hello") == "echo: hello"
        echo = tools.offer.offered["echo"]
        assert (echo.category, echo.description, echo.needs_directory) == ("mcp", "Tool echo.", False)
        assert echo.parameters == {"type": "object", "properties": {"text": {"type": "string"}}}
    assert tools.notes == []


def test_arguments_reach_the_server_whatever_text_they_hold(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        assert project.call(tools, "echo", text="ä\u2028\n\x00 \U0001f600") == "echo: ä\u2028\n\x00 \U0001f600"
        assert project.call(tools, "echo", text="half \ud83d") == "echo: half \ufffd"


def test_only_the_chosen_tools_are_offered(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        with project.case(servers, ServerUse("own", ("echo", "[lr]e*"))) as tools:
            assert list(tools.offer.offered) == ["echo", "refuse", "leave", "learn"]
        assert refusal_of_case(project, servers, ServerUse("own", ("ecoh",))) == (
            "MCP server 'own' has no tool 'ecoh' (did you mean 'echo'?)"
        )
        message = refusal_of_case(project, servers, ServerUse("own", ("git_*",)))
        assert message.startswith("MCP server 'own' has no tool that 'git_*' matches; it has: echo, where, ")


def test_two_servers_with_the_same_tools_are_told_apart(project: McpProject) -> None:
    own = Offer({"where": tool_named("where")}, {"slow": "not now"})
    with project.servers(a=misbehaving(), b=misbehaving(isolated=True)) as servers:
        uses = ServerUse("a", ("where", "count")), ServerUse("b", ("count", "echo", "slow"))
        with project.case(servers, *uses, base=own, tools_deny=("b__slow",)) as tools:
            assert list(tools.offer.offered) == ["where", "a__where", "a__count", "echo", "b__count"]
            assert tools.offer.denied == {"slow": "not now", "b__slow": "this task denies it"}
            assert project.call(tools, "where") == "own where"
            assert project.call(tools, "a__where") == str(project.folder)
            assert project.call(tools, "a__count").split()[0] != project.call(tools, "b__count").split()[0]
        with project.case(servers, *reversed(uses), base=own, tools_deny=("b__slow",)) as reversed_tools:
            assert set(reversed_tools.offer.offered) == set(tools.offer.offered)


def test_tools_that_cannot_be_offered_are_denied_with_the_reason_and_spoil_no_other(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.ODD_TOOLS)) as servers, project.case(servers) as tools:
        red = "\\x1b[31mred\\x1b[0m\\n"
        assert list(tools.offer.offered) == ["echo", "untyped", "bare", red, "half \ufffd"]
        assert project.call(tools, "untyped", text="x") == "untyped: x"
        assert project.call(tools, "half \ufffd") == "half \ufffd: "
        assert project.call(tools, red) == "\x1b[31mred\x1b[0m\n: "
        assert tools.offer.offered[red].description == "\\x1b]0;title\\x07 and \\u202e back"
        assert tools.offer.offered["untyped"].parameters["type"] == "object"
        assert tools.offer.offered["bare"].parameters == {"type": "object"}
        reasons = tools.offer.denied
        assert reasons["listed"] == "its arguments are of type 'array'; expected 'object'"
        assert reasons["broken"].startswith("the schema of tool 'broken' is not a JSON Schema: ")
        assert reasons["deep"].endswith(("Recursion limit reached", "is nested too deeply"))
        assert "nothing is fetched" in reasons["remote"]
        assert reasons["x" * 199 + "…"] == "its name has 500 characters, and 200 are the most"
        assert len(reasons) == 5


def test_a_denied_tool_that_is_not_there_is_an_error(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        message = refusal_of_case(project, servers, tools_deny=("ecoh",))
    assert message == "'tools_deny' names 'ecoh', and there is no such tool (did you mean 'echo'?)"


@pytest.mark.parametrize(
    ("quirk", "reason"),
    [
        (Quirk.SAME_CURSOR, "the cursor 'again' came again"),
        (Quirk.ENDLESS_PAGES, "more than 100 pages or 5000 tools"),
    ],
)
def test_a_list_without_end_is_given_up(project: McpProject, quirk: Quirk, reason: str) -> None:
    assert refusal(project, quirk) == (
        f"MCP server 'odd' lists its tools without end: {reason}; the last page must have no nextCursor"
    )


def test_all_pages_are_taken_and_an_empty_cursor_is_the_end(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.PAGES)) as servers, project.case(servers) as tools:
        assert list(tools.offer.offered) == ["echo", "where", "environment"]


def test_the_tools_are_those_that_the_server_has_when_the_case_begins(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        with project.case(servers) as first:
            assert project.call(first, "learn", name="dance") == "learnt"
            assert "dance" not in first.offer.offered
            assert project.call(first, "echo", text="a") == "echo: a"
        with project.case(servers) as second:
            assert project.call(second, "dance") == "dance: "


# Results


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"code": -32602, "text": "Unknown tool: x"}, "Unknown tool: x (code -32602)"),
        ({"code": -32000, "text": "Connection closed"}, "Connection closed (code -32000)"),
        ({"code": 404, "text": "no such row"}, "no such row (code 404)"),
    ],
)
def test_an_error_of_the_protocol_is_told_to_the_model(
    project: McpProject, arguments: dict[str, Any], message: str
) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        assert tool_error(project, tools, "refuse", **arguments) == f"The server answered with an error: {message}"
        assert project.call(tools, "echo", text="still here") == "echo: still here"


def test_a_failure_of_the_tool_is_told_to_the_model(project: McpProject) -> None:
    failed = {"content": [{"type": "text", "text": "no such table"}], "isError": True}
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        assert tool_error(project, tools, "answer", result=failed) == "no such table"
        assert project.call(tools, "answer", result={**failed, "isError": None}) == "no such table"


def test_a_long_result_is_cut(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        text = project.call(tools, "huge", chars=2_000_000)
    assert len(text) == project.context.limits.result_chars
    assert text.endswith("x\n[cut: the beginning of 2000000 characters; ask for a smaller part]")


def test_a_result_beyond_all_bounds_loses_the_server(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        message = loss(project, tools, "huge", chars=17 * 1024 * 1024)
    assert (
        message
        == "MCP server 'own' was lost during the call of huge: it sent a message of more than 16777216 bytes"
    )


@pytest.mark.parametrize("line", ['{"jsonrpc": "2.0", "id": ID, "result": 7}', '{"id": ID, "error": "oops"}'])
def test_an_answer_that_breaks_the_protocol_is_no_measurement(project: McpProject, line: str) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        message = loss(project, tools, "raw", line=line)
        assert message == "MCP server 'own' was lost during the call of raw: its answer is no JSON-RPC response"


def test_half_of_a_surrogate_pair_in_an_answer_spoils_nothing(project: McpProject) -> None:
    result = '{"content": [{"type": "text", "text": "a \\ud800 b"}]}'
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        line = f'{{"jsonrpc": "2.0", "id": ID, "result": {result}}}'
        assert project.call(tools, "raw", line=line) == "a \ufffd b"


def test_what_a_server_asks_for_is_refused(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        assert json.loads(project.call(tools, "ask")) == {
            "sampling/createMessage": "Sampling not supported",
            "elicitation/create": "Elicitation not supported",
            "roots/list": "List roots not supported",
            "ping": {},
        }


# What servers print


def test_lines_that_are_no_messages_are_skipped_and_noted_once(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.BANNER)) as servers:
        with project.case(servers) as first:
            assert project.call(first, "print", text="one more") == "printed"
        with project.case(servers) as second:
            assert project.call(second, "echo", text="x") == "echo: x"
    assert first.notes == [
        "MCP server 'own' printed 6 lines on stdout that are no JSON-RPC and belong on stderr, first: "
        "Server v1 started | { | 'ready': True"
    ]
    assert second.notes == []


@pytest.mark.parametrize("quirk", [Quirk.CHATTY, Quirk.FLOOD])
def test_a_server_that_talks_without_end_does_no_harm(project: McpProject, quirk: Quirk) -> None:
    with project.servers(own=misbehaving(quirk), other=misbehaving()) as servers, project.case(servers) as tools:
        for _ in range(3):
            assert project.call(tools, "own__echo", text="x") == "echo: x"
            assert project.call(tools, "other__echo", text="y") == "echo: y"


def test_a_server_that_asks_without_end_and_reads_no_answer_is_given_up(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.BEGGAR, callSeconds=0.5)) as servers, project.case(servers) as tools:
        assert loss(project, tools, "echo") == (
            "MCP server 'own' gave no answer to the call of echo within 0.5 s; "
            "raise its callSeconds if it needs longer"
        )


# Starting


def test_a_server_that_ends_at_once_says_why(project: McpProject) -> None:
    assert refusal(project, Quirk.BROKEN, env={"TOKEN": "hunter22"}) == (
        "MCP server 'odd' could not be started: it closed its output (exit code 1)\n"
        "  stderr: cannot find my \\x1b[31mdatabase\\x1b[0m: TOKEN is [redacted]"
    )


def test_a_server_that_never_answers_is_given_up(project: McpProject) -> None:
    started = time.monotonic()
    message = refusal(project, Quirk.SILENT, startSeconds=0.3)
    assert message == (
        "MCP server 'odd' could not be started: no answer to initialize within 0.3 s; "
        "raise its startSeconds if it needs longer"
    )
    assert time.monotonic() - started < 5


def test_a_server_of_an_unknown_revision_is_refused(project: McpProject) -> None:
    assert "Unsupported protocol version from the server: 1999-01-01" in refusal(project, Quirk.OLD)


def test_a_server_without_handshake_is_used_in_the_newer_way(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.MODERN_ONLY)) as servers, project.case(servers) as tools:
        assert project.call(tools, "echo", text="x") == "echo: x"
        asks = {"resultType": "input_required", "inputRequests": {}}
        assert "there is none to give" in tool_error(project, tools, "answer", result=asks)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "nodee"}, "there is no program 'nodee' on PATH (did you mean 'node'?)"),
        ({"command": "zzz-server"}, "there is no program 'zzz-server' on PATH: install it, or give its path"),
        ({"command": "${NO_SUCH:-  }"}, "there is no program '  ' on PATH: install it, or give its path"),
        (
            {"command": "python3 server.py"},
            "there is no program 'python3 server.py': 'command' is 'python3' alone, "
            "and what follows stands in 'args'",
        ),
        ({"command": "./missing.py"}, "there is no file {folder}/missing.py"),
        (
            {"command": "./mcp.json"},
            "{folder}/mcp.json is not executable: chmod +x, or if an interpreter is to run it "
            "name it under 'command', and this file under 'args'",
        ),
        (
            {"command": "./headless"},
            "{folder}/headless does not say in its first line which interpreter runs it: "
            "name it under 'command', and this file under 'args'",
        ),
        (
            {"command": "./wrong-head"},
            "the interpreter that {folder}/wrong-head names in its first line is not there; "
            "name it under 'command', and this file under 'args'",
        ),
        ({"command": "./"}, "{folder}: Permission denied"),
        ({"command": "sh", "cwd": "nowhere"}, "its folder {folder}/nowhere does not exist"),
        ({"command": "sh", "args": ["a\0b"]}, "embedded null byte"),
    ],
)
def test_a_program_that_cannot_be_started(project: McpProject, entry: dict[str, Any], reason: str) -> None:
    for name, content in (("headless", "print()\n"), ("wrong-head", "#!/no/such/python\n")):
        (project.folder / name).write_text(content)
        (project.folder / name).chmod(0o755)
    with project.servers(own=entry) as servers:
        message = refusal_of_case(project, servers)
    shown = reason.format(folder=project.folder)
    assert message == f"MCP server 'own' cannot be started: {shown}; see mcp.json at /mcpServers/own"


def test_a_program_that_is_not_found_where_it_runs_is_told_apart(project: McpProject) -> None:
    (project.folder / "server.py").write_text("import sys; sys.exit('no database')")
    lost = {"command": sys.executable, "args": ["server.py"]}
    with project.servers(own=lost, isolated={**lost, "isolated": True}, elsewhere={**lost, "cwd": "/"}) as servers:
        first, *others = refusal_of_case(project, servers, "isolated").splitlines()
        assert first == "MCP server 'isolated' could not be started: it closed its output (exit code 2)"
        assert others[-1] == (
            "  its argument 'server.py' stands beside the configuration, and a server of one case runs in the "
            'case\'s folder: add "cwd": "."'
        )
        assert refusal_of_case(project, servers, "elsewhere").splitlines()[-1] == (
            "  its argument 'server.py' is looked for in its 'cwd', and stands beside the configuration"
        )
        assert refusal_of_case(project, servers, "own").splitlines()[1:] == ["  stderr: no database"]
        (project.worktree / "server.py").write_text("")
        assert len(refusal_of_case(project, servers, "isolated").splitlines()) == 1


def test_a_missing_variable_is_an_error_of_the_cases_that_need_it_only(project: McpProject) -> None:
    needy = misbehaving(env={"A": "${DATABASE_URL}", "B": "${REGION:-north}", "C": "${DATABASE_URL}${OTHER}"})
    with project.servers(needy=needy, own=misbehaving()) as servers:
        with project.case(servers, "own") as tools:
            assert project.call(tools, "echo", text="x") == "echo: x"
        assert refusal_of_case(project, servers, "needy") == (
            "MCP server 'needy' needs the environment variables that mcp.json at /mcpServers/needy names; "
            "not set: DATABASE_URL, OTHER. Set them, or give a default as ${NAME:-default}"
        )


def test_what_the_configuration_lacks_or_disables(project: McpProject) -> None:
    with project.servers(own=misbehaving(), off=misbehaving(disabled=True)) as servers:
        assert refusal_of_case(project, servers, "onw") == (
            "'mcp' names the server 'onw', which is not in mcp.json (did you mean 'own'?)"
        )
        assert refusal_of_case(project, servers, "off") == (
            "'mcp' names the server 'off', which is disabled in mcp.json"
        )


def test_a_server_that_cannot_be_started_is_not_tried_for_ever(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.SILENT, startSeconds=0.2)) as servers:
        said = [refusal_of_case(project, servers) for _ in range(3)]
        started = time.monotonic()
        last = refusal_of_case(project, servers)
        assert time.monotonic() - started < 0.1
    assert len(set(said)) == 1
    assert last == f"{said[0]}\n  not tried again after 3 failed starts"


def test_those_who_wait_for_a_start_that_fails_share_the_failure(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.SILENT, startSeconds=0.5)) as servers, ThreadPoolExecutor(8) as pool:
        started = time.monotonic()
        said = list(pool.map(lambda _: refusal_of_case(project, servers), range(8)))
        assert time.monotonic() - started < 1.5
    (message,) = set(said)
    assert message.startswith("MCP server 'own' could not be started: no answer to initialize within 0.5 s; ")


# Whose server, where and with what


def test_cases_share_a_server(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> int:
            with project.case(servers) as tools:
                assert project.call(tools, "echo", text=str(number)) == f"echo: {number}"
                return process_of(project, tools)

        assert len(set(pool.map(work, range(40)))) == 1


def test_a_shared_server_gets_few_variables_and_no_keys(project: McpProject) -> None:
    with (
        project.servers(own=misbehaving(env={"MODE": "${MODE:-fast}", "HOME": "/srv"})) as servers,
        project.case(servers) as tools,
    ):
        assert project.call(tools, "where") == str(project.folder)
        variables = json.loads(project.call(tools, "environment"))
    ours = {"PATH", "HOME", "MODE", "TOOLEVAL_COMMAND", "LC_CTYPE", MARK}
    assert variables.keys() <= ours
    assert (variables["MODE"], variables["HOME"], variables["PATH"]) == ("fast", "/srv", os.environ["PATH"])


@pytest.mark.parametrize(
    "keys",
    [{"isolated": True}, {"env": {"ROOT": "{worktree}/x"}}, {"cwd": "{worktree}"}],
    ids=["isolated", "env", "cwd"],
)
def test_a_server_of_one_case_lives_in_its_folder_and_no_longer(project: McpProject, keys: dict[str, Any]) -> None:
    with project.servers(own=misbehaving(**keys)) as servers:
        with project.case(servers) as tools:
            first = process_of(project, tools)
            assert project.call(tools, "where") == str(project.worktree)
            variables = json.loads(project.call(tools, "environment"))
            assert variables["HOME"] == project.context.environment["HOME"]
            assert variables.get("ROOT", f"{project.worktree}/x") == f"{project.worktree}/x"
        assert first not in processes_with(project.mark)
        with project.case(servers) as tools:
            assert process_of(project, tools) != first


def test_paths_begin_at_the_configuration(project: McpProject) -> None:
    program = project.folder / "bin" / "serve"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec {shlex.join([misbehaving()['command'], *misbehaving()['args']])}\n")
    program.chmod(0o755)
    with (
        project.servers(own={"command": "bin/serve", "cwd": "bin", "isolated": True}) as servers,
        project.case(servers) as tools,
    ):
        assert project.call(tools, "where") == str(program.parent)


# Losing servers


def test_a_server_that_dies_in_a_call_is_started_anew_for_the_next_case(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        with project.case(servers) as tools:
            first = process_of(project, tools)
            message = loss(project, tools, "die")
            assert message == (
                "MCP server 'own' was lost during the call of die: it closed its output (killed by SIGKILL)"
            )
        with project.case(servers) as tools:
            assert process_of(project, tools) != first


def test_the_last_words_of_a_server_are_told(project: McpProject) -> None:
    with project.servers(own=misbehaving(env={"TOKEN": "hunter22"})) as servers, project.case(servers) as tools:
        words = "\n".join([*(f"line {number}" for number in range(100)), "TOKEN hunter22 is \x1b[1mwrong\x1b[0m"])
        message = loss(project, tools, "leave", code=3, words=words)
    head, *lines = message.splitlines()
    assert head == "MCP server 'own' was lost during the call of leave: it closed its output (exit code 3)"
    assert lines[0] == "  stderr: line 93"
    assert lines[-1] == "  stderr: TOKEN [redacted] is \\x1b[1mwrong\\x1b[0m"
    assert len(lines) == 8


def test_a_server_that_died_between_cases_is_started_anew(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        with project.case(servers) as tools:
            first = process_of(project, tools)
        os.kill(first, 9)
        with project.case(servers) as tools:
            assert process_of(project, tools) != first


def test_a_case_that_has_called_nothing_yet_gets_another_server_and_one_that_has_does_not(
    project: McpProject,
) -> None:
    with (
        project.servers(own=misbehaving()) as servers,
        project.case(servers) as used,
        project.case(servers) as unused,
    ):
        first = process_of(project, used)
        loss(project, used, "die")
        assert process_of(project, unused) != first
        said = "MCP server 'own' was lost before the call of count: it closed its output (killed by SIGKILL)"
        assert loss(project, used, "count") == said


def test_a_server_that_does_not_list_its_tools_again_is_started_anew(project: McpProject) -> None:
    with project.servers(own=misbehaving(Quirk.MUTE_LIST, startSeconds=0.5)) as servers:
        with project.case(servers) as tools:
            first = process_of(project, tools)
        with project.case(servers) as tools:
            assert process_of(project, tools) != first


def test_a_server_that_others_lose_while_it_is_started_anew_is_started_once_more(project: McpProject) -> None:
    quirk = misbehaving(Quirk.MUTE_LIST, startSeconds=1)
    with project.servers(own=quirk) as servers, ThreadPoolExecutor(2) as pool:
        with project.case(servers):
            pass

        def process(_: int) -> int:
            with project.case(servers) as tools:
                return process_of(project, tools)

        assert len(set(pool.map(process, range(2)))) == 2


def test_a_call_that_takes_too_long_loses_the_server_for_later_cases_only(project: McpProject) -> None:
    with project.servers(own=misbehaving(callSeconds=0.4)) as servers:
        with project.case(servers) as other, project.case(servers) as tools:
            first = process_of(project, tools)
            assert process_of(project, other) == first
            message = loss(project, tools, "slow", seconds=0.8)
            assert message.startswith("MCP server 'own' gave no answer to the call of slow within 0.4 s; ")
            with project.case(servers) as later:
                assert process_of(project, later) != first
            assert soon(lambda: project.call(other, "echo", text="x") == "echo: x")
            assert process_of(project, other) == first
            assert first in processes_with(project.mark)
        assert first not in processes_with(project.mark)


def test_a_call_that_has_less_time_than_usual_loses_no_server(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers:
        with project.case(servers) as tools:
            first = process_of(project, tools)
            hurried = replace(project.context, limits=ToolLimits(mcp_seconds=0.2))
            with pytest.raises(ToolError, match=r"^The call was given up after 0.2 s: no more time was left.$"):
                tools.offer.offered["slow"].run({"seconds": 0.5}, hurried)
        with project.case(servers) as tools:
            assert process_of(project, tools) == first


def test_a_server_that_hangs_in_a_call_that_was_given_up_is_started_anew_soon(project: McpProject) -> None:
    with project.servers(own=misbehaving()) as servers, project.case(servers) as other:
        with project.case(servers) as tools:
            first = process_of(project, tools)
            assert process_of(project, other) == first
            hurried = replace(project.context, limits=ToolLimits(mcp_seconds=0.2))
            with pytest.raises(ToolError, match="no more time was left"):
                tools.offer.offered["slow"].run({"seconds": 4}, hurried)
        started = time.monotonic()
        with project.case(servers) as tools:
            assert process_of(project, tools) != first
            assert time.monotonic() - started < 3.5
        assert soon(lambda: project.call(other, "echo", text="x") == "echo: x")
        assert process_of(project, other) == first


def test_a_call_behind_one_that_hangs_says_nothing_about_its_case(project: McpProject) -> None:
    hurried = replace(project.context, limits=ToolLimits(mcp_seconds=0.2))
    with (
        project.servers(own=misbehaving()) as servers,
        project.case(servers) as tools,
        project.case(servers) as other,
    ):
        with pytest.raises(ToolError, match="no more time was left"):
            tools.offer.offered["slow"].run({"seconds": 1.5}, hurried)
        with pytest.raises(ToolUnavailableError) as caught:
            other.offer.offered["echo"].run({"text": "x"}, hurried)
        assert str(caught.value) == (
            "MCP server 'own' gave no answer to the call of echo within 0.2 s: it may hang in a call of another case; "
            "with 'isolated' each case has a server of its own"
        )
        assert project.call(other, "echo", text="y") == "echo: y"
        with pytest.raises(ToolError, match="no more time was left"):
            tools.offer.offered["slow"].run({"seconds": 0.4}, hurried)


def test_closing_ends_calls_that_are_under_way(project: McpProject) -> None:
    said: list[str] = []
    with project.servers(own=misbehaving()) as servers, project.case(servers) as tools:
        thread = threading.Thread(target=lambda: said.append(loss(project, tools, "slow", seconds=60)))
        thread.start()
        time.sleep(0.2)
        servers.close()
        thread.join(10)
        assert said[0].startswith("MCP server 'own' was lost during the call of slow: it was closed")
        assert loss(project, tools, "echo").startswith("MCP server 'own' was lost before the call of echo")
        assert refusal_of_case(project, servers) == "no MCP server can be used any more: the run is over"


# Ending servers


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda command: ["sh", "-c", f"{command} & wait"],
        lambda command: ["sh", "-c", f"true; {command}; true"],
        lambda command: ["sh", "-c", f"setsid {command}"],
    ],
    ids=["background", "foreground", "setsid"],
)
def test_a_server_behind_a_wrapper_is_gone_afterwards(
    project: McpProject, wrapped: Callable[[str], list[str]]
) -> None:
    entry = misbehaving(Quirk.FAMILY)
    program, *arguments = wrapped(f"{shlex.join([entry['command'], *entry['args']])} <&3")
    wrapper = ["sh", "-c", f"exec 3<&0; {shlex.join([program, *arguments])}"]
    with (
        project.servers(own={"command": wrapper[0], "args": wrapper[1:]}) as servers,
        project.case(servers) as tools,
    ):
        assert project.call(tools, "echo", text="x") == "echo: x"


def test_cases_may_end_in_any_order_and_in_any_thread(project: McpProject) -> None:
    with project.servers(own=misbehaving(isolated=True), shared=misbehaving()) as servers:
        cases = [project.case(servers) for _ in range(3)]
        pids = [process_of_own(project, case.__enter__()) for case in cases]
        for case, pid in zip(cases, pids, strict=True):
            thread = threading.Thread(target=case.__exit__, args=(None, None, None))
            thread.start()
            thread.join(10)
            assert pid not in processes_with(project.mark)
        with project.case(servers, "shared") as tools:
            assert project.call(tools, "echo", text="x") == "echo: x"


def test_a_server_that_will_not_end_is_killed_in_time(project: McpProject) -> None:
    stubborn = misbehaving(Quirk.STUBBORN)
    with project.servers(a=stubborn, b=stubborn, c=misbehaving(Quirk.STUBBORN, Quirk.FAMILY)) as servers:
        with project.case(servers):
            pass
        started = time.monotonic()
        servers.close()
        assert time.monotonic() - started < 7
