"""Tools that stand beside a case's own and do nothing, to see how well the right one is picked among many."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.measures.text import printable
from pytest_tooleval.tools.arguments import argument_faults
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool, ToolContext

MOST_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Distractor:
    """A tool of a catalog as a model can be offered it."""

    listed: CatalogTool
    tool: Tool


class DistractorPool:
    """The tools of a catalog that can be offered without being there.

    Which ones are taken follows from the catalog alone: they are ordered by a hash of their refs, and the first
    are taken. So every case and every run gets the same, and a larger number only adds to a smaller one. Of several
    tools with one name the first in that order counts. A tool that no model can be offered is left out: its schema
    is not one of an object, or its name is too long or not printable.

    Args:
        catalog: where they come from.

    """

    def __init__(self, catalog: Catalog) -> None:
        found: dict[str, _Distractor] = {}
        for listed in sorted(catalog.tools, key=_order):
            if listed.name.casefold() not in found and (tool := _tool(listed)) is not None:
                found[listed.name.casefold()] = _Distractor(listed, tool)
        self._found = found

    def count_beside(self, offer: Offer) -> int:
        """Return how many can stand beside the tools of a case: those that share a name with one cannot."""
        taken = _names(offer)
        return sum(name not in taken for name in self._found)

    def added_to(self, offer: Offer, count: int) -> Offer:
        """Return the tools of a case with so many more behind them.

        Raises:
            ToolUnavailableError: there are not so many that share no name with a tool of the case.

        """
        taken = _names(offer)
        chosen = list(islice((each for name, each in self._found.items() if name not in taken), count))
        if len(chosen) < count:
            raise ToolUnavailableError(
                f"{count} distractors were asked for, and the catalog has {len(chosen)} that can stand beside the "
                "tools of this case"
            )
        return Offer(
            {**offer.offered, **{each.listed.name: each.tool for each in chosen}},
            offer.denied,
            {each.listed.name: each.listed for each in chosen},
        )


def _names(offer: Offer) -> frozenset[str]:
    return frozenset(name.casefold() for name in (*offer.offered, *offer.denied))


def _order(listed: CatalogTool) -> str:
    return hashlib.sha256(listed.ref.encode("utf-8", "surrogatepass")).hexdigest()


def _tool(listed: CatalogTool) -> Tool | None:
    """Return what a model is offered, or None where it cannot be."""
    parameters = {"type": "object", **listed.input_schema}
    has_plain_name = len(listed.name) <= MOST_NAME_CHARS and printable(listed.name) == listed.name
    if parameters["type"] != "object" or not has_plain_name:
        return None
    run = functools.partial(_not_available, listed.name)
    tool = Tool(listed.name, listed.description, parameters, "mcp", run, needs_directory=False)
    try:
        argument_faults(tool, {})
    except ToolUnavailableError:
        return None
    return tool


def _not_available(name: str, _arguments: Mapping[str, Any], _context: ToolContext) -> str:
    raise ToolError(f"the tool {name} is not available in this run: do without it")
