"""The providers that ship with the plugin, as data, and how a name becomes a provider."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.providers.account import Account, checked_base_url
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import Provider, ProviderSettings

ProviderFactory: TypeAlias = Callable[[ProviderSettings], Provider]
ContentBesideCalls: TypeAlias = Literal["null", "empty", "omit"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A hosted model API.

    Attributes:
        name: what stands before the colon in `--provider NAME:MODEL`.
        dialect: module of `pytest_tooleval.providers` with an
            `open_provider(preset, account, settings) -> Provider`; imported when a model is opened.
        url: base URL, replaced by `--provider-url`.
        key_variable: environment variable that holds the key.
        key_required: whether `url` refuses requests without a key.
        content_beside_calls: how an assistant message with tool calls and no text spells its content.
        echo_reasoning: whether reasoning is sent back with the message it came in.

    """

    name: str
    dialect: str
    url: str
    key_variable: str
    key_required: bool = True
    content_beside_calls: ContentBesideCalls = "null"
    echo_reasoning: bool = True


PRESETS = (
    Preset(name="openai", dialect="openai_chat", url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY"),
)


class ProviderRegistry:
    """Providers by name.

    A `conftest.py` adds its own:

        def pytest_tooleval_register_providers(providers):
            providers.add("mine", lambda settings: MyProvider(settings.model))
    """

    def __init__(self) -> None:
        self._factories: dict[str, ProviderFactory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The known names in alphabetical order."""
        return tuple(sorted(self._factories))

    def add(self, name: str, factory: ProviderFactory) -> None:
        """Make `--provider NAME:MODEL` open what `factory` returns for the target's settings.

        Raises:
            ConfigError: the name is taken, empty, or holds a colon, a comma or a blank.

        """
        if not name or any(character in ":," or character.isspace() for character in name):
            raise ConfigError(f"{name!r} cannot name a provider: no colons, commas or blanks, not empty")
        if name in self._factories:
            raise ConfigError(f"the provider {name!r} is registered already; choose another name")
        self._factories[name] = factory

    def open(self, name: str, settings: ProviderSettings) -> Provider:
        """Open the provider called `name`.

        Raises:
            ConfigError: no provider has this name, or its key, model or URL is missing or wrong.

        """
        if name not in self._factories:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no provider {name!r}{nearest(name, self.names)}; known: {known}")
        return self._factories[name](settings)


def register_builtin_providers(registry: ProviderRegistry, environ: Mapping[str, str] | None = None) -> None:
    """Add `mock` and every preset.

    Args:
        registry: where to.
        environ: where keys are looked up when a provider is opened; the process's environment by default.

    Raises:
        ConfigError: a name is taken.

    """
    registry.add("mock", lambda _: MockProvider())
    for preset in PRESETS:
        registry.add(preset.name, preset_factory(preset, os.environ if environ is None else environ))


def preset_factory(preset: Preset, environ: Mapping[str, str]) -> ProviderFactory:
    """Return what opens `preset` with its key from `environ`.

    The factory raises ConfigError when the model or a required key is missing or the URL is wrong.
    """

    def open_preset(settings: ProviderSettings) -> Provider:
        if not settings.model.strip():
            raise ConfigError(f"{preset.name} needs a model: --provider {preset.name}:MODEL")
        account = _account(preset, settings, environ)
        dialect = importlib.import_module(f"pytest_tooleval.providers.{preset.dialect}")
        provider: Provider = dialect.open_provider(preset, account, settings)
        return provider

    return open_preset


def _account(preset: Preset, settings: ProviderSettings, environ: Mapping[str, str]) -> Account:
    return Account(
        provider=preset.name,
        base_url=checked_base_url(preset.url if settings.url is None else settings.url),
        key_variable=preset.key_variable,
        key=_key(preset, settings, environ),
    )


def _key(preset: Preset, settings: ProviderSettings, environ: Mapping[str, str]) -> str | None:
    key = environ.get(preset.key_variable, "").strip()
    if not key and preset.key_required and settings.url is None:
        raise ConfigError(
            f"{preset.name} needs a key: set {preset.key_variable} (with --provider-url a local server needs none)"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{preset.key_variable} holds characters that no HTTP header can carry")
    return key or None
