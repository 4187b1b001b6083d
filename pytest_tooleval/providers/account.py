"""Where a provider's requests go, with which key, and how both are spelled in messages."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.measures.text import common_start

REDACTED = "[redacted]"
_SHORTEST_LITERAL = 4  # shorter "secrets" (a dummy key such as "x") would blot out ordinary words
_SHORTEST_LINE = 16  # of a secret of several lines, such as a private key: shorter lines are not secret alone
_SHORTEST_PART = 8  # of a secret that a text was cut within
_CUT_AFTER = ("\u2026", "...", "\n[")
_CUT_BEFORE = ("\u2026", "...", "]\n")
_PATTERNS = (
    re.compile(r"(?P<kept>\bBearer\s+)[^\s'\"]+", re.IGNORECASE),
    re.compile(r"(?P<kept>[?&][\w.-]*(?:key|token|secret|signature|sig|password)=)[^&#\s'\"]+", re.IGNORECASE),
    re.compile(r"(?P<kept>://)[^/?#\s'\"]+@"),
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
    """Replaces secrets in texts: given literals, bearer tokens, keys and userinfo in URLs.

    A literal is found as it is, as JSON, Python or a URL spell it, on one line, and line by line. Of a long one
    that a text was cut within, what is left is replaced too.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {form for secret in secrets for form in _spellings(secret)}
        self._literals = sorted(spellings, key=lambda form: (-len(form), form))
        self._long = [literal for literal in self._literals if len(literal) >= 2 * _SHORTEST_PART]
        suspicious = [*self._literals, *(end for literal in self._long for end in _ends(literal))]
        self._json_spellings = {json.dumps(text, ensure_ascii=False)[1:-1] for text in suspicious}

    def is_clean(self, json_text: str) -> bool:
        """Whether no text in a JSON document would be changed; a document that looks suspicious is not clean."""
        if any(spelling in json_text for spelling in self._json_spellings):
            return False
        return not _may_match(json_text) or not any(pattern.search(json_text) for pattern in _PATTERNS)

    def holds_literal(self, text: str) -> bool:
        """Whether a text holds one of the given secrets."""
        return any(literal in text for literal in self._literals)

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced by `[redacted]`."""
        for literal in self._literals:
            text = text.replace(literal, REDACTED)
        for literal in self._long:
            text = _without_parts(text, literal)
        for pattern in _PATTERNS if _may_match(text) else ():
            text = pattern.sub(_redacted_tail, text)
        return text


def _spellings(secret: str) -> Iterator[str]:
    """Yield the ways in which a secret may stand in a text, without those too short to be told from words."""
    lines = (line.strip() for line in secret.splitlines()) if "\n" in secret else ()
    for text in (secret, " ".join(secret.split()), *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        forms = (text, quote(text, safe=""), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        yield from (form for form in (*forms, repr(text)[1:-1]) if len(form) >= _SHORTEST_LITERAL)


def _ends(literal: str) -> tuple[str, str]:
    return literal[:_SHORTEST_PART], literal[-_SHORTEST_PART:]


def _without_parts(text: str, literal: str) -> str:
    """Return a text without the beginning of a literal where it was cut off, and without the end likewise."""
    head, tail = _ends(literal)
    if head in text:
        text = _without_beginnings(text, literal, head)
    return _without_beginnings(text[::-1], literal[::-1], tail[::-1], mirrored=True)[::-1] if tail in text else text


def _without_beginnings(text: str, literal: str, head: str, *, mirrored: bool = False) -> str:
    marks = tuple(mark[::-1] for mark in _CUT_BEFORE) if mirrored else _CUT_AFTER
    pieces, done = list[str](), 0
    start = text.find(head)
    while start >= 0:
        end = start + common_start(text[start : start + len(literal)], literal)
        if end == len(text) or text.startswith(marks, end):
            pieces += [text[done:start], REDACTED[::-1] if mirrored else REDACTED]
            done = end
        start = text.find(head, end)
    return "".join([*pieces, text[done:]])


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
