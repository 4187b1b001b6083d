"""What went wrong with a request, as ProviderErrors: the only place that knows httpx's exceptions."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.measures.text import cut
from pytest_tooleval.providers.account import Account, shown_url
from pytest_tooleval.providers.retry_after import asked_wait
from pytest_tooleval.providers.wire import well_formed

FOREIGN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict)

_LONGEST_MESSAGE = 300
_LONGEST_NAME = 80
_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_TRANSIENT_WORDS = re.compile(
    r"overload|rate.?limit|too.?many|server.?error|internal|unavailable|time.?d?.?out|capacity", re.IGNORECASE
)
_SLOW_DOWN = 429
_BUSY_STATUSES = frozenset({503, 529})
_SPENT_CODE = re.compile(
    r"insufficient_(?:quota|balance|funds|credits?)|billing|exceeded_current_quota", re.IGNORECASE
)
_SPENT_WORDS = re.compile(
    r"insufficient (?:\w+ )?(?:balance|quota|credits?|funds)|credit balance|used all available credits|"
    r"out of credits|spending limit|billing (?:hard )?limit",
    re.IGNORECASE,
)
_UNREADABLE_CODE = "tool_use_failed"
_UNREADABLE_WORDS = re.compile(r"model produced output that does not match the expected", re.IGNORECASE)
_CUT_PROMPT = re.compile(r"no user query found", re.IGNORECASE)
_DELAY = re.compile(r"\d{1,9}(?:\.\d{1,9})?s", re.ASCII)
_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_OUR_FAULT = (
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.TooManyRedirects,
    httpx.InvalidURL,
    httpx.StreamError,
    httpx.CookieConflict,
)


class ConnectionFailedError(ProviderError):
    """No connection to the server could be made."""


class SlowDownError(ProviderError):
    """The server has too much to do: what it says to one request holds for all of them."""


class UnreadableReplyError(ProviderError):
    """The server says that the model wrote a tool call which it cannot read: the model answered, and badly."""


def exchange_error(error: Exception, silence: float) -> ProviderError:
    """Return the ProviderError for an exception of httpx; `silence` is the most seconds without a byte."""
    said = str(error) or type(error).__name__
    if isinstance(error, _NO_CONNECTION):
        return ConnectionFailedError(f"no connection: {said}{_certificate_hint(said)}", transient=True)
    if isinstance(error, httpx.TimeoutException):
        return ProviderError(f"no answer within {silence:g} s ({type(error).__name__})", transient=True)
    if isinstance(error, _OUR_FAULT):
        return ProviderError(f"the request cannot be sent: {said}")
    return ProviderError(f"the connection broke: {said}", transient=True)


def _certificate_hint(said: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" not in said:
        return ""
    return "; name the file of your certificate authority in SSL_CERT_FILE"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server says about a request it did not serve.

    Attributes:
        message: its words, cut short.
        code: its code and type, empty when there are none.
        parameter: the parameter that it refuses, or empty.
        seconds: how long it asks to wait, or None.

    """

    message: str
    code: str = ""
    parameter: str = ""
    seconds: float | None = None

    @property
    def is_about_the_reply(self) -> bool:
        """Whether the request is fine and the server could not read what the model generated (Groq, llama.cpp)."""
        return _UNREADABLE_CODE in self.code or _UNREADABLE_WORDS.search(self.message) is not None

    @property
    def is_lasting(self) -> bool:
        """Whether no wait mends it, whatever the status: money or a quota is used up, the prompt was cut."""
        return any(
            (
                _SPENT_CODE.search(self.code),
                _SPENT_WORDS.search(self.message),
                _CUT_PROMPT.search(self.message),
            )
        )


