"""A catalog of what live MCP servers list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_tooleval.broker.envelope import encodable, is_deep
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool, listed_tool
from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.families.live_servers import LiveServer, LiveServers
from pytest_tooleval.measures.text import cut


def chosen_servers(servers: LiveServers, names: Iterable[str]) -> list[LiveServer]:
    """Return the servers of these names, all when there are none, ordered by name.

    Raises:
        ConfigError: the configuration has no such server that can be used, or none at all.

    """
    wanted = sorted(set(names)) or sorted(servers.names)
    if not wanted:
        raise ConfigError("the MCP configuration has no server that can be used: describe one under 'mcpServers'")
    found = []
    for name in wanted:
        server = servers.get(name)
        if server is None:
            known = nearest(name, servers.names) or f"; it has: {', '.join(servers.names) or 'none'}"
            raise ConfigError(f"the MCP configuration has no server {name!r} that can be used{known}")
        found.append(server)
    return found


def live_catalog(servers: Iterable[LiveServer]) -> tuple[Catalog, list[str]]:
    """Return what servers list now, tools ordered by ref, and what of it could not be taken.

    Raises:
        ToolUnavailableError: a server cannot be started or does not list its tools.

    """
    entries: list[CatalogServer] = []
    tools: dict[str, CatalogTool] = {}
    notes: list[str] = []
    for live in servers:
        id_ = live.server.name
        info = live.info()
        entries.append(CatalogServer(id_, name=encodable(info.name), version=encodable(info.version)))
        for listed in live.tools():
            tool, problem = _tool(id_, listed)
            if tool is not None and tool.ref in tools:
                problem = f"{tool.ref} is listed more than once; the first counts"
            elif tool is not None:
                tools[tool.ref] = tool
            if problem:
                notes.append(f"{id_}: {problem}")
    return Catalog(tuple(entries), tuple(sorted(tools.values(), key=lambda tool: tool.ref))), notes


def _tool(server_id: str, listed: Any) -> tuple[CatalogTool | None, str]:
    """Return the tool that a server listed, and what is wrong with it."""
    if not isinstance(listed, Mapping) or not isinstance(listed.get("name"), str) or not listed["name"].strip():
        return None, f"left out what is no tool with a name: {cut(repr(listed), 80)}"
    if is_deep(listed):
        return None, f"left out {cut(listed['name'], 80)}: its definition is nested too deeply"
    clean = encodable(dict(listed))
    kinds = {"title": str, "description": str, "inputSchema": Mapping, "annotations": Mapping}
    odd = [key for key, kind in kinds.items() if clean.get(key) is not None and not isinstance(clean[key], kind)]
    sound = {key: value for key, value in clean.items() if key not in odd}
    if not isinstance((sound.get("annotations") or {}).get("title"), str | None):
        sound["annotations"] = {**sound["annotations"], "title": None}
        odd.append("annotations.title")
    problem = f"{cut(clean['name'], 80)}: left out {', '.join(odd)}, which is not what it should be" if odd else ""
    return listed_tool(server_id, sound), problem
