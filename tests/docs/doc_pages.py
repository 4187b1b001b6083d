"""Pages of the documentation as data: their steps, tables, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

_FENCE = re.compile(r"^```(\w*)\s*$")
_MARK = re.compile(r"^<!-- (?P<key>[a-z ]+?)(?:: (?P<value>.*))? -->$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CELL_BREAK = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Block:
    """A fenced block and the comments right above it."""

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Mark:
    """A comment that belongs to no block."""

    key: str
    value: str


def steps(page: Path) -> Iterator[Block | Mark]:
    """Yield blocks and free-standing marks in the page's order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marks: dict[str, str] = {}
    start: int | None = None
    language = ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if start is not None:
            if line == "```":
                text = "".join(f"{inner}\n" for inner in lines[start : number - 1])
                yield Block(page, start, language, text, marks)
                marks, start = {}, None
        elif fence:
            language, start = fence[1], number
        elif mark := _MARK.match(line):
            marks[mark["key"]] = mark["value"] or ""
        else:
            yield from (Mark(*pair) for pair in marks.items())
            marks = {}
    assert start is None, f"{page.name}: a block is not closed"


def blocks(page: Path) -> list[Block]:
    return [step for step in steps(page) if isinstance(step, Block)]


def prose(page: Path) -> str:
    """Return the page's text without its fenced blocks."""
    kept, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def table(page: Path, first_header: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this header, without the backticks around cells."""
    rows: list[list[str]] = []
    inside = False
    for line in prose(page).splitlines():
        cells = [_bare(cell) for cell in _CELL_BREAK.split(line)[1:-1]]
        if not cells:
            inside = False
        elif cells[0] == first_header:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            rows.append(cells)
    return rows


def _bare(cell: str) -> str:
    text = cell.strip().replace("\\|", "|")
    return text[1:-1] if re.fullmatch(r"`[^`]+`", text) else text


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the page's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def relative_links(page: Path) -> list[str]:
    return [link for link in _LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]
