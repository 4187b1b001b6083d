from __future__ import annotations

import json
import time

import pytest

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.providers.account import Account, Redactor, checked_base_url, shown_url


@pytest.mark.parametrize(
    ("base", "endpoint"),
    [
        ("http://localhost:8080/v1", "http://localhost:8080/v1/chat/completions"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions"),
        ("http://localhost:8080", "http://localhost:8080/chat/completions"),
        ("https://h/v1?api-version=2", "https://h/v1/chat/completions?api-version=2"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
    ],
)
def test_endpoint(base: str, endpoint: str) -> None:
    assert Account("p", base).endpoint("chat/completions") == endpoint


@pytest.mark.parametrize(
    ("base", "loopback"),
    [
        ("http://localhost:1/v1", True),
        ("http://LOCALHOST", True),
        ("http://127.0.0.9", True),
        ("http://[::1]:8080", True),
        ("http://0.0.0.0:8080", True),
        ("http://api.localhost", True),
        ("http://192.168.1.2", False),
        ("https://localhost.example.org", False),
        ("https://example.org", False),
    ],
)
def test_loopback(base: str, loopback: bool) -> None:
    assert Account("p", base).is_loopback is loopback


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "example.org/v1",
        "ftp://example.org",
        "http://",
        "http:///v1",
        "http://h:99999/v1",
        "http://h:port/v1",
        "http://h/v 1",
        "http://[::1/v1",
        "http://h/\x00",
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    with pytest.raises(ConfigError, match=r"no http\(s\) URL; give one such as http://"):
        checked_base_url(url)


def test_a_base_url_is_taken_without_blanks() -> None:
    assert checked_base_url(" https://example.org/v1\n") == "https://example.org/v1"


def test_a_refused_base_url_shows_no_password() -> None:
    with pytest.raises(ConfigError) as refused:
        checked_base_url("ftp://me:pa55word@example.org?key=abc")
    assert "pa55word" not in str(refused.value)
    assert "abc" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pa55word@example.org:8/v1?key=1#x", "https://example.org:8/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://[bad", ""),
    ],
)
def test_shown_url(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key sk-live/42 refused", "key [redacted] refused"),
        ("encoded sk-live%2F42", "encoded [redacted]"),
        ("Authorization: Bearer other-token-1", "Authorization: Bearer [redacted]"),
        ("b'Bearer other\\n'", "b'Bearer [redacted]'"),
        ("GET https://h/v1?a=1&key=AIzaX&b=2", "GET https://h/v1?a=1&key=[redacted]&b=2"),
        ("https://h/?api_key=x", "https://h/?api_key=[redacted]"),
        ("https://h/?access_token=x y", "https://h/?access_token=[redacted] y"),
        ("via http://me:pa55@proxy:3128 failed", "via http://[redacted]@proxy:3128 failed"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_redaction(text: str, clean: str) -> None:
    assert Redactor(["sk-live/42", "", "x"])(text) == clean


def test_an_account_hides_key_password_and_query_values() -> None:
    account = Account("p", "https://me:pa%2F55@h/v1?code=c0ffee", "P_KEY", "sk-secret-1")
    assert account.redactor()("sk-secret-1 pa/55 pa%2F55 c0ffee") == " ".join(["[redacted]"] * 4)
    assert "sk-secret-1" not in repr(account)
    assert "pa%2F55" not in repr(account)


PASSWORD = "p\"a\\ss'w\u00f6rd/1"
PRIVATE = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nc2hvcnQ=\n-----END KEY-----"
LONG = "sk-live-0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (json.dumps({"k": PASSWORD}), '{"k": "[redacted]"}'),
        (json.dumps(PASSWORD, ensure_ascii=False), '"[redacted]"'),
        (f"found {PASSWORD!r}", "found '[redacted]'"),
        (PRIVATE, "[redacted]"),
        (" ".join(PRIVATE.split()), "[redacted]"),
        ("key.pem:2: MIIEvQIBADANBgkqhkiG", "key.pem:2: [redacted]"),
        ("c2hvcnQ=", "c2hvcnQ="),
        ("cut sk-live-0123", "cut [redacted]"),
        ("cut sk-live-0123\u2026 and on", "cut [redacted]\u2026 and on"),
        ("cut sk-live-0123... [line cut]", "cut [redacted]... [line cut]"),
        ("sk-live-0123\n[... 9 left out ...]\n789abcdef", "[redacted]\n[... 9 left out ...]\n[redacted]"),
        ("789abcdef is the rest", "[redacted] is the rest"),
        ("sk-live-0 is another", "sk-live-0 is another"),
        ("sk-live", "sk-live"),
    ],
)
def test_spellings_and_parts_of_secrets_are_found(text: str, clean: str) -> None:
    redactor = Redactor([PASSWORD, PRIVATE, LONG])
    assert redactor(text) == clean
    assert text == clean or not redactor.is_clean(json.dumps(text, ensure_ascii=False))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["a.", "a-b+", "?a=&", "bearer ", "a://", "://b@", LONG[:9], LONG[-9:], "\u2026" + LONG[:9]]
)
def test_redaction_takes_no_more_than_linear_time(piece: str) -> None:
    redactor = Redactor([LONG])
    started = time.thread_time()
    redactor(piece * 50_000 + " ://@ ?x=")
    assert time.thread_time() - started < 3
