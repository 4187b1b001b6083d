from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from loopback import LoopbackServer, Scripted, as_json, unused_port

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers import http
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.http import Answer, HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import exchange_error
from pytest_tooleval.providers.provider import TimeLimitError

Serve = Callable[..., LoopbackServer]

KEY = "sk-TopSecret-99"
OK = as_json({"ok": True})
NOON = 1_768_478_400.0  # 15 January 2026, 12:00:00 UTC


class Talk:
    """A transport to one URL whose time passes only by waiting, and whose waits are recorded."""

    def __init__(
        self, url: str, *, retries: int = 4, timeout: float = 5.0, key: str | None = KEY, **limits: float
    ) -> None:
        self.slept: list[float] = []
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        account = Account("openai", url, "OPENAI_API_KEY", key)
        patience = Patience(
            timeout, retries, self.slept.append, clock=lambda: NOON, monotonic=lambda: sum(self.slept), **limits
        )
        self.transport = HttpTransport(account, patience)

    def ask(self, body: JsonObject | None = None, until: float | None = None) -> Answer[JsonObject]:
        return self.transport.post_json(self.url, self.headers, body or {"q": 1}, lambda answer: answer, until)

    def post(self, body: JsonObject | None = None) -> JsonObject:
        return self.ask(body).value

    def failure(self, until: float | None = None) -> ProviderError:
        with pytest.raises(ProviderError) as failed:
            self.ask(until=until)
        assert KEY not in str(failed.value)
        assert failed.value.__cause__ is None
        return failed.value


@pytest.fixture
def talk() -> Any:
    opened: list[Talk] = []

    def start(server: LoopbackServer | str, **settings: Any) -> Talk:
        opened.append(Talk(server if isinstance(server, str) else server.url, **settings))
        return opened[-1]

    yield start
    for one in opened:
        one.transport.close()


def test_a_json_object_there_and_back(serve: Serve, talk: Any) -> None:
    server = serve(as_json({"text": "é", "logprob": float("-inf")}))
    assert talk(server).post({"deep": [1, {"é": None}]}) == {"text": "é", "logprob": None}
    (asked,) = server.asked
    assert asked.body == {"deep": [1, {"é": None}]}
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["user-agent"] == "pytest-tooleval"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
def test_transient_statuses_are_tried_again(serve: Serve, talk: Any, status: int) -> None:
    server = serve(as_json({"error": {"type": "overloaded_error"}}, status), OK)
    one = talk(server)
    assert one.post() == {"ok": True}
    assert len(one.slept) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Scripted(hang_up=True),
        Scripted(body=b'{"ok": tr', declared_length=900),
        Scripted(body=b'{"ok": tr'),
        Scripted(body=b""),
        Scripted(body=b"[1, 2]"),
        Scripted(body=b"\xff\xfe\x00"),
        Scripted(body=b"[" * 100_000),
        Scripted(body=b"<html><title>Gateway</title></html>", headers={"Content-Type": "text/html"}),
        Scripted(body=b"no gzip", headers={"Content-Encoding": "gzip"}),
        Scripted(body=b'{"ok": true}', delay=0.6),
        Scripted(body=b'{"ok": true}' + b" " * 60, drip=0.02),
    ],
    ids=["hang-up", "truncated", "half", "empty", "list", "binary", "deep", "html", "gzip", "slow", "dripping"],
)
def test_broken_answers_are_tried_again(serve: Serve, talk: Any, fault: Scripted) -> None:
    one = talk(serve(fault, OK), timeout=0.3)
    assert one.post() == {"ok": True}
    assert len(one.slept) == 1


def test_retries_are_bounded_and_counted(serve: Serve, talk: Any) -> None:
    server = serve(as_json({"error": {"message": "try later"}}, 503))
    one = talk(server, retries=3)
    failed = one.failure()
    assert str(failed) == f"openai: {server.url}: HTTP 503: try later (4 attempts)"
    assert failed.transient
    assert (len(server.asked), len(one.slept)) == (4, 3)


