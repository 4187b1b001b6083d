"""Catalog files to the tools that a search ranks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_tooleval.cases.jsontext import Document, pointer_text, read_document
from pytest_tooleval.cases.schema import Fault, Schema, describe
from pytest_tooleval.errors import CaseError, ConfigError, Problem, nearest

ServerStatus: TypeAlias = Literal["online", "offline", "auth_required"]
Version: TypeAlias = int | str | None

CATALOG_SCHEMA = Schema("catalog", "catalog")
TOOLS_LIST_SCHEMA = Schema("catalog", "toolsList")
MOST_PROBLEMS = 1000


@dataclass(frozen=True, slots=True)
class CatalogTool:
    """A tool as a catalog describes it.

    Attributes:
        ref: its name in the catalog, `server_id.name`.
        server_id: the server that has it.
        name: its name on that server.
        title: its name for people, empty when it has none.
        description: what it does, empty when nobody said.
        input_schema: JSON Schema of its arguments; empty when there is none.
        read_only: whether it is said to change nothing.

    """

    ref: str
    server_id: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class CatalogServer:
    """A server of a catalog.

    Attributes:
        id: what the catalog calls it.
        status: whether it can be reached.
        name: what it called itself when the catalog was made, empty when nobody noted it.
        version: the version that it told then, likewise.

    """

    id: str
    status: ServerStatus = "online"
    name: str = ""
    version: str = ""


@dataclass(frozen=True)
class Catalog:
    """The tools that a search ranks and a broker calls.

    Attributes:
        servers: in the file's order.
        tools: likewise; their refs are distinct.
        version: the corpus's own version, None when it has none.
        description: what the catalog is.

    """

    servers: tuple[CatalogServer, ...] = ()
    tools: tuple[CatalogTool, ...] = ()
    version: Version = None
    description: str = ""

    @cached_property
    def by_ref(self) -> Mapping[str, CatalogTool]:
        """The tools by their refs."""
        return {tool.ref: tool for tool in self.tools}

    def of_servers(self, ids: Collection[str]) -> Catalog:
        """Return the part of these servers."""
        return replace(
            self,
            servers=tuple(server for server in self.servers if server.id in ids),
            tools=tuple(tool for tool in self.tools if tool.server_id in ids),
        )

    @cached_property
    def generation(self) -> str:
        """Hash (SHA-256, hex) of servers and tools; the same in whatever order they stand."""
        servers = sorted((server.id, server.status) for server in self.servers)
        tools = [
            (tool.ref, tool.server_id, tool.name, tool.title, tool.description, tool.input_schema, tool.read_only)
            for tool in sorted(self.tools, key=lambda tool: tool.ref)
        ]
        text = json.dumps([servers, tools], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load_catalog(path: Path, shown: Path) -> Catalog:
    """Load one catalog file: a catalog of servers and tools, or what an MCP server answered to `tools/list`.

    The tools of such an answer belong to the server that its key `server` names, or else to one named as the file.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        CaseError: with every fault of the file (of more than 1,000 the first), each with line, JSON pointer and
            what would be right.

    """
    document = read_document(path, shown)
    value: Any = [e.value for e in document.elements] if document.is_list else document.elements[0].value
    if not isinstance(value, dict):
        message = f"found {describe(value)}; expected an object with 'tools'"
        raise CaseError([Problem(shown, message, document.line_of(()))])
    is_tools_list = _is_tools_list(value)
    faults = _tools_list_faults(value) if is_tools_list else _catalog_faults(value)
    if problems := list(_problems(document, faults)):
        raise CaseError(problems)
    return _from_tools_list(value, path.stem) if is_tools_list else _from_catalog(value)


def load_catalogs(paths: Sequence[Path]) -> Catalog:
    """Load catalog files, and the `*.json` of folders, as one catalog.

    Raises:
        CaseError: as `load_catalog` and `merge_catalogs`.
        ConfigError: a folder holds none.

    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    loaded = [(file, load_catalog(file, file)) for file in files]
    return loaded[0][1] if len(loaded) == 1 else merge_catalogs(loaded)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise ConfigError(f"{path} holds no *.json: give a catalog file or a folder of them")
    return files


def merge_catalogs(catalogs: Sequence[tuple[Path, Catalog]]) -> Catalog:
    """Put the catalogs of several files together; version and description stay where all agree.

    Args:
        catalogs: each with its file's name in messages.

    Raises:
        CaseError: two files hold one toolRef, or disagree on a server's status.

    """
    servers: dict[str, tuple[Path, CatalogServer]] = {}
    tools: dict[str, tuple[Path, CatalogTool]] = {}
    problems: list[Problem] = []
    for path, catalog in catalogs:
        for server in catalog.servers:
            other, same = servers.setdefault(server.id, (path, server))
            if same.status != server.status:
                message = f"the server {server.id!r} is {server.status} here and {same.status} in {other}"
                problems.append(Problem(path, f"{message}; let them agree"))
        for tool in catalog.tools:
            other, _ = tools.setdefault(tool.ref, (path, tool))
            if other != path:
                problems.append(Problem(path, f"the toolRef {tool.ref!r} stands in {other} too; keep one of them"))
    if problems:
        raise CaseError(problems)
    return Catalog(
        tuple(server for _, server in servers.values()),
        tuple(tool for _, tool in tools.values()),
        _agreed([catalog.version for _, catalog in catalogs], None),
        _agreed([catalog.description for _, catalog in catalogs], ""),
    )


def _agreed(values: Sequence[Any], otherwise: Any) -> Any:
    return values[0] if values and all(value == values[0] for value in values) else otherwise


