"""The one seam for HTTP: a JSON object goes out, a JSON object comes back, faults are ProviderErrors."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import httpx

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.account import Account, shown_url
from pytest_tooleval.providers.compression import CompressionError, decompressed
from pytest_tooleval.providers.connections import Exchange, Lines, new_client
from pytest_tooleval.providers.http_errors import (
    FOREIGN,
    ConnectionFailedError,
    SlowDownError,
    UnreadableReplyError,
    cut_short,
    exchange_error,
    status_error,
)
from pytest_tooleval.providers.provider import TimeLimitError
from pytest_tooleval.providers.waiting import LONGEST_RETRY_AFTER, SharedPause, backoff, spread
from pytest_tooleval.providers.wire import well_formed

JsonObject: TypeAlias = dict[str, Any]
T = TypeVar("T")

FIRST_CONTACT_RETRIES = 2
LONGEST_BODY = 64 * 1024 * 1024
_FIRST_CONTACT_WAIT = 0.25
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",
    "User-Agent": "pytest-tooleval",
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of a request.

    Attributes:
        value: what the dialect's parser made of the answer.
        attempts: requests that were sent, the last one being the one that was answered.
        faults: why the attempts before the last one brought no answer; no secrets in them.

    """

    value: T
    attempts: int = 1
    faults: tuple[str, ...] = ()


class JsonTransport(Protocol):
    """What a dialect needs of HTTP."""

    def post_json(
        self,
        url: str,
        headers: Mapping[str, str],
        body: JsonObject,
        read: Callable[[JsonObject], T],
        until: float | None = None,
    ) -> Answer[T]:
        """Post `body` and return what `read` makes of the answer.

        Args:
            url: where to post.
            headers: the dialect's own headers, the key among them.
            body: the request.
            read: the dialect's parser; an answer for which it raises a transient ProviderError counts
                as a failed attempt.
            until: when the answer is of no use any more, as `time.monotonic` counts; no attempt and no
                wait goes past it.

        Raises:
            TimeLimitError: `until` was reached, or would be reached by waiting.
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
        timeout: most seconds of one attempt, from connecting to the last byte.
        retries: attempts after the first, for transient faults.
        sleep: waits so many seconds; None for a wait that ends when the transport is closed.
        clock: tells the seconds since the epoch, for dates that servers send.
        monotonic: tells the seconds by which waits, pauses and `until` are measured.
        connect: most seconds to connect to one address.
        silence: most seconds without a byte; None for as long as `timeout`, since an answer that is not
            streamed is silent while the model generates.
        waiting: most seconds that one request waits in all, its own backoff and shared pauses together.

    """

    timeout: float = 120.0
    retries: int = 4
    sleep: Callable[[float], object] | None = None
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    connect: float = 10.0
    silence: float | None = None
    waiting: float = 180.0

    @property
    def longest_silence(self) -> float:
        """Most seconds without a byte."""
        return self.timeout if self.silence is None else min(self.silence, self.timeout)


@dataclass(slots=True)
class _Errand:
    """One request with its retries: what was sent, what was waited, what went wrong."""

    until: float | None
    attempts: int = 0
    waited: float = 0.0
    ready: float = 0.0
    faults: list[str] = field(default_factory=list)