def test_backoff_grows_up_to_its_cap_with_jitter_throughout(serve: Serve, talk: Any) -> None:
    one = talk(serve(as_json({}, 500)), retries=9, waiting=1000.0)
    one.failure()
    longest = [1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert all(most / 2 <= wait <= most for wait, most in zip(one.slept, longest, strict=True))
    assert len({wait / most for wait, most in zip(one.slept, longest, strict=True)}) == 9


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("Thu, 15 Jan 2026 12:00:20 GMT", 20.0),
        ("61", 60.0),
        ("180", 60.0),
        ("Thu, 15 Jan 2026 12:02:00 GMT", 60.0),
    ],
)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_kept_to_with_jitter_and_capped(
    serve: Serve, talk: Any, status: int, header: str, wait: float
) -> None:
    one = talk(serve(as_json({}, status, Retry_After=header), OK))
    assert one.post() == {"ok": True}
    (slept,) = one.slept
    assert wait <= slept <= 1.25 * wait


@pytest.mark.parametrize("header", ["0", "-3", "Thu, 15 Jan 2026 11:00:00 GMT"])
def test_a_time_that_is_over_is_not_waited_for(serve: Serve, talk: Any, header: str) -> None:
    one = talk(serve(as_json({}, 429, Retry_After=header), OK))
    assert one.post() == {"ok": True}
    assert one.slept == []


def test_milliseconds_are_more_exact_than_seconds(serve: Serve, talk: Any) -> None:
    one = talk(serve(as_json({}, 429, Retry_After="1", Retry_After_Ms="200"), OK))
    assert one.post() == {"ok": True}
    assert 0.2 <= one.slept[0] <= 0.25


def test_a_delay_in_the_body_is_kept_to(serve: Serve, talk: Any) -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"},
    ]
    words = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED", "details": details}
    one = talk(serve(as_json({"error": error}, 429), OK))
    assert one.post() == {"ok": True}
    assert 2.5 <= one.slept[0] <= 3.125


@pytest.mark.parametrize("header", ["3600", "181", "Fri, 16 Jan 2026 12:00:00 GMT"])
def test_a_wait_longer_than_all_waiting_is_not_begun(serve: Serve, talk: Any, header: str) -> None:
    server = serve(as_json({"error": {"message": "daily limit"}}, 429, Retry_After=header), OK)
    one = talk(server)
    said = str(one.failure())
    assert "HTTP 429: daily limit; the server asks to wait " in said
    assert said.endswith("s, and a request waits 180 s at most (1 attempt)")
    assert (len(server.asked), one.slept) == (1, [])


def test_all_waits_of_a_request_together_are_bounded(serve: Serve, talk: Any) -> None:
    one = talk(serve(as_json({"error": {"message": "slower"}}, 429, Retry_After="20")), retries=99, waiting=70.0)
    said = str(one.failure())
    assert sum(one.slept) <= 70
    assert len(one.slept) in {2, 3}
    assert "given up before a wait of " in said
    assert "a request waits 70 s in all at most" in said
    assert said.endswith(f"({len(one.slept) + 1} attempts; before: HTTP 429: slower)")


@pytest.mark.parametrize("header", ["soon", "9" * 400, "Thu, 15 Jan 99999 12:00:00 GMT"])
def test_a_useless_retry_after_means_backoff(serve: Serve, talk: Any, header: str) -> None:
    one = talk(serve(as_json({}, 429, Retry_After=header), OK))
    assert one.post() == {"ok": True}
    assert 0.5 <= one.slept[0] <= 1.25


