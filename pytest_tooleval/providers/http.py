"""The one seam for HTTP: a JSON object goes out, a JSON object comes back, faults are ProviderErrors."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import httpx
import tenacity

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account, shown_url
from pytest_tooleval.providers.http_errors import (
    FOREIGN,
    ConnectionFailedError,
    cut_short,
    exchange_error,
    status_error,
)
from pytest_tooleval.providers.wire import well_formed

JsonObject: TypeAlias = dict[str, Any]
T = TypeVar("T")

LONGEST_BACKOFF = 30.0
LONGEST_RETRY_AFTER = 60.0
LONGEST_CONNECT = 10.0
FIRST_CONTACT_RETRIES = 2
_FIRST_CONTACT_WAIT = 0.25
_BACKOFF = tenacity.wait_exponential(multiplier=0.5, max=LONGEST_BACKOFF) + tenacity.wait_random(0, 1)
_HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "pytest-tooleval"}


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of a request.

    Attributes:
        value: what the dialect's parser made of the answer.
        attempts: requests that were sent, the last one being the one that was answered.

    """

    value: T
    attempts: int = 1


class JsonTransport(Protocol):
    """What a dialect needs of HTTP."""

    def post_json(
        self, url: str, headers: Mapping[str, str], body: JsonObject, read: Callable[[JsonObject], T]
    ) -> Answer[T]:
        """Post `body` and return what `read` makes of the answer.

        Args:
            url: where to post.
            headers: the dialect's own headers, the key among them.
            body: the request.
            read: the dialect's parser; an answer for which it raises a transient ProviderError counts
                as a failed attempt.

        Raises:
            ProviderError: no usable answer came; retries are spent; the message holds no secret.

        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on.

    Attributes:
        timeout: most seconds of one attempt.
        retries: attempts after the first, for transient faults.
        sleep: waits so many seconds.
        clock: tells the seconds since the epoch.

    """

    timeout: float = 120.0
    retries: int = 4
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time


