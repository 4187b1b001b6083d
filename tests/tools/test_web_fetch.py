"""web_fetch on supplied pages, and on real servers of this machine under a policy that allows them."""

from __future__ import annotations

import contextlib
import gzip
import ipaddress
import shutil
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pytest_tooleval
from pytest_tooleval.cases.case import Page
from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools import web_fetch
from pytest_tooleval.tools.public_address import Address, Network, is_public
from pytest_tooleval.tools.tool import ToolContext, ToolLimits
from pytest_tooleval.tools.web_fetch import TOOL, Fetched, fetch

SOURCES = str(Path(pytest_tooleval.__file__).parents[1])
LIMITS = ToolLimits(fetch_seconds=5)

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each path with the function of that path."""

    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers["Host"]))
        with contextlib.suppress(OSError):
            self.server.answers[self.path](self)
        self.close_connection = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def begin(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


class Site(ThreadingHTTPServer):
    """A real server that remembers its connections and requests."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, answers: dict[str, Answer], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.seen: list[tuple[str, str]] = []
        self.connections = 0
        self.tls = tls

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get_request(self) -> tuple[Any, Any]:
        self.connections += 1
        connection, address = super().get_request()
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error here."""


@contextlib.contextmanager
def serving(answers: dict[str, Answer], tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    with Site(answers, tls) as site:
        thread = threading.Thread(target=partial(site.serve_forever, poll_interval=0.01), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


def says(body: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(status, Content_Length=str(len(body)), **headers)
        handler.wfile.write(body)

    return answer


def redirects(location: str, status: int = 302) -> Answer:
    return says(b"moved", status, Location=location)


def loopback(address: Address) -> bool:
    return address == ipaddress.ip_address("127.0.0.1")


HERE = Network(allowed=loopback)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700:4700::1001", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::5db8:d822", True),
        ("127.0.0.1", False),
        ("127.8.9.1", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.31.255.1", False),
        ("192.168.0.7", False),
        ("100.127.0.1", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("192.0.0.192", False),
        ("198.51.100.3", False),
        ("224.0.0.251", False),
        ("239.1.1.1", False),
        ("250.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::127.0.0.1", False),
        ("fd00:ec2::254", False),
        ("fc00::9", False),
        ("fe80::1", False),
        ("fe80::1%1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2001:db8::7", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("64:ff9b::a00:1", False),
        ("2002:c0a8:1::1", False),
        ("2001:0:5db8:d822:0:0:f5ff:fffe", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
    ],
)
def test_the_tool_opens_no_connection_to_this_machine(host: str, tmp_path: Path) -> None:
    with serving({"/": says(b"secret", Content_Type="text/plain")}) as site:
        with pytest.raises(ToolError, match=r"not a public address|was not found|is not a URL"):
            TOOL.run({"url": f"http://{host}:{site.port}/"}, ToolContext(worktree=tmp_path))
        assert site.connections == 0


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain", b"plain \xe2\x82\xac", "plain \u20ac"),
        ("text/plain; charset=latin-1", b"caf\xe9", "caf\u00e9"),
        ("text/html", b'<meta charset="windows-1252"><p>\x80', '<meta charset="windows-1252"><p>\u20ac'),
        ("text/plain; charset=no-such", b"a\xff", "a\ufffd"),
        ("text/plain; charset=idna", b"\xffa", "\ufffda"),
        ("text/plain; charset=unicode_escape", rb"x\ud800", "x?"),
        ("text/plain", "\ufeffmarked".encode(), "marked"),
        ("text/plain", "wide".encode("utf-16"), "wide"),
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/problem+json; x=y", b"{}", "{}"),
        ("application/rss+xml", b"<rss/>", "<rss/>"),
        ("TEXT/CSV", b"a,b", "a,b"),
    ],
)
def test_text_is_decoded(content_type: str, body: bytes, text: str) -> None:
    with serving({"/page?q=1": says(body, Content_Type=content_type)}) as site:
        fetched = fetch(f"{site.url}/page?q=1#part", LIMITS, HERE)
    assert fetched == Fetched(f"{site.url}/page?q=1#part", 200, content_type, text)


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [("image/png", "image/png"), ("application/pdf; v=1", "application/pdf"), ("video/mp4", "video/mp4")],
)
def test_other_content_is_refused_by_name(content_type: str, shown: str) -> None:
    with (
        serving({"/x": says(b"\x89PNG", Content_Type=content_type)}) as site,
        pytest.raises(ToolError, match=f"is {shown}: only text"),
    ):
        fetch(f"{site.url}/x", LIMITS, HERE)


def test_content_without_a_type_is_text_unless_it_is_not() -> None:
    with serving({"/text": says(b"words"), "/binary": says(b"\x00\x01\x02")}) as site:
        assert fetch(f"{site.url}/text", LIMITS, HERE).body == "words"
        with pytest.raises(ToolError, match="is not text"):
            fetch(f"{site.url}/binary", LIMITS, HERE)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    answers = {"/old/a": redirects("../new", status), "/new": says(b"here", Content_Type="text/plain")}
    with serving(answers) as site:
        fetched = fetch(f"{site.url}/old/a", LIMITS, HERE)
        assert (fetched.url, fetched.body) == (f"{site.url}/new", "here")


@pytest.mark.parametrize(("hops", "followed"), [(5, True), (6, False)])
def test_redirects_are_counted(hops: int, followed: bool) -> None:
    answers = {f"/{number}": redirects(f"/{number - 1}") for number in range(1, hops + 1)}
    with serving({**answers, "/0": says(b"end", Content_Type="text/plain")}) as site:
        if followed:
            assert fetch(f"{site.url}/{hops}", LIMITS, HERE).body == "end"
        else:
            with pytest.raises(ToolError, match="more than 5 redirects"):
                fetch(f"{site.url}/{hops}", LIMITS, HERE)


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254, which is not a public address"),
        ("http://127.0.0.2:{port}/secret", "127.0.0.2, which is not a public address"),
        ("http://[::ffff:127.0.0.1]:{port}/secret", "which is not a public address"),
        ("//10.0.0.9/", "10.0.0.9, which is not a public address"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("ftp://127.0.0.1/x", "only http:// and https://"),
        ("http://me:word@127.0.0.1:{port}/secret", "user name or a password"),
        ("http://[::1", "not a URL"),
    ],
)
def test_a_redirect_is_checked_like_any_url(location: str, complaint: str) -> None:
    answers: dict[str, Answer] = {"/secret": says(b"secret", Content_Type="text/plain")}
    with serving(answers) as site:
        answers["/out"] = redirects(location.format(port=site.port))
        with pytest.raises(ToolError, match=complaint):
            fetch(f"{site.url}/out", LIMITS, HERE)
        assert [path for path, _ in site.seen] == ["/out"]


def test_a_name_is_looked_up_once_and_that_address_is_used() -> None:
    asked: list[tuple[str, int]] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with serving({"/": says(b"once", Content_Type="text/plain")}) as site:
        fetched = fetch(f"http://pages.example:{site.port}/", LIMITS, Network(loopback, rebinding))
        assert fetched.body == "once"
        assert asked == [("pages.example", site.port)]
        assert site.seen == [("/", f"pages.example:{site.port}")]


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["fe80::1%1", "127.0.0.1"], ["::ffff:127.0.0.1"]]
)
def test_one_refused_address_refuses_the_host(addresses: list[str]) -> None:
    with serving({}) as site:
        with pytest.raises(ToolError, match=r"pages\.example is at .*, which is not a public address"):
            fetch(f"http://pages.example:{site.port}/", LIMITS, Network(loopback, lambda *_: addresses))
        assert site.connections == 0


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    network = Network(lambda _: True, lambda *_: ["::1", "127.0.0.1"])
    with serving({"/": says(b"second", Content_Type="text/plain")}) as site:
        assert fetch(f"http://pages.example:{site.port}/", LIMITS, network).body == "second"


def drips_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(200):
        handler.wfile.write(b"X-%d: y\r\n" % number)
        time.sleep(0.03)


def drips_body(handler: Handler) -> None:
    handler.begin(200, Content_Type="text/plain", Content_Length="100000")
    for _ in range(200):
        handler.wfile.write(b".")
        time.sleep(0.03)


def stays_silent(handler: Handler) -> None:
    handler.rfile.read(1)


def redirects_slowly(handler: Handler) -> None:
    time.sleep(0.15)
    redirects("/around")(handler)


@pytest.mark.parametrize("answer", [drips_headers, drips_body, stays_silent, redirects_slowly])
def test_time_is_bounded_all_together(answer: Answer) -> None:
    with serving({"/": answer, "/around": answer}) as site:
        started = time.monotonic()
        with pytest.raises(ToolError, match=r"did not answer in full within 0\.4 s"):
            fetch(f"{site.url}/", ToolLimits(fetch_seconds=0.4), HERE)
        assert 0.35 < time.monotonic() - started < 4


def test_a_slow_resolver_is_not_waited_for() -> None:
    answered = threading.Event()

    def slow(host: str, port: int) -> Sequence[str]:
        answered.wait(5)
        return ["127.0.0.1"]

    started = time.monotonic()
    with pytest.raises(ToolError, match=r"within 0\.2 s"):
        fetch("http://pages.example/", ToolLimits(fetch_seconds=0.2), Network(loopback, slow))
    assert time.monotonic() - started < 4
    answered.set()


def streams_forever(handler: Handler) -> None:
    handler.begin(200, Content_Type="text/plain")
    while True:
        handler.wfile.write(b"x" * 65_536)


BOMB = gzip.compress(bytes(60_000_000), compresslevel=1)


def explodes(handler: Handler) -> None:
    handler.begin(200, Content_Type="text/plain", Content_Encoding="gzip", Content_Length=str(len(BOMB)))
    handler.wfile.write(BOMB)


@pytest.mark.parametrize("answer", [streams_forever, explodes])
def test_size_is_bounded(answer: Answer) -> None:
    with serving({"/": answer}) as site:
        tracemalloc.start()
        try:
            fetched = fetch(f"{site.url}/", LIMITS, HERE)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert fetched.cut
    assert len(fetched.body) == web_fetch.MOST_BODY_BYTES
    assert peak < 30_000_000


@pytest.mark.parametrize(
    ("encoding", "body", "outcome"),
    [
        ("gzip", gzip.compress(b"small", mtime=0), "small"),
        ("identity", b"small", "small"),
        ("gzip", b"not gzip", "is not valid gzip"),
        ("br", b"x", "compressed with br"),
    ],
)
def test_compression(encoding: str, body: bytes, outcome: str) -> None:
    with serving({"/": says(body, Content_Type="text/plain", Content_Encoding=encoding)}) as site:
        if outcome == "small":
            assert fetch(f"{site.url}/", LIMITS, HERE).body == outcome
        else:
            with pytest.raises(ToolError, match=outcome):
                fetch(f"{site.url}/", LIMITS, HERE)


def breaks_off(handler: Handler) -> None:
    handler.begin(200, Content_Type="text/plain", Content_Length="100")
    handler.wfile.write(b"half")


def talks_nonsense(handler: Handler) -> None:
    handler.wfile.write(b"hello there\r\n\r\n")


@pytest.mark.parametrize("answer", [breaks_off, talks_nonsense])
def test_a_broken_answer_is_a_tool_error(answer: Answer) -> None:
    with serving({"/": answer}) as site, pytest.raises(ToolError, match="cannot be fetched"):
        fetch(f"{site.url}/", LIMITS, HERE)


def test_nobody_there_is_a_tool_error() -> None:
    with serving({}) as site:
        url = site.url
    with pytest.raises(ToolError, match=r"cannot be fetched: .*refused"):
        fetch(url, LIMITS, HERE)


def test_an_unknown_host_is_a_tool_error() -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    with pytest.raises(ToolError, match=r"no\.example was not found: Name or service"):
        fetch("http://no.example/", LIMITS, Network(loopback, unknown))


def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as proxy, serving({"/": says(b"direct", Content_Type="text/plain")}) as site:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch(site.url, LIMITS, HERE).body == "direct"
        assert proxy.connections == 0


def test_many_at_once() -> None:
    answers = {f"/{n}": says(b"%d" % n, Content_Type="text/plain") for n in range(40)}
    with serving(answers) as site, ThreadPoolExecutor(20) as pool:
        got = list(pool.map(lambda n: fetch(f"{site.url}/{n}", LIMITS, HERE).body, range(40)))
    assert got == [str(n) for n in range(40)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, chain = folder / "key.pem", folder / "chain.pem"
    name = ["-subj", "/CN=pages.example", "-addext", "subjectAltName=DNS:pages.example"]
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(chain)]
    subprocess.run([openssl, "req", *kind, *name, *files], check=True, capture_output=True)
    return key, chain


@pytest.mark.parametrize(("host", "trusted"), [("pages.example", True), ("other.example", False)])
def test_tls_verifies_the_name_though_the_address_is_connected_to(
    host: str, trusted: bool, certificate: tuple[Path, Path]
) -> None:
    key, chain = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    names: list[str | None] = []
    served.sni_callback = lambda _socket, name, _context: names.append(name)
    network = Network(loopback, lambda *_: ["127.0.0.1"], lambda: ssl.create_default_context(cafile=str(chain)))
    with serving({"/": says(b"private", Content_Type="text/plain")}, served) as site:
        url = f"https://{host}:{site.port}/"
        if trusted:
            assert fetch(url, LIMITS, network).body == "private"
        else:
            with pytest.raises(ToolError, match=r"cannot be fetched: .*certificate"):
                fetch(url, LIMITS, network)
    assert names == [host]


def test_by_default_an_unknown_authority_is_not_trusted(certificate: tuple[Path, Path]) -> None:
    key, chain = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    with serving({"/": says(b"")}, served) as site, pytest.raises(ToolError, match="certificate"):
        fetch(f"https://pages.example:{site.port}/", LIMITS, Network(loopback, lambda *_: ["127.0.0.1"]))


PAGES = {
    "https://docs.example": Page("<h1>Docs</h1><p>Welcome to <b>the</b>\n docs."),
    "https://docs.example/api?v=2": Page('{"v": 2}', content_type="application/json"),
    "https://docs.example/gone": Page("<p>It was moved.", status=410),
    "https://docs.example/logo": Page("...", content_type="image/png"),
    "https://docs.example/lost": Page("...", status=404, content_type="image/png"),
    "http://docs.example:8080/x": Page("x" * 5000, content_type="text/plain"),
    "https://docs.example/empty": Page("", content_type="text/plain"),
}


@pytest.fixture
def supplied(tmp_path: Path) -> ToolContext:
    return ToolContext(worktree=tmp_path, pages=PAGES)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://docs.example", "# Docs\n\nWelcome to the docs."),
        ("https://docs.example/", "# Docs\n\nWelcome to the docs."),
        ("HTTPS://DOCS.example:443/#top", "# Docs\n\nWelcome to the docs."),
        ("https://docs.example/api?v=2", '{"v": 2}'),
        ("https://docs.example/empty", "(the page is empty)"),
    ],
)
def test_supplied_pages(url: str, text: str, supplied: ToolContext) -> None:
    assert TOOL.run({"url": url}, supplied) == text


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (
            "https://docs.example/none",
            r"no page at https://docs\.example/none\. Known pages: https://docs\.example, ",
        ),
        ("https://docs.example/api", "no page at"),
        ("http://docs.example/", "no page at"),
        ("https://docs.example/API?v=2", "no page at"),
        ("https://docs.example/gone", r"^HTTP 410 from https://docs\.example/gone\nIt was moved\.$"),
        ("https://docs.example/logo", "is image/png: only text"),
        ("https://docs.example/lost", "^HTTP 404 from"),
        ("https://me@docs.example/", "user name or a password"),
        ("https://:word@docs.example/", "user name or a password"),
        ("docs.example", "only http:// and https://"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("http://", "only http:// and https://"),
        ("http://[half", "is not a URL"),
        ("http://docs.example:99999/", "is not a URL"),
        ("", "only http:// and https://"),
    ],
)
def test_supplied_pages_refuse(url: str, complaint: str, supplied: ToolContext) -> None:
    with pytest.raises(ToolError, match=complaint):
        TOOL.run({"url": url}, supplied)


@pytest.mark.parametrize(
    ("most", "limit", "length"), [(1000, 30_000, 1000), (None, 2000, 2000), (9999, 2000, 2000)]
)
def test_the_result_is_bounded(most: int | None, limit: int, length: int, supplied: ToolContext) -> None:
    context = ToolContext(worktree=supplied.worktree, pages=PAGES, limits=ToolLimits(result_chars=limit))
    arguments: dict[str, Any] = {"url": "http://docs.example:8080/x"}
    if most is not None:
        arguments["max_chars"] = most
    result = TOOL.run(arguments, context)
    assert length - 200 < len(result) <= length
    assert f"[... {5000 - result.count('x')} more characters left out ...]" in result


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<title>T &amp; U</title><script>if (a<b) x()</script><style>p{}</style>body", "T & U\n\nbody"),
        ("<ul><li>one<li><b>two</b></ul>after", "- one\n- two\n\nafter"),
        ('<a href="q?a=1">link</a> <a href="#x">here</a>', "link (https://a.example/dir/q?a=1) here"),
        ('<a href="javascript:x()">do</a><a href="https://b.example/"> </a>', "do"),
        ('<a href="http://[bad">odd</a>', "odd"),
        ("<pre>  two\n    four</pre>", "two\n    four"),
        ("<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>", "a\tb\n1\t2"),
        ("1 < 2 &lt; 3 &#xD800; <![oops[x]>end<!-- hidden -->", "1 < 2 < 3 \ufffd end"),
        ("a<br>b<br/>c<div>d</div><div>e", "a\nb\nc\nd\ne"),
        ("a<br><br>b<div><div>c</div></div>d", "a\n\nb\nc\nd"),
        ("<svg><text>drawn</text></svg><template><ul><li>t</ul></template>shown", "shown"),
        ("<h3>Deep</h3><p>  much\n\n   space  </p>", "### Deep\n\nmuch space"),
        ("text <a href='never closed", "text"),
    ],
)
def test_html_becomes_readable(page: str, text: str, tmp_path: Path) -> None:
    pages = {"https://a.example/dir/page": Page(page)}
    context = ToolContext(worktree=tmp_path, pages=pages)
    assert TOOL.run({"url": "https://a.example/dir/page"}, context) == text


@pytest.mark.parametrize("piece", ["<a href=x>b", "<a ", "</", "<!--", "<![x[", "&#", "<p>"])
def test_spoilt_html_takes_no_time(piece: str, tmp_path: Path) -> None:
    context = ToolContext(
        worktree=tmp_path, pages={"http://a.example/": Page(piece * (400_000 // len(piece)) + ">")}
    )
    started = time.process_time()
    TOOL.run({"url": "http://a.example/"}, context)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"url": "https://a.example"}, True),
        ({"url": "https://a.example", "max_chars": 10}, True),
        ({"url": "https://a.example", "max_chars": 0}, False),
        ({"url": 3}, False),
        ({"url": "https://a.example", "method": "POST"}, False),
        ({}, False),
    ],
)
def test_parameters(arguments: dict[str, Any], valid: bool) -> None:
    assert jsonschema.Draft202012Validator(dict(TOOL.parameters)).is_valid(arguments) is valid


def test_importing_the_module_loads_no_http_library() -> None:
    script = (
        "import sys; import pytest_tooleval.tools.web_fetch, pytest_tooleval.tools.run_command; "
        "print([name for name in ('httpx', 'httpcore', 'ssl', 'psutil') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": SOURCES},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"