def test_the_last_retry_after_is_reported(serve: Serve, talk: Any) -> None:
    failed = talk(serve(as_json({}, 429, Retry_After="7")), retries=0).failure()
    assert (failed.transient, failed.retry_after) == (True, 7.0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (as_json({"error": {"message": "no tools"}}, 400), "HTTP 400: no tools (1 attempt)"),
        (as_json({"error": "no such model"}, 422), "HTTP 422: no such model (1 attempt)"),
        (as_json({"detail": "bad field"}, 400), "HTTP 400: bad field (1 attempt)"),
        (as_json({"detail": [{"msg": "bad"}]}, 422), 'HTTP 422: [{"msg": "bad"}] (1 attempt)'),
        (as_json({"message": "nope"}, 400), "HTTP 400: nope (1 attempt)"),
        (as_json([{"error": {"message": "listed"}}], 400), "HTTP 400: listed (1 attempt)"),
        (as_json("just text", 400), "HTTP 400: just text (1 attempt)"),
        (Scripted(413, b"<h1>too\nlarge</h1>"), "HTTP 413: <h1>too large</h1> (1 attempt)"),
        (Scripted(400), "HTTP 400 (1 attempt)"),
        (as_json({"error": {"message": "bad \ud800"}}, 400), "HTTP 400: bad \ufffd (1 attempt)"),
        (
            as_json({"error": {"message": "wrong key"}}, 401),
            "HTTP 401: wrong key; check the key in OPENAI_API_KEY (1 attempt)",
        ),
        (Scripted(403), "HTTP 403; check the key in OPENAI_API_KEY (1 attempt)"),
        (
            as_json(
                {"error": {"message": "Unsupported.", "code": "unsupported_parameter", "param": "max_tokens"}}, 400
            ),
            "HTTP 400: Unsupported.; the server refuses the parameter 'max_tokens' (1 attempt)",
        ),
        (
            as_json({"error": {"message": "pay first", "code": "insufficient_quota"}}, 429, Retry_After="1"),
            "HTTP 429: pay first (1 attempt)",
        ),
        (
            as_json({"error": {"message": "over", "type": "billing_error"}}, 429),
            "HTTP 429: over (1 attempt)",
        ),
        (
            as_json({"error": {"message": "suspended", "type": "exceeded_current_quota_error"}}, 429),
            "HTTP 429: suspended (1 attempt)",
        ),
        (
            as_json({"error": "Your team has used all available credits or reached its spending limit"}, 429),
            "HTTP 429: Your team has used all available credits or reached its spending limit (1 attempt)",
        ),
        (
            as_json({"error": {"message": "Insufficient account balance"}}, 503),
            "HTTP 503: Insufficient account balance (1 attempt)",
        ),
        (
            as_json({"error": "no user query found in messages"}, 500),
            "HTTP 500: no user query found in messages; the server cut the front of a prompt that is longer than "
            "its context length (1 attempt)",
        ),
        (
            Scripted(307, headers={"Location": "https://a:b@n.io/v1?token=t"}),
            "HTTP 307; the server redirects to https://n.io/v1; give the final address as the base URL (1 attempt)",
        ),
    ],
)
def test_other_statuses_fail_at_once_in_the_servers_words(
    serve: Serve, talk: Any, answer: Scripted, said: str
) -> None:
    server = serve(answer)
    one = talk(server)
    failed = one.failure()
    assert str(failed) == f"openai: {server.url}: {said}"
    assert not failed.transient
    assert (len(server.asked), one.slept) == (1, [])


def test_a_missing_page_names_model_and_base_url(serve: Serve, talk: Any) -> None:
    server = serve(Scripted(404, b"not here"))
    secretive = server.url.replace("http://", "http://me:pa55word@") + "?key=AIzaQ77"
    said = str(talk(secretive).failure())
    assert f"HTTP 404: not here; check the model's name and the base URL {server.url} (1" in said
    assert "pa55word" not in said
    assert "AIzaQ77" not in said


def test_a_request_without_a_key_is_told_which_variable_to_set(serve: Serve, talk: Any) -> None:
    said = str(talk(serve(Scripted(401)), key=None).failure())
    assert "HTTP 401; no key was sent; set OPENAI_API_KEY (1 attempt)" in said


def test_a_long_complaint_is_cut_between_words_and_redacted(serve: Serve, talk: Any) -> None:
    words = f"key {KEY} Bearer another-1 https://h/?key=AIza1 " + "word " * 53 + KEY + " tail" * 900
    said = str(talk(serve(Scripted(400, words.encode()))).failure())
    assert "key [redacted] Bearer [redacted] https://h/?key=[redacted] word" in said
    assert "…" in said
    assert len(said) < 500
    assert "sk-" not in said


def test_an_answer_of_the_wrong_kind_shows_its_start(serve: Serve, talk: Any) -> None:
    page = Scripted(body=f"<html>{KEY}</html>".encode(), headers={"Content-Type": "text/html"})
    said = str(talk(serve(page), retries=1).failure())
    assert "HTTP 200 with text/html that is no JSON object: '<html>[redacted]</html>'" in said
    assert said.endswith("check the base URL (2 attempts)")


