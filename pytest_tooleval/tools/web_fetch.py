"""The tool that reads a web page: one that the fixture supplies, or one of the public web."""

from __future__ import annotations

import codecs
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pytest_tooleval.cases.case import Page
from pytest_tooleval.errors import ToolError
from pytest_tooleval.providers.compression import CompressionError, decompressed
from pytest_tooleval.tools.public_address import CheckedBackend, Deadline, Network
from pytest_tooleval.tools.tool import Tool, ToolContext, ToolLimits

if TYPE_CHECKING:
    import httpcore

MOST_BODY_BYTES = 2_000_000
MOST_REDIRECTS = 5

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NOTICES = 160
_HEADERS = {
    "User-Agent": "pytest-tooleval",
    "Accept": "text/html, application/json, text/*;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a URL gave in the end.

    Attributes:
        url: the last URL, after redirects.
        status: HTTP status.
        content_type: value of the header, empty when it was missing.
        body: the decoded text.
        cut: True when the body was longer than `MOST_BODY_BYTES`.

    """

    url: str
    status: int
    content_type: str
    body: str
    cut: bool = False


def fetch(url: str, limits: ToolLimits, network: Network | None = None) -> Fetched:
    """Get a URL over the network, redirects followed, every address checked before it is connected to.

    Raises ToolError when an address is not allowed, the host cannot be reached in `limits.fetch_seconds` all
    together, there are too many redirects, or the content is no text.
    """
    way = network or Network()
    deadline = Deadline.after(limits.fetch_seconds)
    current = url
    for _ in range(MOST_REDIRECTS + 1):
        answer = _get_in_time(current, way, deadline, limits)
        if isinstance(answer, Fetched):
            return answer
        current = answer
    raise ToolError(f"{url} leads to more than {MOST_REDIRECTS} redirects.")


def _run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    url: str = arguments["url"]
    _check_url(url)
    fetched = _supplied(url, context.pages) if context.pages else fetch(url, context.limits)
    most = min(arguments.get("max_chars", context.limits.result_chars), context.limits.result_chars)
    text = _readable(fetched)
    if fetched.status >= 400:
        raise ToolError(_cut(f"HTTP {fetched.status} from {fetched.url}\n{text}".strip(), min(most, 1000)))
    if fetched.cut:
        text += "\n[... the page is longer than can be read ...]"
    if _normal(fetched.url) != _normal(url):
        text = f"[redirected to {fetched.url}]\n{text}"
    return _cut(text, most) or "(the page is empty)"


def _check_url(url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ToolError(f"{url!r} is not a URL: {error}.") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise ToolError(f"{url!r} cannot be fetched: only http:// and https:// URLs with a host can.")
    if "@" in parts.netloc:
        raise ToolError("URLs with a user name or a password are not fetched. Leave them out.")


def _supplied(url: str, pages: Mapping[str, Page]) -> Fetched:
    by_normal = {_normal(known): page for known, page in pages.items()}
    page = by_normal.get(_normal(url))
    if page is None:
        raise ToolError(f"There is no page at {url}. Known pages: {', '.join(list(pages)[:20])}.")
    if page.status < 400:
        _check_type(url, page.content_type)
    return Fetched(url, page.status, page.content_type, page.body)


def _normal(url: str) -> str:
    """Return the URL without what makes no difference: letter case of the host, default port, fragment."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    netloc = host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"
    return urllib.parse.urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))


def _get_in_time(url: str, network: Network, deadline: Deadline, limits: ToolLimits) -> Fetched | str:
    import httpcore

    _check_url(url)
    try:
        return _get(url, network, deadline)
    except (TimeoutError, httpcore.TimeoutException) as error:
        raise ToolError(f"{url} did not answer in full within {limits.fetch_seconds:g} s.") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise ToolError(f"{url} cannot be fetched: {error or type(error).__name__}.") from error


def _get(url: str, network: Network, deadline: Deadline) -> Fetched | str:
    """Return the page, or the URL that it redirects to."""
    import httpcore

    target, host = _target(url)
    headers = [("Host", host), *_HEADERS.items()]
    backend = cast("httpcore.NetworkBackend", CheckedBackend(network, deadline))
    tls = network.tls() if target.scheme == b"https" else None
    with (
        httpcore.ConnectionPool(ssl_context=tls, network_backend=backend) as pool,
        pool.stream("GET", target, headers=headers) as response,
    ):
        location = _header(response, b"location")
        if response.status in _REDIRECTS and location:
            return _joined(url, location)
        return _read(url, response, deadline)


def _target(url: str) -> tuple[httpcore.URL, str]:
    """Return the URL as httpcore takes it (names and paths in ASCII), and the value of the Host header."""
    import httpcore
    import httpx

    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ToolError(f"{url!r} is not a URL: {error}.") from error
    target = httpcore.URL(scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path)
    return target, parsed.netloc.decode("ascii")


def _joined(url: str, location: str) -> str:
    try:
        return urllib.parse.urldefrag(urllib.parse.urljoin(url, location)).url
    except ValueError as error:
        raise ToolError(f"{url} redirects to {location!r}, which is not a URL.") from error


def _header(response: httpcore.Response, name: bytes) -> str:
    values = (value for key, value in response.headers if key.lower() == name)
    return next(values, b"").decode("latin-1").strip()


