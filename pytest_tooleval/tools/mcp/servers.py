"""The MCP servers of a suite, and the tools that its cases get from them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pytest_tooleval.cases.case import ServerUse, ToolUseCase
from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.providers.wire import well_formed
from pytest_tooleval.tools.mcp.answers import answer_text
from pytest_tooleval.tools.mcp.config import McpConfig
from pytest_tooleval.tools.mcp.listing import ServerTools, server_tools
from pytest_tooleval.tools.mcp.naming import merged_offer
from pytest_tooleval.tools.mcp.package import missing_package
from pytest_tooleval.tools.mcp.running import Starter
from pytest_tooleval.tools.mcp.sharing import Lease, OwnServers, SharedServer
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.source import CaseTools
from pytest_tooleval.tools.tool import ToolContext

DEFAULT_EXIT_SECONDS = 2.0


class McpServers:
    """Gives cases the tools of the servers that they name; safe to use from many threads.

    Args:
        config: the servers.
        environ: the variables that placeholders stand for; by default those of this process.
        exit_seconds: how long a program has to end after its input was closed, and again after SIGTERM.

    """

    def __init__(
        self,
        config: McpConfig | None = None,
        environ: Mapping[str, str] | None = None,
        exit_seconds: float = DEFAULT_EXIT_SECONDS,
    ) -> None:
        self.config = config or McpConfig()
        self._starter = Starter(os.environ if environ is None else environ, exit_seconds)
        self._sources = {
            name: OwnServers() if server.per_case else SharedServer()
            for name, server in self.config.servers.items()
        }

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return why a case cannot be run here, with what mends it, or None."""
        return (missing_package() if case.mcp else "") or None

    @contextlib.contextmanager
    def offer(self, case: ToolUseCase, base: Offer, context: ToolContext) -> Iterator[CaseTools]:
        """Give a case's tools for the time of one run.

        Args:
            case: names the servers.
            base: what the suite's own tools leave for the case.
            context: the case's folder, environment and limits.

        Raises:
            ToolUnavailableError: a server cannot be started or used, or what the case says of its tools is wrong.

        """
        if not case.mcp:
            yield CaseTools(base)
            return
        notes: list[str] = []
        with contextlib.ExitStack() as leases:
            found = [self._tools(use, context, leases, notes) for use in case.mcp]
            yield CaseTools(merged_offer(case, base, found), notes)

    def close(self) -> None:
        """End all servers."""
        self._starter.close()

    def _tools(
        self, use: ServerUse, context: ToolContext, leases: contextlib.ExitStack, notes: list[str]
    ) -> ServerTools:
        refusals = self.config.refusal(use.server)
        if refusals:
            raise ToolUnavailableError(refusals)
        server = self.config.servers[use.server]
        lease = Lease(server, self._sources[server.name], partial(self._starter.start, server, context))
        leases.callback(_give_back, lease, notes)
        return server_tools(server.name, lease.tools(), partial(_call, lease)).chosen(use.tools)


def _call(lease: Lease, name: str, arguments: Mapping[str, Any], context: ToolContext) -> str:
    result = lease.call(name, well_formed(dict(arguments)), context.limits.mcp_seconds)
    return answer_text(result, context.limits.result_chars)


def _give_back(lease: Lease, notes: list[str]) -> None:
    lease.close()
    notes += lease.notes