def _is_tools_list(value: Mapping[str, Any]) -> bool:
    """Whether a file is what a server answered, or a recording of it, and no catalog of our own."""
    tools = value.get("tools")
    own_keys = ("toolRef", "serverId")
    holds_own = isinstance(tools, list) and any(
        key in tool for tool in tools if isinstance(tool, dict) for key in own_keys
    )
    return "servers" not in value and not holds_own


def _problems(document: Document, faults: Iterable[Fault]) -> Iterator[Problem]:
    """Word the faults; the lines of those inside a tool are found from that tool's beginning."""
    tools = _tools_alone(document)
    for fault in islice(faults, MOST_PROBLEMS):
        match fault.path:
            case ("tools", int(index), *rest):
                line = tools.line_of((index, *rest))
            case path:
                line = document.line_of(path)
        yield Problem(document.path, fault.message, line, pointer_text(fault.path) or None)


def _tools_alone(document: Document) -> Document:
    tools = document.elements[0].value.get("tools")
    elements = document.list_at("tools") if isinstance(tools, list) else []
    return Document(document.path, document.text, True, tuple(elements))


def _tools_list_faults(value: Mapping[str, Any]) -> Iterator[Fault]:
    if "tools" not in value and isinstance(value.get("result"), dict):
        yield Fault((), "found a JSON-RPC response; store what stands under its key 'result'")
        return
    faults = TOOLS_LIST_SCHEMA.faults(value)
    yield from faults
    if not faults:
        names = ((("tools", index, "name"), tool["name"]) for index, tool in enumerate(value["tools"]))
        yield from _repeated("tool name", names)


def _catalog_faults(value: Mapping[str, Any]) -> Iterator[Fault]:
    faults = CATALOG_SCHEMA.faults(value)
    yield from faults
    if faults:
        return
    server_ids = [server["id"] for server in value["servers"]]
    yield from _repeated("server id", ((("servers", index, "id"), id_) for index, id_ in enumerate(server_ids)))
    for index, tool in enumerate(value["tools"]):
        yield from _ref_faults(tool, frozenset(server_ids), ("tools", index))
    refs = ((("tools", index, "toolRef"), tool["toolRef"]) for index, tool in enumerate(value["tools"]))
    yield from _repeated("toolRef", refs)


def _ref_faults(
    tool: Mapping[str, Any], server_ids: frozenset[str], path: tuple[str | int, ...]
) -> Iterator[Fault]:
    server, ref = tool["serverId"], tool["toolRef"]
    if server not in server_ids:
        hint = nearest(server, server_ids) or f"; known are: {', '.join(sorted(server_ids)) or 'none'}"
        yield Fault((*path, "serverId"), f"no server {server!r} stands under 'servers'{hint}")
    if ref != f"{server}.{tool['name']}":
        message = f"found {describe(ref)}; expected serverId.name, which is {server}.{tool['name']}"
        yield Fault((*path, "toolRef"), message)


def _repeated(what: str, values: Iterable[tuple[tuple[str | int, ...], str]]) -> Iterator[Fault]:
    first: dict[str, tuple[str | int, ...]] = {}
    for path, value in values:
        earlier = first.setdefault(value, path)
        if earlier is not path:
            yield Fault(path, f"the {what} {value!r} stands at {pointer_text(earlier)} already; give each its own")


def _from_catalog(value: Mapping[str, Any]) -> Catalog:
    return Catalog(
        tuple(map(_server, value["servers"])),
        tuple(
            CatalogTool(
                ref=tool["toolRef"],
                server_id=tool["serverId"],
                name=tool["name"],
                title=tool.get("title", ""),
                description=tool.get("description", ""),
                input_schema=tool.get("inputSchema", {}),
                read_only=tool.get("readOnly", False),
            )
            for tool in value["tools"]
        ),
        value.get("version"),
        value.get("description", ""),
    )


def _server(server: Mapping[str, Any]) -> CatalogServer:
    told = (server.get(key, "") for key in ("name", "version"))
    return CatalogServer(server["id"], server.get("status", "online"), *told)


def catalog_document(catalog: Catalog) -> dict[str, Any]:
    """Return the content of a catalog file; what is empty or the default is left out, but for descriptions."""
    head = {"version": catalog.version, "description": catalog.description or None}
    return {
        **{key: value for key, value in head.items() if value is not None},
        "servers": [_server_entry(server) for server in catalog.servers],
        "tools": [_tool_entry(tool) for tool in catalog.tools],
    }


def _server_entry(server: CatalogServer) -> dict[str, Any]:
    told = {"name": server.name, "version": server.version}
    return {"id": server.id, "status": server.status, **{key: text for key, text in told.items() if text}}


def _tool_entry(tool: CatalogTool) -> dict[str, Any]:
    title = {"title": tool.title} if tool.title else {}
    return {
        "toolRef": tool.ref,
        "serverId": tool.server_id,
        "name": tool.name,
        **title,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        "readOnly": tool.read_only,
    }


def _from_tools_list(value: Mapping[str, Any], stem: str) -> Catalog:
    server = CatalogServer(value.get("server", stem))
    return Catalog((server,), tuple(listed_tool(server.id, tool) for tool in value["tools"]))


def listed_tool(server_id: str, tool: Mapping[str, Any]) -> CatalogTool:
    """Return a tool as a server lists it, by the protocol's keys; its name has to be there."""
    annotations = tool.get("annotations") or {}
    return CatalogTool(
        ref=f"{server_id}.{tool['name']}",
        server_id=server_id,
        name=tool["name"],
        title=tool.get("title") or annotations.get("title") or "",
        description=tool.get("description") or "",
        input_schema=tool.get("inputSchema") or {},
        read_only=annotations.get("readOnlyHint") is True,
    )
