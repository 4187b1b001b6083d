from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from chat_samples import CASE, chat_answer
from loopback import LoopbackServer, as_json

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.presets import PRESETS, ProviderRegistry, register_builtin_providers
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings
from pytest_tooleval.transcript import UserMessage

Serve = Callable[..., LoopbackServer]


def registry(**environ: str) -> ProviderRegistry:
    known = ProviderRegistry()
    register_builtin_providers(known, environ)
    return known


def test_builtin_names() -> None:
    assert registry().names == ("mock", "openai")


def test_mock_needs_nothing() -> None:
    assert isinstance(registry().open("mock", ProviderSettings()), MockProvider)


def test_a_users_provider_gets_its_settings() -> None:
    known, seen = registry(), []

    def factory(settings: ProviderSettings) -> MockProvider:
        seen.append(settings)
        return MockProvider()

    known.add("mine", factory)
    settings = ProviderSettings(model="m", url="anything")
    assert isinstance(known.open("mine", settings), MockProvider)
    assert seen == [settings]


@pytest.mark.parametrize("name", ["mock", "openai"])
def test_a_name_is_given_once(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is registered already"):
        registry().add(name, lambda _: MockProvider())


@pytest.mark.parametrize("name", ["", "a:b", "a,b", "a b", "a\n"])
def test_a_name_can_stand_in_the_option(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a provider"):
        registry().add(name, lambda _: MockProvider())


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError) as refused:
        registry().open("opnai", ProviderSettings(model="m"))
    assert str(refused.value) == "no provider 'opnai' (did you mean 'openai'?); known: mock, openai"


@pytest.mark.parametrize("key", ["", "  "])
def test_a_missing_key_names_the_variable_and_the_way_without(key: str) -> None:
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*--provider-url a local server needs none"):
        registry(OPENAI_API_KEY=key).open("openai", ProviderSettings(model="m"))


@pytest.mark.parametrize("key", ["sk-\nx", "sk-é", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unshown(key: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds characters") as refused:
        registry(OPENAI_API_KEY=key).open("openai", ProviderSettings(model="m"))
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize("model", ["", " "])
def test_a_missing_model_shows_the_form(model: str) -> None:
    with pytest.raises(ConfigError, match="--provider openai:MODEL"):
        registry(OPENAI_API_KEY="sk-1234").open("openai", ProviderSettings(model=model))


@pytest.mark.parametrize("url", ["localhost:8080", "", "file:///v1"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match=r"no http\(s\) URL"):
        registry().open("openai", ProviderSettings(model="m", url=url))


@pytest.mark.parametrize(
    ("environ", "authorization"),
    [({}, None), ({"OPENAI_API_KEY": " sk-mine-77\n"}, "Bearer sk-mine-77")],
)
def test_with_a_url_the_key_is_optional(serve: Serve, environ: dict[str, str], authorization: str | None) -> None:
    server = serve(as_json(chat_answer({"content": "hi"})))
    provider = registry(**environ).open("openai", ProviderSettings(model="m", url=server.url))
    try:
        assert provider.reply(CASE, ChatRequest("", [UserMessage("t")])).text == "hi"
    finally:
        provider.close()
    assert server.asked[0].headers.get("authorization") == authorization
    assert server.asked[0].path == "/v1/chat/completions"


def test_hosted_openai_opens_without_asking_anything() -> None:
    provider = registry(OPENAI_API_KEY="sk-1234").open("openai", ProviderSettings(model="m"))
    assert isinstance(provider, DialectProvider)
    assert "sk-1234" not in repr(provider)
    provider.close()


def test_preset_names_are_unique() -> None:
    assert len({preset.name for preset in PRESETS}) == len(PRESETS)


def test_the_registry_and_the_mock_load_no_http_library() -> None:
    program = (
        "import sys\n"
        "from pytest_tooleval.providers import mock, presets\n"
        "registry = presets.ProviderRegistry()\n"
        "presets.register_builtin_providers(registry)\n"
        "registry.open('mock', presets.ProviderSettings())\n"
        "print(sorted({'httpx', 'tenacity', 'ssl', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
