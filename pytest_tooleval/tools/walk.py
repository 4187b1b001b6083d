"""Which entries of a worktree the listing and searching tools see, in which order, and how glob patterns match.

One policy for `glob`, `grep` and `list_dir`: `.git` is never seen. Other names that begin with a dot are shown
by `list_dir`; `glob` and `grep` skip them unless the pattern has a segment that begins with a dot at that level, or
the given path leads there. Ignore files such as `.gitignore` are not read. Symbolic links are shown, not entered.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools.containment import Entry, Place, entries, kind_of, resolve

MAX_ALTERNATIVES = 100
_MAX_PATTERN_CHARS = 4096
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY_DEPTH = "**"
_Position: TypeAlias = tuple[int, int]


class Route(Protocol):
    """What a walk wants at one level."""

    @property
    def wanted(self) -> bool:
        """Whether the entry reached is yielded."""

    @property
    def leads_on(self) -> bool:
        """Whether something below the entry may be wanted."""

    def step(self, name: str, /) -> Route:
        """Return the route as it is after going on to the entry `name`."""


def visible(worktree: Path, given: str) -> Place:
    """Resolve a path that is listed or searched; raise ToolError when it is outside or in `.git`."""
    place = resolve(worktree, given)
    if any(_is_git(name) for name in place.parts):
        raise ToolError(f"{given!r} is in .git, which is not listed or searched")
    return place


def visible_folder(worktree: Path, given: str) -> Place:
    """Resolve a directory that is listed or searched; raise ToolError when it is not one."""
    place = visible(worktree, given)
    if kind_of(place) != "directory":
        raise ToolError(f"{given!r} is not a directory; give a directory, or use file_read for a file")
    return place


def walk(start: Place, route: Route, seconds: float) -> Iterator[Entry]:
    """Yield the wanted entries below a directory in the order of their paths.

    Raises ToolError when the start cannot be listed, or the end is not reached in so many seconds; directories
    below that cannot be listed are passed over.
    """
    until = time.monotonic() + seconds
    pending = _below(start, route)
    while pending:
        if time.monotonic() > until:
            raise ToolError(f"the search took longer than {seconds:g} s; narrow it with path or a longer pattern")
        entry, reached = pending.pop()
        if reached.wanted:
            yield entry
        if entry.kind == "directory" and reached.leads_on:
            pending.extend(_below_if_listable(entry.place, reached))


@dataclass(frozen=True, slots=True)
class Levels:
    """Every entry down to a number of levels."""

    left: int

    @property
    def wanted(self) -> bool:
        """Whether the entry reached is within the levels."""
        return self.left >= 0

    @property
    def leads_on(self) -> bool:
        """Whether the next level is within the levels."""
        return self.left > 0

    def step(self, _name: str, /) -> Levels:
        """Go one level down."""
        return Levels(self.left - 1)


@dataclass(frozen=True, slots=True)
class _Segment:
    """One level of a pattern; a name equal to the text matches too, so that `[id].ts` finds itself."""

    text: str
    matcher: re.Pattern[str]

    @property
    def any_depth(self) -> bool:
        return self.text == _ANY_DEPTH

    def matches(self, name: str) -> bool:
        if name.startswith(".") and not self.text.startswith("."):
            return False
        return self.any_depth or name == self.text or self.matcher.match(name) is not None


@dataclass(frozen=True, slots=True)
class GlobRoute:
    """A glob pattern, and how far each of its alternatives has matched.

    Attributes:
        alternatives: the pattern's segments, once for each choice of its braces.
        positions: (alternative, segment) pairs that the next name has to match.

    """

    alternatives: tuple[tuple[_Segment, ...], ...]
    positions: frozenset[_Position]

    @property
    def wanted(self) -> bool:
        """Whether an alternative has matched to its end."""
        return any(segment == len(self.alternatives[which]) for which, segment in self.positions)

    @property
    def leads_on(self) -> bool:
        """Whether an alternative can match further names."""
        return any(segment < len(self.alternatives[which]) for which, segment in self.positions)

    def step(self, name: str, /) -> GlobRoute:
        """Match the next name."""
        reached = {after for position in self.positions for after in self._after(position, name)}
        return GlobRoute(self.alternatives, _skipping_any_depth(self.alternatives, reached))

    def _after(self, position: _Position, name: str) -> Iterator[_Position]:
        which, number = position
        segments = self.alternatives[which]
        if number < len(segments) and segments[number].matches(name):
            yield (which, number) if segments[number].any_depth else (which, number + 1)


def compile_glob(pattern: str) -> GlobRoute:
    """Return the route of a pattern: `*`, `?`, `[…]` within a name, `**` for any number of folders, `{a,b}`.

    A `**` at the end stands for everything below. Raises ToolError when the pattern is empty, leads out, or has too
    many alternatives.
    """
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ToolError(f"the glob pattern is longer than {_MAX_PATTERN_CHARS} characters; choose a shorter one")
    alternatives = tuple(_segments(choice, pattern) for choice in _choices(pattern))
    starts = {(which, 0) for which in range(len(alternatives))}
    return GlobRoute(alternatives, _skipping_any_depth(alternatives, starts))


def _choices(pattern: str) -> list[str]:
    pending, done = [pattern], list[str]()
    while pending:
        choice = pending.pop()
        if braces := _BRACES.search(choice):
            before, after = choice[: braces.start()], choice[braces.end() :]
            pending.extend(f"{before}{option}{after}" for option in braces[1].split(","))
        else:
            done.append(choice)
        if len(pending) + len(done) > MAX_ALTERNATIVES:
            raise ToolError(
                f"the braces of {pattern[:200]!r} make more than {MAX_ALTERNATIVES} patterns; use fewer"
            )
    return done


def _segments(choice: str, pattern: str) -> tuple[_Segment, ...]:
    texts = [text for text in choice.split("/") if text not in {"", "."}]
    if not texts:
        raise ToolError(
            f"the glob pattern {pattern!r} names nothing; use '*' for all entries, '**/*.py' for all below"
        )
    if ".." in texts or choice.startswith("/"):
        raise ToolError(f"the glob pattern {pattern!r} leads outside; give one relative to path, without '..'")
    if texts[-1] == _ANY_DEPTH:
        texts.append("*")
    return tuple(_Segment(text, re.compile(fnmatch.translate(text))) for text in texts)


def _skipping_any_depth(
    alternatives: tuple[tuple[_Segment, ...], ...], positions: set[_Position]
) -> frozenset[_Position]:
    reached = set(positions)
    for which, start in positions:
        segments, number = alternatives[which], start
        while number < len(segments) and segments[number].any_depth:
            number += 1
            reached.add((which, number))
    return frozenset(reached)


def _below(folder: Place, route: Route) -> list[tuple[Entry, Route]]:
    """Return the entries that matter, the last first."""
    steps = [(entry, route.step(entry.place.parts[-1])) for entry in entries(folder) if not _hides(entry)]
    steps = [(entry, reached) for entry, reached in steps if reached.wanted or reached.leads_on]
    return sorted(steps, key=lambda step: _order(step[0]), reverse=True)


def _below_if_listable(folder: Place, route: Route) -> list[tuple[Entry, Route]]:
    try:
        return _below(folder, route)
    except ToolError:
        return []


def _order(entry: Entry) -> str:
    """With `/` after a directory's name, names sort as the paths below them do."""
    name = entry.place.parts[-1]
    return f"{name}/" if entry.kind == "directory" else name


def _hides(entry: Entry) -> bool:
    return _is_git(entry.place.parts[-1])


def _is_git(name: str) -> bool:
    return name.casefold() == ".git"