def test_a_dead_port_is_reported_after_little_waiting(talk: Any) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    one = talk(url, retries=9)
    failed = one.failure()
    assert str(failed).startswith(f"openai: {url}: no connection: ")
    assert str(failed).endswith("; is a server running there? (3 attempts)")
    assert failed.transient
    assert one.slept == [0.25, 0.5]


def test_a_dead_port_without_retries_is_asked_once(talk: Any) -> None:
    one = talk(f"http://127.0.0.1:{unused_port()}/v1", retries=0)
    assert str(one.failure()).endswith("(1 attempt)")


def test_a_server_that_died_after_first_contact_is_given_all_retries(serve: Serve, talk: Any) -> None:
    server = serve(Scripted(body=b'{"ok": true}', headers={"Connection": "close"}))
    one = talk(server, retries=5)
    one.post()
    server.shutdown()
    server.server_close()
    assert str(one.failure()).endswith("(6 attempts)")


@pytest.mark.parametrize(
    ("body", "said"), [({"n": float("nan")}, "the request is not JSON"), ({"n": {1}}, "the request is not JSON")]
)
def test_what_is_no_json_is_not_sent(serve: Serve, talk: Any, body: JsonObject, said: str) -> None:
    server = serve(OK)
    with pytest.raises(ProviderError, match=said) as failed:
        talk(server).post(body)
    assert not failed.value.transient
    assert server.asked == []


def test_a_header_that_cannot_be_sent_shows_no_key(serve: Serve, talk: Any) -> None:
    server = serve(OK)
    said = str(talk(server, key=f"{KEY}\nX: y").failure())
    assert "the request cannot be sent" in said
    assert server.asked == []


def test_an_answer_that_the_reader_refuses_is_asked_for_again(serve: Serve, talk: Any) -> None:
    one = talk(serve(as_json({"n": 1}), as_json({"n": 2})))

    def read(answer: JsonObject) -> int:
        if answer["n"] < 2:
            raise ProviderError("too small", transient=True)
        return int(answer["n"])

    assert one.transport.post_json(one.url, {}, {}, read) == Answer(2, attempts=2, faults=("too small",))
    assert len(one.slept) == 1


def test_every_attempt_is_counted_and_its_reason_kept(serve: Serve, talk: Any) -> None:
    server = serve(as_json({"error": {"message": f"key {KEY}"}}, 500), Scripted(hang_up=True), OK)
    answer = talk(server).ask()
    assert answer.attempts == len(server.asked) == 3
    first, second = answer.faults
    assert first == "HTTP 500: key [redacted]"
    assert second.startswith("the connection broke: ")


def test_an_error_names_the_reasons_of_the_attempts_before(serve: Serve, talk: Any) -> None:
    server = serve(as_json({"error": {"message": f"key {KEY}"}}, 500), Scripted(502), Scripted(502), Scripted(503))
    said = str(talk(server, retries=3).failure())
    assert said.endswith(": HTTP 503 (4 attempts; before: HTTP 500: key [redacted], HTTP 502)")


def test_a_rate_limit_that_names_the_billing_page_is_waited_for(serve: Serve, talk: Any) -> None:
    words = "Rate limit reached. Need more tokens? Upgrade today at https://host.example/settings/billing"
    one = talk(serve(as_json({"error": {"message": words, "code": "rate_limit_exceeded"}}, 429), OK))
    assert one.post() == {"ok": True}


def test_an_answer_too_deep_for_the_reader_is_an_error(serve: Serve, talk: Any) -> None:
    def read(answer: JsonObject) -> int:
        raise RecursionError

    one = talk(serve(OK), retries=0)
    with pytest.raises(ProviderError, match="nested too deeply"):
        one.transport.post_json(one.url, {}, {}, read)


