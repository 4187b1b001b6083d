"""The reference broker over a catalog file, before simulated servers or live ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_tooleval.broker.broker import Broker


class OpenedBroker(NamedTuple):
    """A broker, and what releases the servers behind it."""

    broker: Broker
    close: Callable[[], None]


def open_broker(catalog_file: Path, mcp_config: Path | None) -> OpenedBroker:
    """Return a broker over a catalog; live servers are started when they are first needed.

    Args:
        catalog_file: a catalog, a tools/list result, or a folder of them.
        mcp_config: how the servers are reached; None for simulated ones.

    Raises:
        ToolevalError: the catalog or the configuration cannot be used.

    """
    from pytest_tooleval.broker.broker import reference_broker
    from pytest_tooleval.cases.catalog import load_catalogs

    catalog = load_catalogs([catalog_file])
    if mcp_config is None:
        return OpenedBroker(reference_broker(catalog), _nothing)
    from pytest_tooleval.families.live_servers import LiveServers
    from pytest_tooleval.families.mcp_downstream import McpDownstream
    from pytest_tooleval.tools.mcp.config import load_mcp_config

    servers = LiveServers(load_mcp_config(mcp_config, mcp_config).servers)
    return OpenedBroker(reference_broker(catalog, McpDownstream(catalog, servers)), servers.close)


def _nothing() -> None:
    """Release nothing: simulated servers are in this process."""
