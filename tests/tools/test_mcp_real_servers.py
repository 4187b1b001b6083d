"""MCP servers that others wrote: from PyPI, from npm, and with the package's own server over both HTTP transports."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("mcp")

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError as OutOfPaperError
from mcp_project import McpProject, soon
from pydantic import BaseModel

from pytest_tooleval.cases.case import ServerUse
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools.source import CaseTools

BIN = Path(sys.executable).parent
NPM_CACHE = str(Path.home() / ".npm")  # before tests get a home of their own
NO_NETWORK = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network|startSeconds")


@pytest.fixture
def project(tmp_path: Path) -> McpProject:
    return McpProject(tmp_path, os.environ)


def needs(program: str) -> str:
    """Return the path of a program that comes with a package for development."""
    if not (BIN / program).exists():
        pytest.skip(f"{program} is not installed: pip install {program}")
    return str(BIN / program)


def test_a_server_for_the_time(project: McpProject) -> None:
    entry = {"command": needs("mcp-server-time"), "args": ["--local-timezone", "Europe/Oslo"]}
    with project.servers(time=entry) as servers, project.case(servers) as tools:
        assert list(tools.offer.offered) == ["get_current_time", "convert_time"]
        noon = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
        assert json.loads(project.call(tools, "convert_time", **noon))["time_difference"] == "-9.0h"
        with pytest.raises(ToolError, match=r"(?i)invalid timezone"):
            project.call(tools, "get_current_time", timezone="Nowhere/City")


def test_a_server_for_git_works_in_the_folder_of_the_case(project: McpProject) -> None:
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", project.worktree], check=True)
    (project.worktree / "new.txt").write_text("x\n")
    entry = {"command": needs("mcp-server-git"), "args": ["--repository", "{worktree}"]}
    with (
        project.servers(git=entry) as servers,
        project.case(servers, ServerUse("git", ("git_status", "git_log"))) as tools,
    ):
        assert list(tools.offer.offered) == ["git_status", "git_log"]
        status = project.call(tools, "git_status", repo_path=str(project.worktree))
        assert "new.txt" in status
        with pytest.raises(ToolError, match="outside the allowed repository"):
            project.call(tools, "git_status", repo_path="/")


# The package's own server


class Point(BaseModel):
    x: int
    y: int


def own_server() -> MCPServer:
    server = MCPServer("own")

    @server.tool()
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @server.tool()
    def point() -> Point:
        return Point(x=1, y=2)

    @server.tool()
    def picture() -> Image:
        return Image(data=b"12345", format="png")

    @server.tool()
    async def steps(context: Context[Any, Any]) -> str:
        for step in range(20):
            await context.report_progress(step, 20)
        return "done"

    @server.tool()
    def fail() -> str:
        raise OutOfPaperError("out of paper")

    return server


@contextlib.contextmanager
def listening(kind: Literal["http", "sse"]) -> Iterator[str]:
    """Run the server on the loopback and give its URL."""
    app = own_server().streamable_http_app() if kind == "http" else own_server().sse_app()
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="critical", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert soon(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_the_package_s_own_server_over_http(project: McpProject, kind: Literal["http", "sse"]) -> None:
    with listening(kind) as url, project.servers(own={"type": kind, "url": url}) as servers:
        for _ in range(2):
            with project.case(servers) as tools:
                assert project.call(tools, "double", number=21) == "42"
                assert json.loads(project.call(tools, "point")) == {"x": 1, "y": 2}
                assert project.call(tools, "picture") == "[image: image/png, 5 bytes]"
                assert project.call(tools, "steps") == "done"
                with pytest.raises(ToolError, match="out of paper"):
                    project.call(tools, "fail")


# From npm


@contextlib.contextmanager
def from_npm(project: McpProject, package: str, *arguments: str) -> Iterator[CaseTools]:
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    env = {"HOME": "${HOME}", "npm_config_cache": NPM_CACHE, "npm_config_prefer_offline": "true"}
    entry = {"command": "npx", "args": ["-y", package, *arguments], "env": env, "startSeconds": 60}
    with project.servers(npm=entry) as servers, contextlib.ExitStack() as stack:
        try:
            tools = stack.enter_context(project.case(servers))
        except ToolUnavailableError as error:
            if NO_NETWORK.search(str(error)):
                pytest.skip(f"{package} cannot be had from npm: {error}")
            raise
        yield tools


def test_the_server_with_everything(project: McpProject) -> None:
    with from_npm(project, "@modelcontextprotocol/server-everything") as tools:
        assert project.call(tools, "echo", message="hi") == "Echo: hi"
        assert re.search(r"\[image: image/png, \d+ bytes\]", project.call(tools, "get-tiny-image"))
        assert json.loads(project.call(tools, "get-structured-content", location="New York")).keys() >= {
            "temperature"
        }
        assert project.call(tools, "get-resource-links", count=2).count("[resource link: ") == 2
        assert "[resource: demo://resource/dynamic/text/1]\n" in project.call(
            tools, "get-resource-reference", resourceType="Text", resourceId=1
        )
        done = project.call(tools, "trigger-long-running-operation", duration=0.2, steps=2)
        assert done.startswith("Long running operation completed")
        assert "OPENAI_API_KEY" not in project.call(tools, "get-env")


def test_the_server_for_files_works_in_the_folder_of_the_case(project: McpProject) -> None:
    (project.worktree / "a.txt").write_text("hello")
    with from_npm(project, "@modelcontextprotocol/server-filesystem", "{worktree}") as tools:
        assert project.call(tools, "read_text_file", path=str(project.worktree / "a.txt")) == "hello"
        with pytest.raises(ToolError, match="outside allowed directories"):
            project.call(tools, "read_text_file", path="/etc/passwd")