EXPECTED: dict[type[Exception], tuple[bool, str]] = {
    httpx.HTTPError: (True, "the connection broke"),
    httpx.RequestError: (True, "the connection broke"),
    httpx.TransportError: (True, "the connection broke"),
    httpx.NetworkError: (True, "the connection broke"),
    httpx.ReadError: (True, "the connection broke"),
    httpx.WriteError: (True, "the connection broke"),
    httpx.CloseError: (True, "the connection broke"),
    httpx.ProtocolError: (True, "the connection broke"),
    httpx.RemoteProtocolError: (True, "the connection broke"),
    httpx.DecodingError: (True, "the connection broke"),
    httpx.HTTPStatusError: (True, "the connection broke"),
    httpx.ConnectError: (True, "no connection"),
    httpx.ConnectTimeout: (True, "no connection"),
    httpx.ProxyError: (True, "no connection"),
    httpx.TimeoutException: (True, "no answer within 5 s"),
    httpx.ReadTimeout: (True, "no answer within 5 s"),
    httpx.WriteTimeout: (True, "no answer within 5 s"),
    httpx.PoolTimeout: (True, "no answer within 5 s"),
    httpx.UnsupportedProtocol: (False, "the request cannot be sent"),
    httpx.LocalProtocolError: (False, "the request cannot be sent"),
    httpx.TooManyRedirects: (False, "the request cannot be sent"),
    httpx.InvalidURL: (False, "the request cannot be sent"),
    httpx.CookieConflict: (False, "the request cannot be sent"),
    httpx.StreamError: (False, "the request cannot be sent"),
    httpx.StreamConsumed: (False, "the request cannot be sent"),
    httpx.StreamClosed: (False, "the request cannot be sent"),
    httpx.RequestNotRead: (False, "the request cannot be sent"),
    httpx.ResponseNotRead: (False, "the request cannot be sent"),
}


def made(kind: type[Exception]) -> Exception:
    if issubclass(kind, httpx.HTTPStatusError):
        request = httpx.Request("POST", "http://h")
        return kind("boom", request=request, response=httpx.Response(500))
    return kind() if not inspect.signature(kind).parameters else kind("boom")


def test_every_exception_of_httpx_is_expected_here() -> None:
    public = [value for value in vars(httpx).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert set(EXPECTED) == set(public)


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_every_exception_of_httpx_is_mapped(kind: type[Exception]) -> None:
    transient, said = EXPECTED[kind]

    def handler(request: httpx.Request) -> httpx.Response:
        raise made(kind)

    transport = HttpTransport(
        Account("openai", "https://h.example"),
        Patience(timeout=5, retries=1, sleep=lambda _: None),
        new_client=lambda: httpx.Client(transport=httpx.MockTransport(handler)),
    )
    with pytest.raises(ProviderError) as failed:
        transport.post_json("https://h.example/x", {}, {}, lambda answer: answer)
    transport.close()
    assert str(failed.value).startswith(f"openai: https://h.example/x: {said}")
    assert failed.value.transient is transient


# --- limits of time


def refused(one: Talk, until: float) -> str:
    failed = one.failure(until)
    assert isinstance(failed, TimeLimitError)
    return str(failed)


def test_a_time_limit_that_is_over_sends_nothing(serve: Serve, talk: Any) -> None:
    server = serve(OK)
    one = talk(server)
    assert refused(one, until=0.0) == f"openai: {server.url}: the time limit of the case was reached"
    assert server.asked == []


def test_no_wait_goes_past_the_time_limit(serve: Serve, talk: Any) -> None:
    server = serve(as_json({"error": {"message": "slower"}}, 429, Retry_After="8"))
    one = talk(server)
    said = refused(one, until=15.0)
    assert "the time limit of the case would be reached by waiting" in said
    assert said.endswith("(2 attempts; before: HTTP 429: slower)")
    assert len(server.asked) == 2
    assert 8 <= sum(one.slept) <= 10


@pytest.mark.parametrize(
    "slow",
    [
        Scripted(body=b'{"ok": true}', delay=30),
        Scripted(body=b'{"ok": true}' + b" " * 6000, drip=0.005),
        Scripted(body=b'{"ok": true}', header_drip=0.05),
        Scripted(body=b'{"ok": true}', declared_length=900, stall=30),
    ],
    ids=["silent", "dripping body", "dripping headers", "stalled body"],
)
def test_no_attempt_goes_past_the_time_limit(serve: Serve, slow: Scripted) -> None:
    server = serve(slow)
    transport = HttpTransport(Account("p", server.url), Patience(timeout=60.0))
    started = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"the time limit of the case was reached before the answer .*\(1 att"):
        transport.post_json(server.url, {}, {}, lambda answer: answer, started + 0.3)
    assert 0.25 < time.monotonic() - started < 1.5
    transport.close()


