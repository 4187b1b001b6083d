"""Where a provider's requests go, with which key, and how both are spelled in messages."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from pytest_tooleval.errors import ConfigError

REDACTED = "[redacted]"
_SHORTEST_LITERAL = 4  # shorter "secrets" (a dummy key such as "x") would blot out ordinary words
_PATTERNS = (
    re.compile(r"(?P<kept>\bBearer\s+)[^\s'\"]+", re.IGNORECASE),
    re.compile(r"(?P<kept>[?&][\w.-]*(?:key|token|secret|signature|sig|password)=)[^&#\s'\"]+", re.IGNORECASE),
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://)[^/?#\s'\"]+@", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class Account:
    """An address and the key that is sent there.

    Attributes:
        provider: the provider's name, as messages give it.
        base_url: http(s) URL that `endpoint` extends; may hold userinfo and a query.
        key_variable: environment variable that the key comes from, empty when there is none.
        key: the key, or None when none is sent.

    """

    provider: str
    base_url: str = field(repr=False)
    key_variable: str = ""
    key: str | None = field(default=None, repr=False)

    def endpoint(self, path: str) -> str:
        """Return the URL of `path` (without leading slash) below the base URL, its query kept."""
        parts = urlsplit(self.base_url)
        stem = parts.path.rstrip("/").removesuffix(f"/{path}")
        return urlunsplit((parts.scheme, parts.netloc, f"{stem}/{path}", parts.query, ""))

    @property
    def host(self) -> str:
        """The host of the base URL in lower case."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")
        return address.is_loopback or address.is_unspecified

    def redactor(self) -> Redactor:
        """Return what takes the key and the URL's credentials out of a text."""
        return Redactor((self.key or "", *_secrets_of(urlsplit(self.base_url))))


class Redactor:
    """Replaces secrets in texts: given literals, bearer tokens, keys and userinfo in URLs."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {
            form
            for secret in secrets
            if len(secret) >= _SHORTEST_LITERAL
            for form in (secret, quote(secret, safe=""))
        }
        self._literals = sorted(spellings, key=len, reverse=True)
        self._json_spellings = {json.dumps(literal, ensure_ascii=False)[1:-1] for literal in self._literals}

    def is_clean(self, json_text: str) -> bool:
        """Whether no text in a JSON document would be changed; a document that looks suspicious is not clean."""
        if any(spelling in json_text for spelling in self._json_spellings):
            return False
        return not _may_match(json_text) or not any(pattern.search(json_text) for pattern in _PATTERNS)

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced by `[redacted]`."""
        for literal in self._literals:
            text = text.replace(literal, REDACTED)
        for pattern in _PATTERNS if _may_match(text) else ():
            text = pattern.sub(_redacted_tail, text)
        return text


def _may_match(text: str) -> bool:
    """Whether a text holds what every match of a pattern has in it; a fast look, since most texts do not."""
    has_userinfo = "@" in text and "://" in text
    has_query = "=" in text and ("?" in text or "&" in text)
    return has_userinfo or has_query or "bearer" in text.casefold()


def shown_url(url: str) -> str:
    """Return `url` without userinfo, query and fragment, or an empty string when it is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def checked_base_url(url: str) -> str:
    """Return `url` without surrounding blanks.

    Raises:
        ConfigError: it is no http(s) URL with a host.

    """
    stripped = url.strip()
    if not _is_http_url(stripped):
        raise ConfigError(f"{Redactor()(stripped)!r} is no http(s) URL; give one such as http://localhost:8080/v1")
    return stripped


def _is_http_url(url: str) -> bool:
    if not url.isprintable() or any(character.isspace() for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _secrets_of(parts: SplitResult) -> list[str]:
    credential = unquote(parts.password or parts.username or "")
    return [credential, *(value for _, value in parse_qsl(parts.query))]


def _redacted_tail(match: re.Match[str]) -> str:
    userinfo_mark = "@" if match[0].endswith("@") and match["kept"].endswith("://") else ""
    return f"{match['kept']}{REDACTED}{userinfo_mark}"
