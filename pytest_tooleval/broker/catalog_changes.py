"""What became of a catalog's tools, such as between the catalog of a repository and the servers of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.broker import drift
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.measures.text import cut_pair, shorten

_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        what: such as `tool added` or `description changed`.
        name: the tool, or the server.
        detail: how it differs, empty where that says nothing more.

    """

    what: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.name}" + (f": {self.detail}" if self.detail else "")


def catalog_changes(before: Catalog, after: Catalog) -> list[Change]:
    """Return what changed from one catalog to another: servers first, then tools by ref.

    A server's name, version and status are no change; the order of tools, and of keys in a schema, is none either.
    """
    return [*_server_changes(before, after), *_tool_changes(before, after)]


def version_notes(before: Catalog, after: Catalog) -> Iterator[str]:
    """Yield a line for each server that tells another version now."""
    known = {server.id: server.version for server in before.servers}
    for server in after.servers:
        was = known.get(server.id, "")
        if was and server.version and was != server.version:
            yield f"{server.id} is version {shorten(server.version, 40)} now, and was {shorten(was, 40)}"


def _server_changes(before: Catalog, after: Catalog) -> Iterator[Change]:
    old, new = ([server.id for server in catalog.servers] for catalog in (before, after))
    yield from (Change("server removed", name) for name in sorted(set(old) - set(new)))
    yield from (Change("server added", name) for name in sorted(set(new) - set(old)))


def _tool_changes(before: Catalog, after: Catalog) -> Iterator[Change]:
    for ref in sorted(before.by_ref.keys() | after.by_ref.keys()):
        old, new = before.by_ref.get(ref), after.by_ref.get(ref)
        if old is None or new is None:
            yield Change("tool added" if old is None else "tool removed", ref)
        else:
            yield from _alterations(old, new)


def _alterations(old: CatalogTool, new: CatalogTool) -> Iterator[Change]:
    if old.description != new.description:
        yield Change("description changed", old.ref, _from_to(old.description, new.description))
    if old.title != new.title:
        yield Change("title changed", old.ref, _from_to(old.title, new.title))
    if old.input_schema != new.input_schema:
        yield Change("schema changed", old.ref, _schema_detail(old.input_schema, new.input_schema))
    if old.read_only != new.read_only:
        yield Change("readOnly changed", old.ref, f"{str(new.read_only).lower()} now")


def _schema_detail(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if drift.differs(old, new):
        return "; ".join(drift.changes(old, new))
    return "in words only: titles, descriptions or examples"


def _from_to(old: str, new: str) -> str:
    was, now = cut_pair(" ".join(old.split()), " ".join(new.split()), _MOST_SHOWN)
    return f"{now!r} now, was {was!r}" if was != now else "in blanks only"