class HttpTransport:
    """Talks to one account's server from any number of threads.

    Sent again, after a wait, are requests that got a 408, 409, 429 or 5xx, no connection, a connection that broke,
    no whole answer in time, or an answer that `read` refuses for the moment. Everything else fails at once, and so
    does a spent quota. A server that asks to slow down (429, or 503 and 529 with a time) is left alone by
    every request of this transport until then.

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
        self._lines = Lines(new_client or self._new_client)
        self._pause = SharedPause()
        self._reached = threading.Event()
        self._closed = threading.Event()
        self._sleep = self._patience.sleep or self._closed.wait
        self._now = self._patience.monotonic

    def post_json(
        self,
        url: str,
        headers: Mapping[str, str],
        body: JsonObject,
        read: Callable[[JsonObject], T],
        until: float | None = None,
    ) -> Answer[T]:
        """Post `body` and return what `read` makes of the answer; see `JsonTransport`."""
        errand = _Errand(until)
        try:
            content = _encoded(body)
            value = self._persist(errand, lambda: self._attempt(errand, url, headers, content, read))
        except ProviderError as error:
            raise self._reported(error, url, errand) from None
        return Answer(value, errand.attempts, tuple(map(self._redact, errand.faults)))

    def close(self) -> None:
        """End waits, and close idle connections; those in use are closed when their answer is there."""
        self._closed.set()
        self._lines.close()

    def _persist(self, errand: _Errand, attempt: Callable[[], T]) -> T:
        while True:
            self._wait_for_turn(errand)
            try:
                return attempt()
            except ProviderError as error:
                self._plan_next(errand, error)

    def _wait_for_turn(self, errand: _Errand) -> None:
        """Wait out the errand's own backoff and the shared pause, which may be extended meanwhile."""
        waited_for = self._now()
        while (ready := max(errand.ready, self._pause.end)) > waited_for:
            own = errand.ready - self._now()
            shared = spread(self._pause.end - self._now())
            self._wait(errand, max(own, shared))
            waited_for = ready
        if errand.until is not None and self._now() >= errand.until:
            raise TimeLimitError("the time limit of the case was reached")

    def _wait(self, errand: _Errand, seconds: float) -> None:
        if seconds <= 0:
            return
        if errand.until is not None and self._now() + seconds >= errand.until:
            raise TimeLimitError(f"the time limit of the case would be reached by waiting {seconds:.3g} s")
        if errand.waited + seconds > self._patience.waiting:
            raise ProviderError(
                f"given up before a wait of {seconds:.3g} s: {errand.waited:.3g} s were waited already, "
                f"and a request waits {self._patience.waiting:g} s in all at most",
                transient=True,
            )
        self._sleep(seconds)
        errand.waited += seconds
        if self._closed.is_set():
            raise ProviderError("the transport was closed before the next attempt")

    def _plan_next(self, errand: _Errand, error: ProviderError) -> None:
        if not error.transient:
            raise error
        asked = error.retry_after
        if asked is not None and asked > self._patience.waiting:
            raise ProviderError(
                f"{error}; the server asks to wait {asked:.0f} s, and a request waits "
                f"{self._patience.waiting:g} s at most",
                transient=True,
                retry_after=asked,
            )
        now = self._now()
        seconds = self._backoff(errand, error) if asked is None else min(asked, LONGEST_RETRY_AFTER)
        if isinstance(error, SlowDownError):
            self._pause.extend(now + seconds)
        if errand.attempts > self._most_retries(error):
            raise error
        errand.faults.append(str(error))
        errand.ready = now + (seconds if asked is None else spread(seconds))

    def _backoff(self, errand: _Errand, error: ProviderError) -> float:
        if self._is_first_contact(error):
            return _FIRST_CONTACT_WAIT * errand.attempts
        return backoff(errand.attempts)

    def _most_retries(self, error: ProviderError) -> int:
        retries = self._patience.retries
        return min(retries, FIRST_CONTACT_RETRIES) if self._is_first_contact(error) else retries

    def _is_first_contact(self, error: ProviderError) -> bool:
        return isinstance(error, ConnectionFailedError) and not self._reached.is_set()

    def _attempt(
        self,
        errand: _Errand,
        url: str,
        headers: Mapping[str, str],
        content: bytes,
        read: Callable[[JsonObject], T],
    ) -> T:
        answer, body = self._exchange(errand, url, {**_HEADERS, **headers}, content)
        error = status_error(answer, body, self._account, self._patience.clock())
        if error is not None:
            raise error
        try:
            return read(_decoded(answer, body))
        except RecursionError:
            raise ProviderError("the answer is nested too deeply", transient=True) from None

    def _exchange(
        self, errand: _Errand, url: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[httpx.Response, bytes]:
        with self._lines.borrowed() as line, line.exchange(self._seconds_for(errand)) as exchange:
            errand.attempts += 1
            try:
                with line.client.stream(
                    "POST", _parsed(url), headers=headers, content=content, extensions={"trace": line.observe}
                ) as answer:
                    self._reached.set()
                    body = _whole_body(answer, exchange)
            except FOREIGN as error:
                if exchange.is_broken_off:
                    raise self._too_late(errand, exchange) from None
                raise exchange_error(error, self._patience.longest_silence) from None
            if exchange.is_broken_off:
                raise self._too_late(errand, exchange)
            return answer, body

    def _seconds_for(self, errand: _Errand) -> float:
        timeout = self._patience.timeout
        return timeout if errand.until is None else min(timeout, max(0.0, errand.until - self._now()))

    def _too_late(self, errand: _Errand, exchange: Exchange) -> ProviderError:
        if exchange.seconds < self._patience.timeout and errand.until is not None:
            return TimeLimitError("the time limit of the case was reached before the answer was there")
        return ProviderError(f"no whole answer within {self._patience.timeout:g} s", transient=True)

    def _new_client(self) -> httpx.Client:
        timeout, silence = self._patience.timeout, self._patience.longest_silence
        try:
            return new_client(
                httpx.Timeout(silence, connect=min(timeout, self._patience.connect)),
                proxies_from_environment=not self._account.is_loopback,
            )
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            raise ProviderError(
                f"the proxy or certificate settings of the environment cannot be used: {error}"
            ) from None

    def _reported(self, error: ProviderError, url: str, errand: _Errand) -> ProviderError:
        asked = "; is a server running there?" if self._is_first_contact(error) else ""
        text = f"{self._account.provider}: {shown_url(url)}: {error}{asked}{_history(errand, error)}"
        kind = type(error) if isinstance(error, TimeLimitError | UnreadableReplyError) else ProviderError
        return kind(
            self._redact(text),
            transient=error.transient,
            retry_after=error.retry_after,
            attempts=errand.attempts,
        )


@functools.lru_cache(maxsize=64)
def _parsed(url: str) -> httpx.URL:
    """Return a URL that httpx need not parse again for each request."""
    return httpx.URL(url)


def _history(errand: _Errand, error: ProviderError) -> str:
    """Return how many requests were sent, and what went wrong with those before if that was something else."""
    if not errand.attempts:
        return ""
    counted = f"{errand.attempts} attempt{'s' if errand.attempts > 1 else ''}"
    others = [fault for fault in dict.fromkeys(errand.faults) if fault != str(error)]
    return f" ({counted}; before: {cut_short(', '.join(others))})" if others else f" ({counted})"


def _whole_body(answer: httpx.Response, exchange: Exchange) -> bytes:
    body = bytearray()
    try:
        for chunk in decompressed(answer.iter_raw(), answer.headers.get("content-encoding", "")):
            body += chunk
            if len(body) > LONGEST_BODY:
                raise ProviderError(f"the answer is longer than {LONGEST_BODY // 1024**2} MiB; check the base URL")
            if exchange.is_broken_off:
                break
    except CompressionError as error:
        raise ProviderError(f"the answer {error}", transient=True) from None
    return bytes(body)


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
