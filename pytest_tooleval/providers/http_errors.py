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
from pytest_tooleval.providers.account import Account, shown_url
from pytest_tooleval.providers.retry_after import parse_retry_after
from pytest_tooleval.providers.wire import well_formed

FOREIGN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict)

_LONGEST_MESSAGE = 300
_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_TRANSIENT_WORDS = re.compile(
    r"overload|rate.?limit|too.?many|server.?error|internal|unavailable|time.?d?.?out|capacity", re.IGNORECASE
)
_SPENT_QUOTA = "insufficient_quota"
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


def exchange_error(error: Exception, timeout: float) -> ProviderError:
    """Return the ProviderError for an exception of httpx; `timeout` is the attempt's limit in seconds."""
    said = str(error) or type(error).__name__
    if isinstance(error, _NO_CONNECTION):
        return ConnectionFailedError(f"no connection: {said}{_certificate_hint(said)}", transient=True)
    if isinstance(error, httpx.TimeoutException):
        return ProviderError(f"no answer within {timeout:g} s ({type(error).__name__})", transient=True)
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

    """

    message: str
    code: str = ""
    parameter: str = ""


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
    spent = _SPENT_QUOTA in complaint.code
    return ProviderError(
        "; ".join(filter(None, (_said(status, complaint), _hint(answer, complaint, account)))),
        transient=_is_transient_status(status) and not spent,
        retry_after=parse_retry_after(answer.headers.get("retry-after"), now),
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
        target = shown_url(answer.headers.get("location", ""))
        return f"the server redirects to {target or 'nowhere'}; give the final address as the base URL"
    if complaint.parameter:
        return f"the server refuses the parameter {complaint.parameter!r}"
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
        transient=says_so or any(_is_transient_status(number) for number in numbers),
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
    codes = (error.get(key) for key in ("code", "type", "status"))
    return Complaint(
        message=cut_short(_as_text(said)),
        code=" ".join(str(code) for code in codes if isinstance(code, str | int)),
        parameter=_as_text(error.get("param") or ""),
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut_short(text: str) -> str:
    """Return `text` on one line, cut between words: half a key would slip through the redaction."""
    return textwrap.shorten(text[: 10 * _LONGEST_MESSAGE], _LONGEST_MESSAGE, placeholder=" …")