def status_error(answer: httpx.Response, body: bytes, account: Account, now: float) -> ProviderError | None:
    """Return what an HTTP status outside 2xx means, or None when it is within.

    Args:
        answer: status and headers.
        body: the whole body.
        account: named in the hints.
        now: seconds since the epoch, for a Retry-After date.

    """
    status = answer.status_code
    if 200 <= status < 300:
        return None
    complaint = _complaint_in(body)
    if complaint.is_about_the_reply:
        return UnreadableReplyError(_said(status, complaint))
    seconds = asked_wait(answer.headers, now)
    seconds = complaint.seconds if seconds is None else seconds
    is_for_all = status == _SLOW_DOWN or (status in _BUSY_STATUSES and seconds is not None)
    kind = SlowDownError if is_for_all else ProviderError
    return kind(
        "; ".join(filter(None, (_said(status, complaint), _hint(answer, complaint, account)))),
        transient=_is_transient_status(status) and not complaint.is_lasting,
        retry_after=seconds,
    )


def _said(status: int, complaint: Complaint) -> str:
    return f"HTTP {status}: {complaint.message}" if complaint.message else f"HTTP {status}"


def _is_transient_status(status: int) -> bool:
    return status in _TRANSIENT_STATUSES or status >= 500


def _hint(answer: httpx.Response, complaint: Complaint, account: Account) -> str:
    status = answer.status_code
    if status in {401, 403}:
        return _key_hint(account)
    if status == 404:
        return f"check the model's name and the base URL {shown_url(account.base_url)}"
    if 300 <= status < 400:
        target = cut(shown_url(answer.headers.get("location", "")), _LONGEST_MESSAGE)
        return f"the server redirects to {target or 'nowhere'}; give the final address as the base URL"
    if complaint.parameter:
        return f"the server refuses the parameter {complaint.parameter!r}"
    if _CUT_PROMPT.search(complaint.message):
        return "the server cut the front of a prompt that is longer than its context length"
    return ""


def _key_hint(account: Account) -> str:
    if account.key is None:
        return f"no key was sent; set {account.key_variable}" if account.key_variable else "no key was sent"
    return f"check the key in {account.key_variable}"


def error_in_body(body: Mapping[str, Any]) -> ProviderError | None:
    """Return the error that a server reports inside a successful answer, or None."""
    if not body.get("error"):
        return None
    complaint = _complaint_of(body)
    numbers = [int(number) for number in re.findall(r"\b\d{3}\b", complaint.code)]
    says_so = _TRANSIENT_WORDS.search(complaint.code or complaint.message) is not None
    return ProviderError(
        f"the answer is an error: {complaint.message or complaint.code or 'no reason given'}",
        transient=(says_so or any(map(_is_transient_status, numbers))) and not complaint.is_lasting,
    )


def _complaint_in(body: bytes) -> Complaint:
    text = body.decode("utf-8", "replace")
    try:
        return _complaint_of(well_formed(json.loads(text)))
    except (ValueError, RecursionError):
        return Complaint(cut_short(text))


def _complaint_of(body: Any) -> Complaint:
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return Complaint(cut_short(_as_text(body)))
    error = body.get("error") or body.get("detail") or body.get("message") or body
    if not isinstance(error, dict):
        return Complaint(cut_short(_as_text(error)))
    said = error.get("message") or error.get("detail") or error
    generated = error.get("failed_generation")
    if isinstance(generated, str) and generated:
        said = f"{_as_text(said)} The model wrote: {generated}"
    codes = (error.get(key) for key in ("code", "type", "status"))
    return Complaint(
        message=cut_short(_as_text(said)),
        code=" ".join(str(code) for code in codes if isinstance(code, str | int)),
        parameter=cut(_as_text(error.get("param") or ""), _LONGEST_NAME),
        seconds=_retry_delay(error.get("details")),
    )


def _retry_delay(details: Any) -> float | None:
    """Return the seconds of a `google.rpc.RetryInfo`: where it is used, there is no Retry-After header."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and _DELAY.fullmatch(delay):
            return float(delay[:-1])
    return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut_short(text: str) -> str:
    """Return `text` on one line, cut between words: half a key would slip through the redaction."""
    return textwrap.shorten(text[: 10 * _LONGEST_MESSAGE], _LONGEST_MESSAGE, placeholder=" …")
