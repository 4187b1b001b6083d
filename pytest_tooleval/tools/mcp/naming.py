"""What a case's tools are called when several servers have tools for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import ToolUnavailableError, nearest
from pytest_tooleval.tools.mcp.listing import ServerTools
from pytest_tooleval.tools.registry import Offer, denial
from pytest_tooleval.tools.tool import Tool

SEPARATOR = "__"
"""Stands between server and tool in a name that would not be clear without the server."""


def merged_offer(case: ToolUseCase, base: Offer, found: Sequence[ServerTools]) -> Offer:
    """Return the tools of a case with those of its servers.

    A tool keeps its name unless another server's tool or a tool of the suite, offered or not, has the same. Then it
    is called `server__tool`; the tool of the suite keeps its name.

    Raises:
        ToolUnavailableError: two tools would have one name, or the case denies a tool that is not there.

    """
    offered, denied = dict(base.offered), dict(base.denied)
    for name, tool in _named(base, found):
        if name in offered or name in denied:
            raise ToolUnavailableError(
                f"two tools would be called {name!r}: choose among a server's tools with 'tools', or rename it"
            )
        reason = tool if isinstance(tool, str) else denial(replace(tool, name=name), case)
        if isinstance(tool, Tool) and reason is None:
            offered[name] = replace(tool, name=name)
        else:
            denied[name] = str(reason)
    _check_denials(case, [*offered, *denied])
    return replace(base, offered=offered, denied=denied)


def _named(base: Offer, found: Sequence[ServerTools]) -> Iterator[tuple[str, Tool | str]]:
    """Yield the final name of each tool with the tool, or with why it cannot be offered."""
    taken = Counter([*base.offered, *base.denied, *(name for tools in found for name in tools.names)])
    for tools in found:
        for name in tools.names:
            clear = name if taken[name] == 1 else f"{tools.server}{SEPARATOR}{name}"
            yield clear, tools.tools[name] if name in tools.tools else tools.unusable[name]


def _check_denials(case: ToolUseCase, known: Sequence[str]) -> None:
    for name in case.tools_deny:
        if name not in known:
            message = f"'tools_deny' names {name!r}, and there is no such tool{nearest(name, known)}"
            raise ToolUnavailableError(message)
