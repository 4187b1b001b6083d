"""How a tool broker to measure is named, and its session opened: a command, a URL, or a configured MCP server."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from pytest_tooleval.broker.mapping import OWN_MAPPING, BrokerMapping
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.families.late import Late
from pytest_tooleval.families.live_servers import LiveServers, OpenSession
from pytest_tooleval.families.remote_broker import McpSession, RemoteBroker
from pytest_tooleval.tools.mcp.config import Command, Endpoint, McpServer, is_http_url

DEFAULT_NAME = "broker"
_NAMED = re.compile(r"(?P<name>[\w.-]+)=(?P<target>.+)", re.DOTALL)


class MeasuredBroker:
    """A tool broker to measure; nothing is started before it is asked something.

    Attributes:
        name: how the target is called.
        mapping: how it is asked.
        session: the session with it, one for all corpora.

    """

    def __init__(self, name: str, server: McpServer, mapping: BrokerMapping = OWN_MAPPING) -> None:
        self.name = name
        self.mapping = mapping
        self.session: Late[McpSession] = Late(self._opened)
        self._servers = LiveServers({server.name: server})
        self._server = server

    def over(self, catalog: Catalog) -> RemoteBroker:
        """Return the broker as the rows of one catalog ask it.

        Raises:
            ConfigError: the mapping gives two of the tools one name.

        """
        return RemoteBroker(self.name, self.mapping, catalog, self.session)

    def close(self) -> None:
        """End the session, and the process where one was started."""
        self._servers.close()

    def _opened(self) -> McpSession:
        live = self._servers.get(self._server.name)
        if live is None:
            raise ConfigError(f"the MCP server {self._server.name!r} is disabled; see {self._server.place}")
        return OpenSession(live)


def parse_broker(
    text: str, mapping: BrokerMapping | None, folder: Path, configured: Mapping[str, McpServer], seconds: float
) -> MeasuredBroker:
    """Return the broker that a user names.

    Args:
        text: `TARGET` or `NAME=TARGET`; a target is an http(s) URL, the name of a configured MCP server, or a
            command line that speaks MCP on standard input and output. `${VARIABLE}` stands for its value.
        mapping: how it is asked; None for what speaks as the reference broker does.
        folder: where a command runs.
        configured: the servers of the MCP configuration.
        seconds: most seconds of one answer, where the configuration says nothing.

    Raises:
        ConfigError: it is blank, or no command line.

    """
    found = _NAMED.fullmatch(text.strip())
    name, target = (found["name"], found["target"].strip()) if found else (DEFAULT_NAME, text.strip())
    server = configured.get(target) or _server(name, target, folder, seconds)
    return MeasuredBroker(name, server, mapping or OWN_MAPPING)


def _server(name: str, target: str, folder: Path, seconds: float) -> McpServer:
    if is_http_url(target):
        return McpServer(name, Endpoint(target), folder, call_seconds=seconds, place="--tooleval-broker")
    try:
        words = shlex.split(target)
    except ValueError as error:
        raise ConfigError(f"the broker {target!r} is no command line: {error}") from None
    if not words:
        raise ConfigError("the broker is blank: give a command that speaks MCP, or the URL where one listens")
    return McpServer(
        name, Command(words[0], tuple(words[1:])), folder, call_seconds=seconds, place="--tooleval-broker"
    )
