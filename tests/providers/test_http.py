from __future__ import annotations

import inspect
import json
import os
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
from pytest_tooleval.providers.account import Account
from pytest_tooleval.providers.http import Answer, HttpTransport, JsonObject, Patience
from pytest_tooleval.providers.http_errors import exchange_error

Serve = Callable[..., LoopbackServer]

KEY = "sk-TopSecret-99"
OK = as_json({"ok": True})
NOON = 1_768_478_400.0  # 15 January 2026, 12:00:00 UTC


class Talk:
    """A transport to one URL that records its waits instead of waiting."""

    def __init__(self, url: str, *, retries: int = 4, timeout: float = 5.0, key: str | None = KEY) -> None:
        self.slept: list[float] = []
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        account = Account("openai", url, "OPENAI_API_KEY", key)
        self.transport = HttpTransport(account, Patience(timeout, retries, self.slept.append, lambda: NOON))

    def post(self, body: JsonObject | None = None) -> JsonObject:
        return self.transport.post_json(self.url, self.headers, body or {"q": 1}, lambda answer: answer).value

    def failure(self) -> ProviderError:
        with pytest.raises(ProviderError) as failed:
            self.post()
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


def test_backoff_grows_with_jitter_up_to_its_cap(serve: Serve, talk: Any) -> None:
    one = talk(serve(as_json({}, 500)), retries=9)
    one.failure()
    assert all(low <= wait <= low + 1 for wait, low in zip(one.slept[:6], [0.5, 1, 2, 4, 8, 16], strict=True))
    assert one.slept[6:] == [30.0, 30.0, 30.0]
    assert len({wait % 1 for wait in one.slept[:6]}) > 1


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("Thu, 15 Jan 2026 12:00:20 GMT", 20.0),
        ("Thu, 15 Jan 2026 11:00:00 GMT", 0.0),
        ("3600", 60.0),
        ("Fri, 16 Jan 2026 12:00:00 GMT", 60.0),
    ],
)
def test_retry_after_is_kept_to_and_capped(serve: Serve, talk: Any, header: str, wait: float) -> None:
    one = talk(serve(as_json({}, 429, Retry_After=header), OK))
    assert one.post() == {"ok": True}
    assert one.slept == [wait]


@pytest.mark.parametrize("header", ["soon", "9" * 400, "Thu, 15 Jan 99999 12:00:00 GMT"])
def test_a_useless_retry_after_means_backoff(serve: Serve, talk: Any, header: str) -> None:
    one = talk(serve(as_json({}, 429, Retry_After=header), OK))
    assert one.post() == {"ok": True}
    assert 0.5 <= one.slept[0] <= 1.5


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
            as_json({"error": {"message": "pay first", "code": "insufficient_quota"}}, 429),
            "HTTP 429: pay first (1 attempt)",
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

    assert one.transport.post_json(one.url, {}, {}, read) == Answer(2, attempts=2)
    assert len(one.slept) == 1


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
