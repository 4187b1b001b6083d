"""Messages to and from a server that listens, and what HTTP itself says beside them."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_tooleval.tools.mcp.config import Endpoint
from pytest_tooleval.tools.mcp.stdio import MOST_MESSAGE_BYTES, Fault, error_words

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_SESSION_HEADER = "mcp-session-id"
_REFUSALS = frozenset({401, 403, 407, 408, 429, *range(500, 600)})
_MADE_UP = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
"""What the client's package says where a status is all that came."""


class HttpTransport:
    """The messages to and from one HTTP server.

    Args:
        endpoint: where it listens.
        on_end: called when no more messages can come, with the reason.

    """

    def __init__(self, endpoint: Endpoint, on_end: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._on_end = on_end
        self._refusals: dict[Any, str] = {}
        self._session_statuses: set[int] = set()
        self._last_refusal: tuple[int, str] | None = None

    @property
    def opening(self) -> str:
        """The word for how a session begins."""
        return "reached"

    @property
    def ending(self) -> str:
        """The last status that is no server's answer to a message; empty when there was none."""
        return next(reversed(self._refusals.values()), "")

    def fault_behind(self, request_id: int, code: int, message: str) -> Fault | None:
        """Return what an error that came for a request says of the connection, None when the server sent it."""
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR

        if 404 in self._session_statuses:
            return "session"
        if 400 in self._session_statuses and "session" in message.casefold():
            return "session"
        is_lost = request_id in self._refusals or code in {CONNECTION_CLOSED, PARSE_ERROR}
        return "connection" if is_lost else None

    def cause_of(self, error: BaseException) -> str:
        """Return what an error that ended the session says, with what may mend it where that is known."""
        import httpx2

        said = error_words(error)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return f"no connection to {self._origin} ({error}); is it running, and is the address right?"
        if said.startswith("Unexpected content type"):
            return f"{said}; is this the URL of an MCP server?"
        if self._last_refusal is None:
            return said
        status, words = self._last_refusal
        told = "" if isinstance(error, httpx2.HTTPStatusError) or said in _MADE_UP else f": {said}"
        return f"it answered with {words}{told}{self._advice(status)}"

    def _advice(self, status: int) -> str:
        if status in {401, 403}:
            return "; give credentials that it accepts under 'headers'"
        if status in {404, 405, 406}:
            other = "http" if self._endpoint.is_sse else "sse"
            return f'; is the path of the URL right? For the other transport say "type": "{other}"'
        return ""

    @property
    def _origin(self) -> str:
        """Scheme, host and port: a path or a query may hold a key."""
        parts = urlsplit(self._endpoint.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """Give the streams of messages."""
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client

        url = self._endpoint.url
        if self._endpoint.is_sse:
            async with sse_client(url, httpx_client_factory=self._client) as (read, write):
                yield read, write
            return
        async with (
            self._client() as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MOST_MESSAGE_BYTES) as (read, write),
        ):
            yield read, write

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG002 - what the package would choose
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """Return a client without time limits: every request has its own, and is given up at its end."""
        import httpx2

        own = {"Accept-Encoding": "identity", **(headers or {}), **self._endpoint.headers}
        return httpx2.AsyncClient(headers=own, auth=auth, timeout=None, event_hooks={"response": [self._look_at]})

    async def _look_at(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            self._note(response)
        if response.headers.get("content-type", "").startswith("application/json"):
            response.stream = _bounded_stream()(response.stream)

    def _note(self, response: httpx2.Response) -> None:
        """Take down a refusal; one of the stream that a server need not have is none, but where all comes by it."""
        status, is_post = response.status_code, response.request.method == "POST"
        words = f"HTTP {status} {response.reason_phrase}".rstrip()
        if is_post or self._endpoint.is_sse:
            self._last_refusal = status, words
        if not is_post:
            return
        if _SESSION_HEADER in response.request.headers:
            self._session_statuses.add(status)
        if status in _REFUSALS or self._endpoint.is_sse:
            self._refusals[json.loads(response.request.content).get("id")] = words
            if self._endpoint.is_sse:  # there a request is answered elsewhere, and now will not be
                self._on_end(f"it answered with {words}")


@functools.cache
def _bounded_stream() -> Callable[[Any], httpx2.AsyncByteStream]:
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        """A body that is given up when it becomes too long."""

        def __init__(self, body: httpx2.AsyncByteStream) -> None:
            self._body = body

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._body:
                size += len(part)
                if size > MOST_MESSAGE_BYTES:
                    raise httpx2.StreamError(f"the body has more than {MOST_MESSAGE_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self._body.aclose()

    return BoundedStream