@pytest.mark.parametrize(
    "slow",
    [
        Scripted(body=b'{"ok": true}', delay=30),
        Scripted(body=b'{"ok": true}' + b" " * 6000, drip=0.005),
        Scripted(body=b'{"ok": true}', header_drip=0.05),
        Scripted(body=b'{"ok": true}', declared_length=900, stall=30),
    ],
    ids=["silent", "dripping body", "dripping headers", "stalled body"],
)
def test_an_attempt_takes_no_longer_than_its_timeout(serve: Serve, talk: Any, slow: Scripted) -> None:
    one = talk(serve(slow), timeout=0.3, retries=0)
    started = time.monotonic()
    said = str(one.failure())
    assert 0.25 < time.monotonic() - started < 1.5
    assert re.search(r"no (whole )?answer within 0\.3 s", said)


def test_silence_has_a_limit_of_its_own(serve: Serve, talk: Any) -> None:
    drips = Scripted(body=b'{"ok": true}' + b" " * 40, drip=0.01)
    one = talk(serve(drips, Scripted(body=b"", delay=30)), timeout=20.0, silence=0.25, retries=0)
    assert one.post() == {"ok": True}
    started = time.monotonic()
    assert "no answer within 0.25 s (ReadTimeout)" in str(one.failure())
    assert time.monotonic() - started < 1.5


def test_connecting_has_a_limit_of_its_own(talk: Any) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(address)
        started = time.monotonic()
        said = str(talk(f"http://127.0.0.1:{address[1]}/v1", timeout=20.0, connect=0.2, retries=0).failure())
        for one in waiting:
            one.close()
    assert "no connection: " in said
    assert time.monotonic() - started < 2


def test_a_connection_that_was_broken_off_is_not_used_again(serve: Serve, talk: Any) -> None:
    server = serve(Scripted(body=b"{}", delay=0.6), OK, OK)
    one = talk(server, timeout=0.2)
    assert one.ask().attempts == 2
    time.sleep(0.6)
    assert one.ask().attempts == 1


def test_an_answer_without_an_end_is_an_error(serve: Serve, talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LONGEST_BODY", 1024**2)
    server = serve(Scripted(body=b" " * (2 * 1024**2) + b"{}"))
    assert "the answer is longer than 1 MiB; check the base URL (1 attempt)" in str(talk(server).failure())


def test_closing_ends_a_wait(serve: Serve) -> None:
    server = serve(as_json({"error": "slow"}, 429, Retry_After="50"))
    transport = HttpTransport(Account("p", server.url), Patience())
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(transport.post_json, server.url, {}, {}, str)
        while not server.asked:
            time.sleep(0.01)
        time.sleep(0.05)
        transport.close()
        with pytest.raises(
            ProviderError, match=r"the transport was closed .*\(1 attempt; before: HTTP 429: slow\)"
        ):
            asked.result(timeout=5)


# --- one pause for all


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_that_asks_one_request_to_wait_is_left_alone_by_all(serve: Serve, status: int) -> None:
    moments: list[float] = []
    server = serve(as_json({}, status, Retry_After="0.6"), OK)
    server.on_request = lambda: moments.append(time.monotonic())
    transport = HttpTransport(Account("p", server.url), Patience())

    def ask(_: int) -> Answer[JsonObject]:
        return transport.post_json(server.url, {}, {}, lambda answer: answer)

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(ask, 0)
        while not server.asked:
            time.sleep(0.005)
        time.sleep(0.1)
        others = list(pool.map(ask, range(8)))
        answers = [first.result(), *others]
    transport.close()
    assert [answer.attempts for answer in answers] == [2] + [1] * 8
    waits = [moment - moments[0] for moment in moments[1:]]
    assert len(waits) == 9
    assert min(waits) >= 0.58
    assert max(waits) < 1.5
    assert len({round(wait, 3) for wait in waits}) > 3


@pytest.mark.parametrize(
    "answer",
    [as_json({}, 500, Retry_After="30"), as_json({}, 503), Scripted(hang_up=True), Scripted(body=b"<html>")],
    ids=["500", "503 without a time", "hang-up", "html"],
)
def test_a_fault_of_one_request_delays_no_other(serve: Serve, talk: Any, answer: Scripted) -> None:
    one = talk(serve(answer, OK), retries=0)
    one.failure()
    assert one.post() == {"ok": True}
    assert one.slept == []


@pytest.mark.parametrize(
    ("answer", "wait"), [(as_json({}, 429), 0.5), (as_json({}, 529, Retry_After="3"), 3.0)], ids=["429", "529"]
)
def test_the_pause_holds_when_the_request_that_met_it_is_given_up(
    serve: Serve, talk: Any, answer: Scripted, wait: float
) -> None:
    one = talk(serve(answer, OK), retries=0)
    one.failure()
    assert one.slept == []
    assert one.post() == {"ok": True}
    assert wait <= one.slept[0] <= 2.5 * wait


@pytest.mark.parametrize("header", ["3600", "181"])
def test_no_other_request_waits_for_what_is_too_long_for_one(serve: Serve, talk: Any, header: str) -> None:
    one = talk(serve(as_json({}, 429, Retry_After=header), OK))
    one.failure()
    assert one.post() == {"ok": True}
    assert one.slept == []


def test_a_pause_that_grows_is_waited_out(serve: Serve) -> None:
    slept: list[float] = []
    transport = HttpTransport(Account("p", "http://h"), Patience(monotonic=lambda: sum(slept), sleep=slept.append))
    longer = iter([4.0, 9.0])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        transport._pause.extend(sum(slept) + next(longer, 0))

    transport._sleep = sleep
    transport._pause.extend(2.0)
    server = serve(OK)
    assert transport.post_json(server.url, {}, {}, lambda answer: answer).attempts == 1
    transport.close()
    assert [round(low <= wait <= 1.25 * low) for low, wait in zip([2, 4, 9], slept, strict=True)] == [1, 1, 1]


def test_an_untrusted_certificate_has_a_hint() -> None:
    error = exchange_error(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), 5)
    assert "SSL_CERT_FILE" in str(error)


