"""`tooleval catalog`: a catalog of what live MCP servers list, written or compared."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tooleval.measures.text import printable

if TYPE_CHECKING:
    from pytest_tooleval.cases.catalog import Catalog

DONE, CHANGED, NOT_WRITTEN = 0, 1, 1


def run(arguments: Sequence[str]) -> int:
    """Write the catalog, print it, or name what changed; 1 when something did, or the file cannot be written.

    Raises:
        ToolevalError: the configuration or a server cannot be used; nothing is written then.

    """
    given = _parse(arguments)
    if given.check is not None:
        before = _checked(given.check, given.server)
        return _check(given.check, before, _listed(given.mcp_config, given.server))
    catalog = _listed(given.mcp_config, given.server)
    text = _text(catalog)
    if given.output is None:
        print(text, end="")
        return DONE
    return _write(given.output, text, catalog)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tooleval catalog",
        description="Start the MCP servers of a configuration and write a catalog of the tools that they list; or "
        "compare one with them, and exit with 1 when something changed.",
        epilog="Example: tooleval catalog --mcp-config evals/mcp.json -o evals/catalog/world.json",
        allow_abbrev=False,
    )
    parser.add_argument("--mcp-config", required=True, type=Path, metavar="FILE", help="the servers (mcpServers)")
    parser.add_argument(
        "--server", action="append", default=[], metavar="NAME", help="only this server; may be repeated"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to (default: print it)")
    where.add_argument("--check", type=Path, metavar="FILE", help="compare this catalog with the servers")
    return parser.parse_args(arguments)


def _listed(path: Path, names: Sequence[str]) -> Catalog:
    from pytest_tooleval.families.live_catalog import chosen_servers, live_catalog
    from pytest_tooleval.families.live_servers import LiveServers
    from pytest_tooleval.tools.mcp.config import load_mcp_config

    servers = LiveServers(load_mcp_config(path, path).servers)
    try:
        catalog, notes = live_catalog(chosen_servers(servers, names))
    finally:
        servers.close()
    _say(notes)
    return catalog


def _text(catalog: Catalog) -> str:
    from pytest_tooleval.cases.catalog import catalog_document

    return json.dumps(catalog_document(catalog), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str, catalog: Catalog) -> int:
    from pytest_tooleval.reports.text_file import why_not_written, write_text

    try:
        write_text(path, text)
    except OSError as error:
        print(f"tooleval catalog: {path} cannot be written: {why_not_written(error)}", file=sys.stderr)
        return NOT_WRITTEN
    print(f"wrote {path}: {_size(catalog)}")
    return DONE


def _checked(path: Path, names: Sequence[str]) -> Catalog:
    """Return the catalog to compare; of one of several servers only the chosen ones."""
    from pytest_tooleval.cases.catalog import load_catalogs

    catalog = load_catalogs([path])
    return catalog.of_servers(names) if names else catalog


def _check(path: Path, before: Catalog, now: Catalog) -> int:
    """Print what changed."""
    from pytest_tooleval.broker.catalog_changes import catalog_changes, version_notes

    changes = catalog_changes(before, now)
    for change in changes:
        print(printable(str(change)))
    _say(version_notes(before, now))
    if not changes:
        print(f"{path}: {_size(now)}, unchanged")
    return CHANGED if changes else DONE


def _size(catalog: Catalog) -> str:
    return f"{_count(len(catalog.tools), 'tool')} of {_count(len(catalog.servers), 'server')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _say(notes: Iterable[str]) -> None:
    for note in notes:
        print(printable(f"note: {note}"), file=sys.stderr)