def _read(url: str, response: httpcore.Response, deadline: Deadline) -> Fetched:
    content_type = _header(response, b"content-type")
    if response.status >= 400 and not _is_text(content_type):
        return Fetched(url, response.status, content_type, "")
    _check_type(url, content_type)
    encoding = _header(response, b"content-encoding")
    body = bytearray()
    try:
        for chunk in decompressed(cast("Iterable[bytes]", response.stream), encoding):
            body += chunk
            deadline.left()
            if len(body) > MOST_BODY_BYTES:
                break
    except CompressionError as error:
        raise ToolError(f"{url} {error}.") from error
    text = _decoded(bytes(body[:MOST_BODY_BYTES]), content_type)
    if not content_type and "\0" in text[:1024]:
        raise ToolError(f"{url} is not text.")
    return Fetched(url, response.status, content_type, text, cut=len(body) > MOST_BODY_BYTES)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or "text/plain"


def _is_text(content_type: str) -> bool:
    kind, _, subtype = _media_type(content_type).partition("/")
    return kind == "text" or subtype.rpartition("+")[2] in ("json", "xml")


def _check_type(url: str, content_type: str) -> None:
    if not _is_text(content_type):
        raise ToolError(f"{url} is {_media_type(content_type)}: only text, HTML, JSON and XML can be read.")


def _decoded(body: bytes, content_type: str) -> str:
    named = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    in_page = re.search(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]+)", body[:2048], re.IGNORECASE)
    charset = named[1] if named else in_page[1].decode("ascii") if in_page else "utf-8-sig"
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    try:
        text = body.decode(charset, "replace")
    except (LookupError, UnicodeError):
        text = body.decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode("utf-8").removeprefix("\ufeff")


def _readable(fetched: Fetched) -> str:
    if _media_type(fetched.content_type) not in ("text/html", "application/xhtml+xml"):
        return fetched.body.strip()
    reader = _PageReader(fetched.url)
    reader.feed(fetched.body)  # and no close(): it searches the rest again for every stray `<`
    return reader.text()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    kept = max(most - _NOTICES, most // 2)
    return f"{text[:kept]}\n[... {len(text) - kept} more characters left out ...]"


class _PageReader(HTMLParser):
    """Collects the text of an HTML page, with headings, list items and links marked."""

    _SKIPPED = frozenset({"script", "style", "template", "svg"})
    _HEADINGS: ClassVar = {f"h{level}": "#" * level for level in range(1, 7)}
    _PARAGRAPHS = frozenset(
        {
            *("title", "p", "ul", "ol", "dl", "table", "pre", "blockquote", "section", "article", "header"),
            *("footer", "main", "nav", "aside", "form", "figure", "details", *_HEADINGS),
        }
    )
    _LINES = frozenset({"div", "li", "tr", "hr", "dt", "dd", "option", "caption", "figcaption", "summary"})
    _CELLS = frozenset({"td", "th"})

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._parts: list[str] = []
        self._skipping = 0
        self._preformatted = 0
        self._link: tuple[str, int] | None = None

    def text(self) -> str:
        """Return the page's text: no trailing blanks, at most one empty line in a row."""
        lines = "\n".join(line.rstrip() for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", lines).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        if tag in self._SKIPPED:
            self._skipping += 1
        if self._skipping:
            return
        self._break(tag)
        if tag == "br":
            self._parts.append("\n")
        elif tag == "pre":
            self._preformatted += 1
        elif tag == "a":
            self._link = (dict(attrs).get("href") or "", len(self._parts))
        elif lead := self._lead(tag):
            self._parts.append(lead)

    def handle_endtag(self, tag: str) -> None:
        """Close a tag."""
        if tag in self._SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        if self._skipping:
            return
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        elif tag == "a" and self._link:
            self._end_link(*self._link)
            self._link = None
        self._break(tag)

    def handle_data(self, data: str) -> None:
        """Take text between tags."""
        if self._skipping:
            return
        if not self._preformatted:
            data = re.sub(r"\s+", " ", data)
            if not self._parts or self._parts[-1].endswith(("\n", " ", "\t")):
                data = data.lstrip()
        if data:
            self._parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip `<![...>` as browsers do; the inherited method ends the program for unknown words."""
        return self.parse_bogus_comment(i, report)

    def _break(self, tag: str) -> None:
        if tag in self._PARAGRAPHS:
            self._parts.append("\n\n")
        elif tag in self._LINES and not self._at_line_start():
            self._parts.append("\n")

    def _lead(self, tag: str) -> str:
        if tag in self._HEADINGS:
            return f"{self._HEADINGS[tag]} "
        if tag in self._CELLS:
            return "" if self._at_line_start() else "\t"
        return "- " if tag == "li" else ""

    def _at_line_start(self) -> bool:
        return not self._parts or self._parts[-1].endswith("\n")

    def _end_link(self, href: str, start: int) -> None:
        if not "".join(self._parts[start:]).strip():
            return
        try:
            target = urllib.parse.urljoin(self._url, href)
        except ValueError:
            return
        if href and not href.startswith("#") and target.startswith(("http://", "https://")):
            self._parts.append(f" ({target})")


TOOL = Tool(
    name="web_fetch",
    description=(
        "Fetch a web page and return its text. HTML becomes plain text with its links in parentheses; JSON, XML "
        "and plain text come as they are. Only http and https URLs of public hosts."
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The whole URL, e.g. `https://example.com/page`."},
            "max_chars": {
                "type": "integer",
                "minimum": 1,
                "description": "Most characters to return, from the start of the page.",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    category="web",
    run=_run,
    needs_directory=False,
)