def test_sixteen_threads_use_a_connection_each_and_close_frees_them(serve: Serve, talk: Any) -> None:
    server = serve(Scripted(body=b'{"ok": true}', delay=0.05))
    one = talk(server)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: one.post(), range(64)))
    assert answers == [{"ok": True}] * 64
    assert 1 <= server.connections <= 16
    handlers = threading.active_count()
    one.transport.close()
    deadline = time.monotonic() + 5
    while threading.active_count() >= handlers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() < handlers


PROXIED = """
import json, sys
from pytest_tooleval.providers import http
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.http import HttpTransport, Patience
from pytest_tooleval.errors import ProviderError
transport = HttpTransport(Account("p", sys.argv[1]), Patience(timeout=5, retries=0))
try:
    print(json.dumps(transport.post_json(sys.argv[1], {}, {"q": 1}, lambda answer: answer).value))
except ProviderError as error:
    print(error)
transport.close()
"""


def in_environment(url: str, **environ: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", PROXIED, url], env=kept | environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_proxies_of_the_environment_serve_hosted_providers_only(serve: Serve) -> None:
    proxy, local = serve(as_json({"from": "proxy"})), serve(as_json({"from": "local"}))
    address = proxy.url.removesuffix("/v1")
    assert json.loads(in_environment("http://models.example/v1", http_proxy=address)) == {"from": "proxy"}
    assert json.loads(in_environment(local.url, http_proxy=address)) == {"from": "local"}
    assert [asked.path for asked in proxy.asked] == ["http://models.example/v1"]


def test_unusable_proxy_settings_are_told_without_their_password() -> None:
    said = in_environment("http://models.example/v1", http_proxy="gopher://me:pa55word@proxy")
    assert "settings of the environment cannot be used" in said
    assert "pa55word" not in said


def test_a_client_in_use_is_closed_when_its_answer_is_there(serve: Serve) -> None:
    client = httpx.Client()
    transport = HttpTransport(Account("p", "http://h"), new_client=lambda: client)

    def handed_over(answer: JsonObject) -> JsonObject:
        return answer

    server = serve(Scripted(body=b'{"ok": true}', delay=0.2))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(transport.post_json, server.url, {}, {}, handed_over)
        while not server.asked:
            time.sleep(0.01)
        transport.close()
        assert asked.result().value == {"ok": True}
    assert client.is_closed
