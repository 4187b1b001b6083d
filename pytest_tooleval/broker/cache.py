"""A broker that remembers answers, and counts what that saves."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

from pytest_tooleval.broker.broker import DEFAULT_LIMIT
from pytest_tooleval.broker.envelope import canonical_json, json_text
from pytest_tooleval.cases.catalog import Catalog

Operation = Literal["find", "describe", "call"]

DEFAULT_TTL_SECONDS = 300.0
DEFAULT_MOST_ENTRIES = 1024


class CacheableBroker(Protocol):
    """The broker behind a cache."""

    @property
    def catalog(self) -> Catalog:
        """The tools; its generation and the tools' schemas go into the keys."""
        ...

    def find_tool(self, query: str, limit: int = ...) -> dict[str, Any]:
        """Find a tool."""
        ...

    def describe_tool(self, ref: str, part: str | None = ...) -> dict[str, Any]:
        """Describe a tool."""
        ...

    def call_tool(self, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Call a tool."""
        ...


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """One operation that went through the cache.

    Attributes:
        operation: which one.
        cacheable: whether its answer may be served again: no error, and no call of a tool that may change things.
        served: whether it came from the cache.
        text: the answer's JSON text.

    """

    operation: Operation
    cacheable: bool
    served: bool
    text: str


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What went through the cache so far.

    Attributes:
        operations: all of them.
        cacheable: those whose answer may be served again.
        served: those answered from the cache.
        delegated: those that the broker behind it answered.
        response_bytes: JSON text in UTF-8 of all answers.
        delegated_bytes: of those that the broker behind it gave.

    """

    operations: int = 0
    cacheable: int = 0
    served: int = 0
    delegated: int = 0
    response_bytes: int = 0
    delegated_bytes: int = 0

    def after(self, event: CacheEvent) -> CacheCounts:
        """Return the counts with one more operation."""
        size = len(event.text.encode())
        return CacheCounts(
            self.operations + 1,
            self.cacheable + event.cacheable,
            self.served + event.served,
            self.delegated + (not event.served),
            self.response_bytes + size,
            self.delegated_bytes + (0 if event.served else size),
        )


class CachedBroker:
    """Answers from memory what it may, and asks the broker behind it for the rest.

    Finds and describes are remembered by request and catalog generation, calls of read-only tools by schema and
    arguments. Errors are never remembered, and one about a tool makes what is remembered of that tool forgotten.
    Safe to share among threads.
    """

    def __init__(
        self,
        broker: CacheableBroker,
        *,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        most_entries: int = DEFAULT_MOST_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
        on_event: Callable[[CacheEvent], None] | None = None,
    ) -> None:
        """Put a cache before a broker.

        Args:
            broker: the one that is asked.
            ttl_seconds: how long an answer may be served.
            most_entries: answers that are kept; the least recently used go first.
            clock: seconds that never go back.
            on_event: told of every operation, in the thread that made it.

        """
        self._broker = broker
        self._entries = _Entries(ttl_seconds, most_entries, clock)
        self._on_event = on_event
        self._counts = CacheCounts()
        self._lock = threading.Lock()

    @property
    def catalog(self) -> Catalog:
        """The tools of the broker behind."""
        return self._broker.catalog

    @property
    def counts(self) -> CacheCounts:
        """What went through so far."""
        return self._counts

    def find_tool(self, query: str, limit: int = DEFAULT_LIMIT) -> dict[str, Any]:
        """Find a tool, as the broker behind does."""
        key = canonical_json(["find", self.catalog.generation, query, limit])
        return self._answer("find", "", key, lambda: self._broker.find_tool(query, limit))

    def describe_tool(self, ref: str, part: str | None = None) -> dict[str, Any]:
        """Describe a tool, as the broker behind does."""
        key = canonical_json(["describe", self.catalog.generation, ref, part])
        return self._answer("describe", ref, key, lambda: self._broker.describe_tool(ref, part))

    def call_tool(self, ref: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Call a tool, as the broker behind does."""
        return self._answer(
            "call", ref, self._call_key(ref, arguments), lambda: self._broker.call_tool(ref, arguments)
        )

    def clear(self) -> None:
        """Forget every answer; the counts stay."""
        self._entries.clear()

    def _call_key(self, ref: str, arguments: Mapping[str, Any] | None) -> str | None:
        tool = self.catalog.by_ref.get(ref)
        if tool is None or not tool.read_only:
            return None
        try:
            schema = sha256(canonical_json(tool.input_schema).encode()).hexdigest()
            return canonical_json(["call", ref, schema, arguments or {}])
        except (TypeError, ValueError, RecursionError):
            return None

    def _answer(
        self, operation: Operation, ref: str, key: str | None, ask: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        known = None if key is None else self._entries.get(key)
        if known is not None:
            self._note(CacheEvent(operation, cacheable=True, served=True, text=known))
            return dict(json.loads(known))
        answer = ask()
        text, is_ok = json_text(answer), bool(answer.get("ok"))
        if not is_ok:
            self._entries.forget(ref)
        elif key is not None:
            self._entries.put(key, ref, text)
        self._note(CacheEvent(operation, cacheable=is_ok and key is not None, served=False, text=text))
        return answer

    def _note(self, event: CacheEvent) -> None:
        with self._lock:
            self._counts = self._counts.after(event)
        if self._on_event is not None:
            self._on_event(event)


@dataclass(frozen=True, slots=True)
class _Entry:
    ref: str
    text: str
    until: float


class _Entries:
    """Texts by key: each for a while, the least recently used dropped first."""

    def __init__(self, ttl_seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._ttl_seconds = ttl_seconds
        self._most = most
        self._clock = clock
        self._by_key: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> str | None:
        with self._lock:
            entry = self._by_key.get(key)
            if entry is None:
                return None
            if self._clock() >= entry.until:
                del self._by_key[key]
                return None
            self._by_key.move_to_end(key)
            return entry.text

    def put(self, key: str, ref: str, text: str) -> None:
        with self._lock:
            self._by_key[key] = _Entry(ref, text, self._clock() + self._ttl_seconds)
            self._by_key.move_to_end(key)
            while len(self._by_key) > max(self._most, 0):
                self._by_key.popitem(last=False)

    def forget(self, ref: str) -> None:
        """Drop what is known of a tool."""
        with self._lock:
            for key in [key for key, entry in self._by_key.items() if ref and entry.ref == ref]:
                del self._by_key[key]

    def clear(self) -> None:
        with self._lock:
            self._by_key.clear()
