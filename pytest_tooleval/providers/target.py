"""A target of tool-use cases: which provider, which model, how it is reached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.providers.provider import ProviderSettings

_NAMED_URL = re.compile(r"(?P<name>[\w.-]+)=(?P<url>https?://.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """One provider and model to measure.

    Attributes:
        provider: the provider's registered name.
        settings: what the provider is told.

    """

    provider: str
    settings: ProviderSettings

    @property
    def name(self) -> str:
        """`provider:model`, or the provider alone when it has no model."""
        return f"{self.provider}:{self.settings.model}" if self.settings.model else self.provider


def parse_targets(
    names: Sequence[str], model: str | None, urls: Sequence[str], common: ProviderSettings
) -> tuple[Target, ...]:
    """Make targets of what the options say.

    Args:
        names: `NAME` or `NAME:MODEL` each, split at the first colon.
        model: the model of each name that has none of its own, `mock` excepted.
        urls: a base URL for every provider, or `NAME=URL` for one.
        common: what holds for every target, model and URL aside.

    Raises:
        ConfigError: a name is empty or given twice, `mock` is given a model, or there are two URLs for all.

    """
    by_name, for_all = _urls(urls)
    targets = []
    for text in names:
        provider, _, own_model = text.partition(":")
        if not provider:
            raise ConfigError(f"--provider {text!r} names no provider; expected NAME or NAME:MODEL")
        if provider == "mock" and own_model:
            raise ConfigError(f"--provider {text!r}: 'mock' plays the fixtures' scripts and has no models")
        chosen = own_model or ("" if provider == "mock" else model or "")
        settings = replace(common, model=chosen, url=by_name.get(provider, for_all))
        targets.append(Target(provider, settings))
    twice = {target.name for target in targets if sum(other.name == target.name for other in targets) > 1}
    if twice:
        raise ConfigError(
            f"the target {min(twice)!r} is named twice; name each once, --tooleval-trials repeats cases"
        )
    return tuple(targets)


def _urls(urls: Sequence[str]) -> tuple[dict[str, str], str | None]:
    by_name: dict[str, str] = {}
    for_all: str | None = None
    for text in urls:
        named = _NAMED_URL.fullmatch(text)
        if named:
            by_name[named["name"]] = named["url"]
        elif for_all is None:
            for_all = text
        else:
            raise ConfigError(f"two --provider-url for every provider: {for_all} and {text}; use NAME=URL")
    return by_name, for_all
