from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_tooleval.broker.catalog_changes import catalog_changes, version_notes
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}}
READ = CatalogTool("fs.read", "fs", "read", "", "Read a file.", SCHEMA)
WRITE = CatalogTool("fs.write", "fs", "write", "", "Write a file.", SCHEMA)


def catalog(*tools: CatalogTool, **servers: str) -> Catalog:
    names = servers or {"fs": "1"}
    return Catalog(tuple(CatalogServer(name, "online", name, version) for name, version in names.items()), tools)


def properties(**named: Any) -> dict[str, Any]:
    return {"type": "object", "properties": named}


def test_nothing_changed() -> None:
    reordered = {"properties": {"path": {"description": "Where.", "type": "string"}}, "type": "object"}
    now = catalog(WRITE, replace(READ, input_schema=reordered))
    assert catalog_changes(catalog(READ, WRITE), now) == []


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        (catalog(), ["tool removed: fs.read"]),
        (catalog(READ, WRITE), ["tool added: fs.write"]),
        (catalog(READ, fs="1", mail="1"), ["server added: mail"]),
        (catalog(mail="1"), ["server removed: fs", "server added: mail", "tool removed: fs.read"]),
        (
            catalog(replace(READ, description="Read one file.")),
            ["description changed: fs.read: 'Read one file.' now, was 'Read a file.'"],
        ),
        (catalog(replace(READ, description="Read  a\nfile.")), ["description changed: fs.read: in blanks only"]),
        (catalog(replace(READ, title="Read")), ["title changed: fs.read: 'Read' now, was ''"]),
        (catalog(replace(READ, read_only=True)), ["readOnly changed: fs.read: true now"]),
        (
            catalog(replace(READ, input_schema=properties(file={"type": "string"}))),
            ["schema changed: fs.read: 'path' is no longer an argument; 'file' is a new argument"],
        ),
        (
            catalog(replace(READ, input_schema=properties(path={"type": "integer"}))),
            ["schema changed: fs.read: 'path' changed from type string to integer"],
        ),
        (
            catalog(replace(READ, input_schema=properties(path={"type": "string", "description": "The place."}))),
            ["schema changed: fs.read: in words only: titles, descriptions or examples"],
        ),
        (
            catalog(replace(READ, description="x", input_schema={})),
            [
                "description changed: fs.read: 'x' now, was 'Read a file.'",
                "schema changed: fs.read: 'path' is no longer an argument",
            ],
        ),
    ],
)
def test_what_changed(now: Catalog, lines: list[str]) -> None:
    assert [str(change) for change in catalog_changes(catalog(READ), now)] == lines


def test_the_difference_of_long_descriptions_is_shown() -> None:
    start = "word " * 100
    (change,) = catalog_changes(
        catalog(replace(READ, description=f"{start}a")), catalog(replace(READ, description=f"{start}b"))
    )
    assert change.detail.startswith("'…")
    assert "b' now" in change.detail
    assert len(change.detail) < 200


def test_another_version_is_a_note_and_no_change() -> None:
    before, now = catalog(READ, fs="1", mail=""), catalog(READ, fs="2", mail="3")
    assert catalog_changes(before, now) == []
    assert list(version_notes(before, now)) == ["fs is version 2 now, and was 1"]
    assert list(version_notes(now, now)) == []
