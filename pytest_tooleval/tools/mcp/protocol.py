"""Requests of one MCP session, answered raw: one odd tool in a list, or odd content in a result, spoils no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams
    from mcp.shared.dispatcher import CallOptions

_NAME = "pytest-tooleval"
_VERSION = "1"


class McpSession:
    """The client's half of a session; entered and left in one task of an event loop.

    What a server asks of the client (sampling, elicitation, roots) is refused, pings are answered.
    """

    def __init__(self, streams: TransportStreams) -> None:
        from mcp import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
        from mcp_types import Implementation

        self._dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(*streams)
        self._session: ClientSession = ClientSession(
            dispatcher=self._dispatcher, client_info=Implementation(name=_NAME, version=_VERSION)
        )

    async def __aenter__(self) -> McpSession:
        await self._session.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._session.__aexit__(*raised)

    @property
    def server_info(self) -> tuple[str, str]:
        """The server's name and version as it gives them; empty where it gives none."""
        info = self._session.server_info
        return ("", "") if info is None else (info.name, info.version)

    async def shake_hands(self) -> None:
        """Agree on a revision of the protocol: by `initialize`, which most know, else by `server/discover`."""
        from mcp import MCPError
        from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

        try:
            await self._session.initialize()
        except MCPError as error:
            if error.code not in {METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION}:
                raise
            await self._session.discover()

    async def send(self, request_id: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its result as it came.

        Args:
            request_id: not that of an earlier request, and not 1 or 2, which are the handshake's.
            method: such as `tools/call`.
            params: its parameters.

        Raises:
            MCPError: the answer is an error, or the connection is closed.

        """
        options: CallOptions = {}
        if self._session.discover_result is not None:
            params, options = self._stamped(method, params)
        options["request_id"] = request_id
        return await self._dispatcher.send_raw_request(method, params, options)

    def _stamped(self, method: str, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], CallOptions]:
        """Return a request that says for itself what a handshake says once for all."""
        from mcp.shared.inbound import (
            MCP_METHOD_HEADER,
            MCP_NAME_HEADER,
            MCP_PROTOCOL_VERSION_HEADER,
            encode_header_value,
        )
        from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY

        version = str(self._session.protocol_version)
        meta = {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: {"name": _NAME, "version": _VERSION},
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        if "name" in params:
            headers[MCP_NAME_HEADER] = encode_header_value(params["name"])
        return {**params, "_meta": meta}, {"headers": headers}
