"""A small catalog and brokers over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tooleval.broker.broker import Broker
from pytest_tooleval.broker.downstream import Downstream, InProcessDownstream
from pytest_tooleval.broker.search import ToolSearch
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool

POST_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "channel": {"type": "string", "description": "Channel to post to."},
        "text": {"type": "string"},
        "mentions": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["channel", "text"],
    "additionalProperties": False,
}
SEARCH_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
    "required": ["query"],
}
HUGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {f"field_{i}": {"type": "string", "description": "x" * 200} for i in range(120)},
        },
        "name": {"type": "string"},
    },
    "required": ["name"],
}

CATALOG = Catalog(
    servers=(
        CatalogServer("chat"),
        CatalogServer("wiki"),
        CatalogServer("cloud"),
        CatalogServer("mail", "offline"),
        CatalogServer("vault", "auth_required"),
    ),
    tools=(
        CatalogTool(
            "chat.post_message", "chat", "post_message", "Post", "Post a message to a channel", POST_SCHEMA
        ),
        CatalogTool(
            "wiki.search_pages", "wiki", "search_pages", "", "Search wiki pages by free text", SEARCH_SCHEMA, True
        ),
        CatalogTool("cloud.deploy_app", "cloud", "deploy_app", "", "Deploy an application", HUGE_SCHEMA),
        CatalogTool("cloud.broken", "cloud", "broken", "", "Compute a checksum", {"type": "nonsense"}),
        CatalogTool("mail.send_email", "mail", "send_email", "", "Send an email to a recipient", SEARCH_SCHEMA),
        CatalogTool("vault.read_secret", "vault", "read_secret", "", "Read a secret", SEARCH_SCHEMA, True),
    ),
)
MESSAGE: Mapping[str, Any] = {"channel": "#dev", "text": "hi"}


def broker_over(downstream: Downstream | None = None, catalog: Catalog = CATALOG) -> Broker:
    """Return a broker with lexical search."""
    return Broker(catalog, ToolSearch(catalog), downstream or InProcessDownstream(catalog))


def one_tool(schema: Any, *, read_only: bool = True, description: str = "Do a thing") -> Catalog:
    """Return a catalog of the tool `s.t`."""
    return Catalog((CatalogServer("s"),), (CatalogTool("s.t", "s", "t", "", description, schema, read_only),))
