"""The fingerprints of tool-use cases on one target: what is sent to the model, and what its run is scored with."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from functools import lru_cache
from importlib import metadata
from typing import Any

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.families.tool_use import ToolUseRunner
from pytest_tooleval.measures.fingerprint import TOOL, TOOL_ORDER, Fingerprint, SharedHashes, content_hash
from pytest_tooleval.providers.presets import PRESETS
from pytest_tooleval.providers.provider import Sampling
from pytest_tooleval.providers.target import Target
from pytest_tooleval.tools.registry import Offer

# What is named here is neither sent nor scored, or stands in the parts by what comes of it. Whatever else a record
# holds counts, so that a new field is never forgotten.
_CASE = frozenset(
    {
        "family",
        "id",
        "source",
        "description",
        "tags",
        "tool_permission",
        "tools_deny",
        "max_turns",
        "timeout",
        "mock",
    }
)
_AGENT = frozenset({"max_turns"})
_PROVIDER = frozenset({"timeout", "retries"})
_WORDS = {"url": "provider url", "tool_choice": "tool-choice"}
_UNSET: tuple[Any, ...] = ("", (), {})
_HTTP_PROVIDERS = frozenset(preset.name for preset in PRESETS)


class ToolUseFingerprints:
    """Makes the fingerprints of the cases of one target.

    Args:
        target: the provider and what it is told. The script of a case counts where the provider may read it.
        runner: what cases are run with; of tools that users register the description and the schema count.
        tier: which part of a run is measured, empty for the whole.

    """

    def __init__(self, target: Target, runner: ToolUseRunner, tier: str = "") -> None:
        suffix = runner.tool_set.variant.suffix
        self._reads_script = target.provider not in _HTTP_PROVIDERS
        self._runner = runner
        self._always = {
            "provider": target.provider,
            **dict(_parts(target.settings, _PROVIDER)),
            **dict(_parts(runner.settings, _AGENT)),
            **dict(_parts(runner.limits)),
            **({"tier": tier} if tier else {}),
            **({"set of tools": suffix} if suffix else {}),
            "plugin version": _plugin_version(),
        }
        self._shared: dict[object, SharedHashes] = {}
        self._lock = threading.Lock()

    def of(self, case: ToolUseCase) -> Fingerprint:
        """Return the fingerprint of a case; its id, description and tags do not count.

        The servers that a case names are asked for their tools, once for all cases that name the same.

        Raises:
            InfrastructureError: a server cannot be asked.

        """
        own = dict(_parts(case, _CASE))
        own["max turns"] = str(case.max_turns or self._runner.settings.max_turns)
        own["time limit"] = str(self._runner.time_limit(case))
        if self._reads_script and case.mock is not None:
            own["script"] = content_hash(case.mock)
        return Fingerprint(own, self._shared_hashes(case))

    def _shared_hashes(self, case: ToolUseCase) -> SharedHashes:
        """Return the parts that all cases with the same permissions and servers have in common."""
        key = (frozenset(case.tool_permission.items()), case.tools_deny, case.mcp)
        found = self._shared.get(key)
        if found is None:
            with self._lock:
                found = self._shared.get(key)
                if found is None:
                    with self._runner.offer(case) as offer:
                        found = self._hashes_of(offer)
                self._shared[key] = found
        return found

    def _hashes_of(self, offer: Offer) -> SharedHashes:
        return SharedHashes.of(
            {
                **{
                    f"{TOOL}{name}": content_hash([tool.description, tool.parameters])
                    for name, tool in offer.offered.items()
                },
                TOOL_ORDER: content_hash(list(offer.offered)),
                "denied tools": content_hash(offer.denied),
                **self._always,
            }
        )


@lru_cache(maxsize=1)
def _plugin_version() -> str:
    return metadata.version("pytest-tooleval")


def _parts(record: Any, left_out: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield a part for each field that is set, those of sampling within the settings too."""
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if name in left_out or value is None or value is False or value in _UNSET:
            continue
        if isinstance(value, Sampling):
            yield from _parts(value)
        else:
            yield _WORDS.get(name) or name.replace("_", " "), _value(value)


def _value(value: Any) -> str:
    """Return a number as it is, and of everything else a hash: texts may be long and hold secrets."""
    return repr(value) if isinstance(value, int | float) else content_hash(value)
