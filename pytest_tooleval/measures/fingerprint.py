"""What a measurement depends on, as short hashes: where they are equal, measuring again would measure the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import Source

TOOL = "tool "
TOOL_ORDER = "order of tools"
_HASH_BYTES = 8


def short_hash(text: str) -> str:
    """Return 16 hexadecimal digits of a text's BLAKE2b hash; any text can be hashed, half a surrogate pair too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).hexdigest()


def content_hash(value: Any) -> str:
    """Return the hash of a text, a JSON value or a record of such; where a record stands does not count."""
    if isinstance(value, str):
        return short_hash(value)
    try:
        return short_hash(_json(value))
    except (TypeError, ValueError, RecursionError):  # keys that do not sort, a cycle: the schema of a user's tool
        return short_hash(repr(value))


def _plain(value: Any) -> Any:
    """Return what stands in the JSON of a value for what JSON does not know."""
    if isinstance(value, Source):
        return value.index
    if is_dataclass(value):
        return [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, Path):
        return value.name
    return dict(value) if isinstance(value, Mapping) else repr(value)


_json = json.JSONEncoder(sort_keys=True, default=_plain).encode


@dataclass(frozen=True, slots=True)
class SharedHashes:
    """The part of a fingerprint that many cases have in common.

    Attributes:
        id: a hash over the parts, equal where they are.
        parts: a hash or a short value by what it is of, in words.

    """

    id: str
    parts: Mapping[str, str]

    @classmethod
    def of(cls, parts: Mapping[str, str]) -> SharedHashes:
        """Return the parts under their hash."""
        return cls(short_hash(repr(sorted(parts.items()))), parts)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that is sent or scored in one case on one target.

    Attributes:
        own: a hash or a short value by what of the case it is of, in words.
        shared: what the case has in common with others.

    """

    own: Mapping[str, str]
    shared: SharedHashes

    @property
    def parts(self) -> dict[str, str]:
        """The parts of both."""
        return {**self.own, **self.shared.parts}


def what_changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what differs between the parts of two fingerprints, in words such as `task changed`.

    A tool that only one of them has is new or gone, which says enough of the order of tools.
    """
    changes = dict(_changes(before, now))
    if any(name.startswith(TOOL) for name in before.keys() ^ now.keys()):
        changes.pop(TOOL_ORDER, None)
    return list(changes.values())


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in {**now, **before}:
        if before.get(name) == now.get(name):
            continue
        is_tool = name.startswith(TOOL)
        if is_tool and name not in before:
            yield name, f"{name} is new"
        elif is_tool and name not in now:
            yield name, f"{name} is gone"
        else:
            yield name, f"{name} changed"
