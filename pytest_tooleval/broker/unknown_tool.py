"""What is said of a toolRef that the catalog does not hold."""

from __future__ import annotations

import difflib
from typing import Any

from pytest_tooleval.broker.envelope import failure
from pytest_tooleval.cases.catalog import Catalog
from pytest_tooleval.measures.text import cut

_MOST_COMPARED = 2000
_MOST_NEAREST = 3
_LIKENESS = 0.55


def unknown_tool(catalog: Catalog, ref: str, *, is_call: bool) -> dict[str, Any]:
    """Return the envelope for a ref that is not in the catalog.

    A call that names a server nobody configured is a `CONFIG_ERROR`; all else is `TOOL_NOT_FOUND`.
    """
    server = server_part(catalog, ref)
    near = nearest_refs(catalog, ref)
    hint = f"; nearest: {', '.join(cut(one, 120) for one in near)}" if near else ""
    shown = repr(cut(ref, 120))
    if not server:
        message = f"{shown} is no toolRef: one is written server.name{hint}"
        return failure("TOOL_NOT_FOUND", message, ref=ref, instruction=_instruction(near))
    if is_call and not _is_server(catalog, server):
        message = f"the server {cut(server, 120)!r} of {shown} is not configured{hint}"
        return failure(
            "CONFIG_ERROR", message, ref=ref, server=server, instruction=_server_instruction(server, near)
        )
    message = f"there is no tool {shown} in the catalog{hint}"
    return failure("TOOL_NOT_FOUND", message, ref=ref, server=server, instruction=_instruction(near))


def server_part(catalog: Catalog, ref: str) -> str:
    """Return the server that a ref names: the longest known one, else what stands before the first dot, else ''."""
    known = [server.id for server in catalog.servers if ref.startswith(server.id + ".")]
    before, dot, _ = ref.partition(".")
    return max(known, key=len, default=before if dot else "")


def nearest_refs(catalog: Catalog, ref: str) -> list[str]:
    """Return the refs of the catalog most like one, the most like first, at most a handful."""
    server, name = server_part(catalog, ref), ref.rpartition(".")[2]
    akin = [tool.ref for tool in catalog.tools if tool.server_id == server or tool.name == name]
    pool = akin or [tool.ref for tool in catalog.tools]
    by_folded = {one.casefold(): one for one in pool[:_MOST_COMPARED]}
    found = difflib.get_close_matches(ref.casefold()[:200], by_folded, n=_MOST_NEAREST, cutoff=_LIKENESS)
    return [by_folded[one] for one in found]


def _is_server(catalog: Catalog, server: str) -> bool:
    return any(one.id == server for one in catalog.servers)


def _instruction(near: list[str]) -> str:
    look = "call findTool with what you want to do and use the toolRef that it selects."
    if not near:
        return f"Do not guess refs: {look}"
    return f"Do not guess refs: call describeTool for {cut(near[0], 120)} if you meant that one, else {look}"


def _server_instruction(server: str, near: list[str]) -> str:
    meant = f" If you meant {cut(near[0], 120)}, call describeTool for it." if near else ""
    return (
        f"Do not call tools of {cut(server, 120)} again: the user has to add it to the configuration first."
        f"{meant} Call findTool with what you want to do to look for a tool on a configured server."
    )
