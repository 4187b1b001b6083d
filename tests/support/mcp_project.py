"""A configuration of MCP servers, cases that use them, and the processes that are left."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mcp_misbehaving
import psutil
from mcp_misbehaving import Quirk

from pytest_tooleval.cases.case import ServerUse, Source, ToolUseCase
from pytest_tooleval.tools.mcp.config import load_mcp_config
from pytest_tooleval.tools.mcp.servers import McpServers
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.source import CaseTools
from pytest_tooleval.tools.tool import Tool, ToolContext, ToolLimits

NOTHING = Offer({}, {})
MARK = "MCP_PROJECT_OF_TEST"


def misbehaving(*quirks: Quirk, **keys: Any) -> dict[str, Any]:
    """Return the entry of the misbehaving server, which starts within a few hundredths of a second."""
    arguments = ["-I", "-S", mcp_misbehaving.__file__, *(quirk.value for quirk in quirks)]
    return {"command": sys.executable, "args": arguments, **keys}


class McpProject:
    """A folder with `mcp.json`, and the folder of a case."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder.resolve() / "suite"
        self.worktree = folder.resolve() / "worktree"
        self.folder.mkdir()
        self.worktree.mkdir()
        self.environ = dict(environ)
        self.mark = uuid.uuid4().hex
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.context = ToolContext(self.worktree, environment, ToolLimits(mcp_seconds=60.0))

    def _marked(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Let the processes of a server, and all that these start, be told from those of others."""
        return {**entry, "env": {**entry.get("env", {}), MARK: self.mark}} if "command" in entry else entry

    @contextlib.contextmanager
    def servers(self, **entries: Mapping[str, Any]) -> Iterator[McpServers]:
        """Give the servers of these entries, and afterwards see that nothing of them is left."""
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {name: self._marked(entry) for name, entry in entries.items()}}))
        servers = McpServers(load_mcp_config(path, Path("mcp.json")), self.environ, exit_seconds=0.3)
        try:
            yield servers
        finally:
            servers.close()
        assert processes_with(self.mark) == set()
        assert watchdogs() == set()

    @contextlib.contextmanager
    def case(
        self, servers: McpServers, *uses: ServerUse | str, base: Offer = NOTHING, **keys: Any
    ) -> Iterator[CaseTools]:
        """Give the tools of a case that uses these servers, of them all when none is named."""
        named = uses or tuple(servers.config.servers)
        chosen = tuple(ServerUse(use) if isinstance(use, str) else use for use in named)
        case = ToolUseCase("c", "t", Source(Path("c.json")), mcp=chosen, tool_permission={"mcp": "allow"}, **keys)
        with servers.offer(case, base, self.context) as tools:
            yield tools

    def call(self, tools: CaseTools, name: str, /, **arguments: Any) -> str:
        return tools.offer.offered[name].run(arguments, self.context)


def tool_named(name: str) -> Tool:
    """Return a tool of the suite's own that answers with its name."""
    return Tool(name, "d", {"type": "object"}, "mcp", lambda arguments, context: f"own {name}")


def processes_with(mark: str) -> set[int]:
    """Return the processes that have a mark in their environment."""
    return {process.pid for process in psutil.process_iter() if _environment(process).get(MARK) == mark}


def watchdogs() -> set[int]:
    """Return the watchdogs of this process."""
    return {child.pid for child in psutil.Process().children() if "watchdog" in _command_line(child)}


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, OSError):
        return ""


def _environment(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def soon(condition: Any, seconds: float = 10.0) -> bool:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
