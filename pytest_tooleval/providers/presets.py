"""The providers that ship with the plugin, as data, and how a name becomes a provider."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.providers.account import Account, Redactor, checked_base_url
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import Provider, ProviderSettings, ToolChoice

ProviderFactory: TypeAlias = Callable[[ProviderSettings], Provider]
ContentBesideCalls: TypeAlias = Literal["null", "empty", "omit"]
EchoReasoning: TypeAlias = Literal["always", "beside_calls", "never"]

DIALECTS: Mapping[str, str] = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic_messages",
    "ollama": "ollama_chat",
    "gemini": "gemini",
}
"""The module of `pytest_tooleval.providers` that speaks each dialect, by the name that users give it.

Each has an `open_provider(preset, account, settings) -> Provider`, and is imported when a model is opened.
"""

_LINE = re.compile(r"(?P<name>[^=]*)=\s*(?P<dialect>\S+)\s+(?P<url>\S+)(?:\s+(?P<variable>\S+))?\s*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ChatQuirks:
    """In what servers that speak Chat Completions differ.

    Attributes:
        limit_parameter: name of the output limit.
        seed_parameter: name of the seed, empty when the server refuses one.
        tool_choices: how a tool choice is spelled where it is not spelled as here; None for one that is not sent
            because it is the default anyway.
        content_beside_calls: content of an assistant message with tool calls and no text.
        echo_reasoning: with which assistant messages their reasoning is sent back.
        call_ids: pattern of the call ids that are taken back, empty when any are; others are replaced.
        key_header: header that carries the key as it is, empty for `Authorization: Bearer`.

    """

    limit_parameter: str = "max_tokens"
    seed_parameter: str = "seed"
    tool_choices: Mapping[ToolChoice, str | None] = field(default_factory=dict)
    content_beside_calls: ContentBesideCalls = "null"
    echo_reasoning: EchoReasoning = "always"
    call_ids: str = ""
    key_header: str = ""

    def spelled(self, choice: ToolChoice) -> str | None:
        """Return how a tool choice is sent, or None when it is not."""
        return self.tool_choices.get(choice, choice)


@dataclass(frozen=True, slots=True)
class Preset:
    """A model API: its address, its key and its dialect.

    Attributes:
        name: what stands before the colon in `--provider NAME:MODEL`.
        dialect: one of `DIALECTS`.
        url: base URL, replaced by `--provider-url`; empty when each account has its own.
        key_variable: environment variable that holds the key, or empty when there is none.
        key_required: whether `url` refuses requests without a key.
        other_key_variables: where the key is looked for when `key_variable` is not set.
        url_example: what a user's own base URL looks like; only where `url` is empty.
        quirks: what is special about a server that speaks `openai-chat`.

    """

    name: str
    dialect: str
    url: str
    key_variable: str = ""
    key_required: bool = True
    other_key_variables: tuple[str, ...] = ()
    url_example: str = ""
    quirks: ChatQuirks = field(default_factory=ChatQuirks)


PRESETS = (
    Preset("openai", "openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Preset("openai-responses", "openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Preset("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    Preset(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        other_key_variables=("GOOGLE_API_KEY",),
    ),
    Preset(
        "azure",
        "openai-chat",
        "",
        "AZURE_OPENAI_API_KEY",
        url_example="https://RESOURCE.openai.azure.com/openai/v1",
        quirks=ChatQuirks(limit_parameter="max_completion_tokens", key_header="api-key"),
    ),
    Preset("openrouter", "openai-chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Preset(
        "mistral",
        "openai-chat",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        quirks=ChatQuirks(
            seed_parameter="random_seed", tool_choices={"required": "any"}, call_ids="[a-zA-Z0-9]{9}"
        ),
    ),
    Preset(
        "deepseek",
        "openai-chat",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        quirks=ChatQuirks(tool_choices={"auto": None}, echo_reasoning="beside_calls"),
    ),
    Preset("groq", "openai-chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Preset("together", "openai-chat", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    Preset("xai", "openai-chat", "https://api.x.ai/v1", "XAI_API_KEY"),
    Preset("ollama", "ollama", "http://localhost:11434", "OLLAMA_API_KEY", key_required=False),
    Preset("llamacpp", "openai-chat", "http://localhost:8080/v1", "LLAMA_API_KEY", key_required=False),
    Preset("vllm", "openai-chat", "http://localhost:8000/v1", "VLLM_API_KEY", key_required=False),
    Preset(
        "lmstudio",
        "openai-chat",
        "http://localhost:1234/v1",
        "LM_API_TOKEN",
        key_required=False,
        quirks=ChatQuirks(content_beside_calls="empty"),
    ),
)


class ProviderRegistry:
    """Providers by name.

    A `conftest.py` adds its own:

        def pytest_tooleval_register_providers(providers):
            providers.add("mine", lambda settings: MyProvider(settings.model))
            providers.add_preset(Preset("lab", "openai-chat", "https://lab.example/v1", "LAB_API_KEY"))
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
            ConfigError: the name is taken, empty, or holds a colon, a comma, an equals sign or a blank.

        """
        _check_name(name)
        if name in self._factories:
            raise ConfigError(f"the provider {name!r} is registered already; choose another name")
        self._factories[name] = factory

    def add_preset(self, preset: Preset, environ: Mapping[str, str] | None = None) -> None:
        """Make `--provider NAME:MODEL` open a model behind an API of a known dialect.

        Args:
            preset: the API.
            environ: where keys are looked up when a model is opened; the process's environment by default.

        Raises:
            ConfigError: the preset's name, dialect, URL or key variable cannot be used.

        """
        checked_preset(preset)
        self.add(preset.name, preset_factory(preset, os.environ if environ is None else environ))

    def open(self, name: str, settings: ProviderSettings) -> Provider:
        """Open the provider called `name`.

        Raises:
            ConfigError: no provider has this name, or its key, model or URL is missing or wrong.

        """
        if name not in self._factories:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no provider {name!r}{nearest(name, self.names)}; known: {known}")
        return self._factories[name](settings)


def _check_name(name: str) -> None:
    if not name or any(character in ":,=" or character.isspace() for character in name):
        raise ConfigError(f"{name!r} cannot name a provider: no colons, commas, equals signs or blanks, not empty")


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
        registry.add_preset(preset, environ)


def parse_provider_line(text: str) -> Preset:
    """Return the preset that a line of the option `--tooleval-add-provider` describes.

    Args:
        text: `NAME = DIALECT URL [KEY_VARIABLE]`, such as
            `lab = openai-chat https://lab.example/v1 LAB_API_KEY`; without a variable no key is sent.

    Raises:
        ConfigError: the line has another form, or its name, dialect, URL or variable cannot be used.

    """
    found = _LINE.fullmatch(text)
    if not found:
        raise ConfigError(
            f"{Redactor()(text.strip())!r} describes no provider; expected NAME = DIALECT URL [KEY_VARIABLE], "
            "such as: lab = openai-chat https://lab.example/v1 LAB_API_KEY"
        )
    variable = found["variable"] or ""
    return checked_preset(Preset(found["name"].strip(), found["dialect"], found["url"], variable, bool(variable)))


def checked_preset(preset: Preset) -> Preset:
    """Return a preset that can be opened.

    Raises:
        ConfigError: its name, dialect, URL or key variable cannot be used.

    """
    _check_name(preset.name)
    if preset.dialect not in DIALECTS:
        hint = f"{nearest(preset.dialect, DIALECTS)}; known: {', '.join(DIALECTS)}"
        raise ConfigError(f"provider {preset.name!r}: no dialect {preset.dialect!r}{hint}")
    for variable in _key_variables(preset):
        if not _VARIABLE.fullmatch(variable):
            raise ConfigError(
                f"provider {preset.name!r}: what names the key is no environment variable; "
                "name the variable that holds the key, such as LAB_API_KEY, and not the key itself"
            )
    if preset.url:
        checked_base_url(preset.url)
    return preset


def preset_factory(preset: Preset, environ: Mapping[str, str]) -> ProviderFactory:
    """Return what opens `preset` with its key from `environ`.

    The factory raises ConfigError when the model, a required key or the URL is missing or wrong.
    """

    def open_preset(settings: ProviderSettings) -> Provider:
        if not settings.model.strip():
            raise ConfigError(f"{preset.name} needs a model: --provider {preset.name}:MODEL")
        account = _account(preset, settings, environ)
        dialect = importlib.import_module(f"pytest_tooleval.providers.{DIALECTS[preset.dialect]}")
        provider: Provider = dialect.open_provider(preset, account, settings)
        return provider

    return open_preset


def _account(preset: Preset, settings: ProviderSettings, environ: Mapping[str, str]) -> Account:
    url = _base_url(preset, settings)
    variable, key = _found_key(preset, environ)
    own_url = settings.url is None or not preset.url
    if not key and preset.key_required and own_url:
        local = " (with --provider-url a local server needs none)" if preset.url else ""
        variables = " or ".join(_key_variables(preset))
        raise ConfigError(f"{preset.name} needs a key: set {variables}{local}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{variable} holds characters that no HTTP header can carry")
    return Account(provider=preset.name, base_url=url, key_variable=variable, key=key or None)


def _base_url(preset: Preset, settings: ProviderSettings) -> str:
    if settings.url is not None:
        return checked_base_url(settings.url)
    if not preset.url:
        example = preset.url_example or "https://HOST/v1"
        raise ConfigError(f"{preset.name} needs your own base URL: --provider-url {preset.name}={example}")
    return checked_base_url(preset.url)


def _key_variables(preset: Preset) -> tuple[str, ...]:
    return tuple(filter(None, (preset.key_variable, *preset.other_key_variables)))


def _found_key(preset: Preset, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that holds the key, and the key, which is empty when no variable holds one."""
    for variable in _key_variables(preset):
        key = environ.get(variable, "").strip()
        if key:
            return variable, key
    return preset.key_variable, ""