class HttpTransport:
    """Talks to one account's server from any number of threads.

    Args:
        account: address and key, for messages and their redaction.
        patience: timeouts, retries and waiting.
        new_client: makes an `httpx.Client`; by default one that takes proxies from the environment
            (never for a server on this machine) and follows no redirects.

    """

    def __init__(
        self,
        account: Account,
        patience: Patience | None = None,
        new_client: Callable[[], httpx.Client] | None = None,
    ) -> None:
        self._account = account
        self._patience = patience or Patience()
        self._redact = account.redactor()
        self._clients = _ClientPool(new_client or self._new_client)
        self._reached = threading.Event()

    def post_json(
        self, url: str, headers: Mapping[str, str], body: JsonObject, read: Callable[[JsonObject], T]
    ) -> Answer[T]:
        """Post `body` and return what `read` makes of the answer; see `JsonTransport`."""
        loop = tenacity.Retrying(
            sleep=self._patience.sleep,
            retry=_is_transient,
            stop=self._is_enough,
            wait=self._wait,
            reraise=True,
        )
        try:
            content = _encoded(body)
            value = loop(lambda: self._attempt(url, {**_HEADERS, **headers}, content, read))
        except ProviderError as error:
            attempts = loop.statistics.get("attempt_number", 0)
            raise self._reported(error, url, attempts) from None
        return Answer(value, loop.statistics["attempt_number"])

    def close(self) -> None:
        """Close idle connections; those in use are closed when their answer is there."""
        self._clients.close()

    def _attempt(self, url: str, headers: Mapping[str, str], content: bytes, read: Callable[[JsonObject], T]) -> T:
        answer, body = self._exchange(url, headers, content)
        error = status_error(answer, body, self._account, self._patience.clock())
        if error is not None:
            raise error
        try:
            return read(_decoded(answer, body))
        except RecursionError:
            raise ProviderError("the answer is nested too deeply", transient=True) from None

    def _exchange(self, url: str, headers: Mapping[str, str], content: bytes) -> tuple[httpx.Response, bytes]:
        deadline = time.monotonic() + self._patience.timeout
        try:
            with (
                self._clients.borrowed() as client,
                client.stream("POST", url, headers=headers, content=content) as answer,
            ):
                self._reached.set()
                return answer, self._whole_body(answer, deadline)
        except FOREIGN as error:
            raise exchange_error(error, self._patience.timeout) from None

    def _whole_body(self, answer: httpx.Response, deadline: float) -> bytes:
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if time.monotonic() > deadline:
                raise ProviderError(f"no whole answer within {self._patience.timeout:g} s", transient=True)
        return bytes(body)

    def _new_client(self) -> httpx.Client:
        timeout = self._patience.timeout
        try:
            return httpx.Client(
                verify=_ssl_contexts.shared(),
                trust_env=not self._account.is_loopback,
                follow_redirects=False,
                timeout=httpx.Timeout(timeout, connect=min(timeout, LONGEST_CONNECT)),
            )
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            raise ProviderError(
                f"the proxy or certificate settings of the environment cannot be used: {error}"
            ) from None

    def _is_first_contact(self, error: ProviderError) -> bool:
        return isinstance(error, ConnectionFailedError) and not self._reached.is_set()

    def _is_enough(self, state: tenacity.RetryCallState) -> bool:
        retries = self._patience.retries
        if self._is_first_contact(_failure(state)):
            retries = min(retries, FIRST_CONTACT_RETRIES)
        return state.attempt_number > retries

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = _failure(state)
        if error.retry_after is not None:
            return min(error.retry_after, LONGEST_RETRY_AFTER)
        if self._is_first_contact(error):
            return _FIRST_CONTACT_WAIT * state.attempt_number
        return min(_BACKOFF(state), LONGEST_BACKOFF)

    def _reported(self, error: ProviderError, url: str, attempts: int) -> ProviderError:
        counted = {0: "", 1: " (1 attempt)"}.get(attempts, f" ({attempts} attempts)")
        asked = "; is a server running there?" if self._is_first_contact(error) else ""
        text = f"{self._account.provider}: {shown_url(url)}: {error}{asked}{counted}"
        return ProviderError(
            self._redact(text), transient=error.transient, retry_after=error.retry_after, attempts=attempts
        )


class _ClientPool:
    """Lends each client to one thread at a time: sharing one among threads costs half as much again."""

    def __init__(self, new_client: Callable[[], httpx.Client]) -> None:
        self._new_client = new_client
        self._idle: list[httpx.Client] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[httpx.Client]:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or self._new_client()
        try:
            yield client
        finally:
            self._give_back(client)

    def _give_back(self, client: httpx.Client) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(client)
                return
        client.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()


class _SharedSslContext:
    """Makes the process's one SSL context at first use: each costs tens of milliseconds of CPU."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def shared(self) -> ssl.SSLContext:
        with self._lock:
            if self._context is None:
                self._context = httpx.create_ssl_context()
            return self._context


_ssl_contexts = _SharedSslContext()


def _encoded(body: JsonObject) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise ProviderError(f"the request is not JSON: {error}") from None
    return str(well_formed(text)).encode()


def _decoded(answer: httpx.Response, body: bytes) -> JsonObject:
    try:
        decoded = json.loads(body, parse_constant=_null)
    except (ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict):
        return decoded
    kind = answer.headers.get("content-type", "no content type")
    start = cut_short(body.decode("utf-8", "replace"))
    raise ProviderError(
        f"HTTP {answer.status_code} with {kind} that is no JSON object: {start!r}; check the base URL",
        transient=True,
    )


def _null(_: str) -> None:
    """Stand for NaN and the infinities, which some servers write in log probabilities."""


def _is_transient(state: tenacity.RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    return isinstance(error, ProviderError) and error.transient


def _failure(state: tenacity.RetryCallState) -> ProviderError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, ProviderError):
        raise TypeError(f"only ProviderErrors are retried, not {error!r}")
    return error
