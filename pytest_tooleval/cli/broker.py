"""`tooleval broker`: the reference broker as an MCP server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_tooleval.cli.opened_broker import open_broker


def run(arguments: Sequence[str]) -> int:
    """Serve until the client is gone or the process is told to stop.

    Raises:
        ToolevalError: the catalog, the address or the package cannot be used.

    """
    from pytest_tooleval.broker.serving import parse_address, serve_http, serve_stdio

    given = _parse(arguments)
    address = None if given.http is None else parse_address(given.http, tuple(given.allow_host))
    opened = open_broker(given.catalog, given.mcp_config)
    if given.mcp_config is None:
        _say("the servers are simulated, and every result says so; --mcp-config FILE puts live ones behind it")
    if address is None:
        serve_stdio(opened.broker, opened.close)
    else:
        serve_http(opened.broker, address, opened.close, lambda url: _say(f"listening on {url}"))
    return 0


def _say(text: str) -> None:
    print(f"tooleval broker: {text}", file=sys.stderr, flush=True)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tooleval broker",
        description="Serve findTool, describeTool and callTool over a catalog, as an MCP server: on standard input "
        "and output for the client that starts it, or over HTTP.",
        epilog="Example: tooleval broker --catalog evals/catalog --mcp-config evals/mcp.json --http 127.0.0.1:8931",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--catalog", required=True, type=Path, metavar="FILE", help="a catalog, a tools/list result, or a folder"
    )
    parser.add_argument(
        "--mcp-config",
        type=Path,
        metavar="FILE",
        help="the servers behind it (mcpServers); without, simulated ones",
    )
    parser.add_argument("--http", metavar="[HOST:]PORT", help="listen here (host by default: 127.0.0.1)")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which it may be asked from other machines; may be repeated",
    )
    return parser.parse_args(arguments)
