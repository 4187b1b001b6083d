from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_samples import CASE, chat_answer
from loopback import LoopbackServer, as_json

from pytest_tooleval.errors import ConfigError
from pytest_tooleval.providers.dialect import DialectProvider
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.presets import (
    DIALECTS,
    PRESETS,
    Preset,
    ProviderRegistry,
    parse_provider_line,
    register_builtin_providers,
)
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, Sampling, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, ToolCall, ToolMessage, UserMessage

Serve = Callable[..., LoopbackServer]

GREP = ToolSpec("grep", "Search.", {"type": "object", "properties": {}})
BY_NAME = {preset.name: preset for preset in PRESETS}
MESSAGES_ANSWER = {"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
GEMINI_ANSWER = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
RESPONSES_ANSWER = {
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
}
OLLAMA_ANSWER = {"message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"}


def registry(**environ: str) -> ProviderRegistry:
    known = ProviderRegistry()
    register_builtin_providers(known, environ)
    return known


def test_builtin_names() -> None:
    assert registry().names == (
        *("anthropic", "azure", "deepseek", "gemini", "groq", "llamacpp", "lmstudio", "mistral", "mock", "ollama"),
        *("openai", "openai-responses", "openrouter", "together", "vllm", "xai"),
    )


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


@pytest.mark.parametrize("name", ["", "a:b", "a,b", "a b", "a\n", "a=b"])
def test_a_name_can_stand_in_the_option(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a provider"):
        registry().add(name, lambda _: MockProvider())


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError) as refused:
        registry().open("opnai", ProviderSettings(model="m"))
    assert str(refused.value).startswith("no provider 'opnai' (did you mean 'openai'?); known: anthropic, azure, ")


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


# --- the presets that ship


def test_preset_names_are_unique() -> None:
    assert len(BY_NAME) == len(PRESETS)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_opens_with_its_key_and_sends_nothing(preset: Preset) -> None:
    settings = ProviderSettings(model="m", url=preset.url_example or None)
    provider = registry(**{preset.key_variable: "sk-1234"}).open(preset.name, settings)
    provider.close()
    assert isinstance(provider, DialectProvider)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_only_servers_on_this_machine_need_no_key(preset: Preset) -> None:
    settings = ProviderSettings(model="m", url=preset.url_example or None)
    if preset.url.startswith("http://localhost:"):
        registry().open(preset.name, settings).close()
    else:
        with pytest.raises(ConfigError, match=f"^{preset.name} needs a key: set {preset.key_variable}"):
            registry().open(preset.name, settings)


@pytest.mark.parametrize(
    ("name", "path", "answer", "header"),
    [
        ("openai", "/v1/chat/completions", chat_answer({"content": "hi"}), ("authorization", "Bearer k-1234")),
        ("openai-responses", "/v1/responses", RESPONSES_ANSWER, ("authorization", "Bearer k-1234")),
        ("anthropic", "/v1/messages", MESSAGES_ANSWER, ("x-api-key", "k-1234")),
        ("gemini", "/v1/models/m:generateContent", GEMINI_ANSWER, ("x-goog-api-key", "k-1234")),
        ("ollama", "/api/chat", OLLAMA_ANSWER, ("authorization", "Bearer k-1234")),
        ("azure", "/v1/chat/completions", chat_answer({"content": "hi"}), ("api-key", "k-1234")),
        ("lmstudio", "/v1/chat/completions", chat_answer({"content": "hi"}), ("authorization", "Bearer k-1234")),
    ],
)
def test_a_preset_reaches_its_dialect(
    serve: Serve, name: str, path: str, answer: dict[str, Any], header: tuple[str, str]
) -> None:
    server = serve(as_json(answer))
    environ = {BY_NAME[name].key_variable: "k-1234"}
    provider = registry(**environ).open(name, ProviderSettings(model="m", url=server.url))
    assert provider.reply(CASE, ChatRequest("", [UserMessage("t")])).text == "hi"
    provider.close()
    assert server.asked[0].path == path
    assert [value for value in server.asked[0].headers.values() if "k-1234" in value] == [header[1]]
    assert server.asked[0].headers[header[0]] == header[1]


def sent_by(serve: Serve, name: str, tool_choice: Any = "auto") -> dict[str, Any]:
    """Return the body of a second request, in which a call of the first is answered."""
    server = serve(as_json(chat_answer({"content": "hi"})))
    provider = registry(**{BY_NAME[name].key_variable: "k-1234"}).open(name, ProviderSettings("m", server.url))
    replies = [
        AssistantMessage(calls=(ToolCall("call-1", "grep", {}),), opaque={"reasoning_content": "first"}),
        ToolMessage("call-1", "grep", "r"),
        AssistantMessage("Done.", opaque={"reasoning_content": "then"}),
    ]
    sampling = Sampling(tool_choice, max_output_tokens=9, seed=3)
    provider.reply(CASE, ChatRequest("", [UserMessage("t"), *replies], [GREP], sampling))
    provider.close()
    body: dict[str, Any] = server.asked[0].body
    return body


def test_what_is_special_about_mistral(serve: Serve) -> None:
    body = sent_by(serve, "mistral", "required")
    assert (body["tool_choice"], body["random_seed"], body["max_tokens"]) == ("any", 3, 9)
    assert "seed" not in body


def test_mistral_gets_ids_of_nine_letters_and_digits(serve: Serve) -> None:
    called = [{"id": "chatcmpl-tool-7", "type": "function", "function": {"name": "grep", "arguments": "{}"}}]
    server = serve(as_json(chat_answer({"content": "", "tool_calls": called})), as_json(chat_answer({})))
    provider = registry(MISTRAL_API_KEY="k-1234").open("mistral", ProviderSettings("m", server.url))
    first = provider.reply(CASE, ChatRequest("", [UserMessage("t")], [GREP]))
    result = ToolMessage(first.calls[0].id, "grep", "r")
    provider.reply(CASE, ChatRequest("", [UserMessage("t"), first, result], [GREP]))
    provider.close()
    _, reply, answered = server.asked[1].body["messages"]
    assert reply["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert len(answered["tool_call_id"]) == 9
    assert answered["tool_call_id"].isalnum()


def test_what_is_special_about_deepseek(serve: Serve) -> None:
    body = sent_by(serve, "deepseek")
    assert "tool_choice" not in body
    assert [message.get("reasoning_content") for message in body["messages"]] == [None, "first", None, None]
    assert sent_by(serve, "deepseek", "none")["tool_choice"] == "none"


def test_what_is_special_about_azure(serve: Serve) -> None:
    body = sent_by(serve, "azure")
    assert (body["max_completion_tokens"], body.get("max_tokens")) == (9, None)


def test_what_is_special_about_lm_studio(serve: Serve) -> None:
    assert sent_by(serve, "lmstudio")["messages"][1]["content"] == ""


@pytest.mark.parametrize("name", ["openai", "openrouter", "groq", "together", "xai", "llamacpp", "vllm"])
def test_the_others_are_as_usual(serve: Serve, name: str) -> None:
    body = sent_by(serve, name, "required")
    assert (body["tool_choice"], body["seed"], body["max_tokens"]) == ("required", 3, 9)
    assert body["messages"][1]["content"] is None
    assert [message.get("reasoning_content") for message in body["messages"]] == [None, "first", None, "then"]


def test_azure_has_no_address_of_its_own() -> None:
    with pytest.raises(ConfigError) as refused:
        registry(AZURE_OPENAI_API_KEY="k-1234").open("azure", ProviderSettings(model="m"))
    assert str(refused.value) == (
        "azure needs your own base URL: --provider-url azure=https://RESOURCE.openai.azure.com/openai/v1"
    )


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"GEMINI_API_KEY": "k-1", "GOOGLE_API_KEY": "k-2"}, "k-1"),
        ({"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "k-2"}, "k-2"),
    ],
)
def test_a_key_may_be_in_another_variable(serve: Serve, environ: dict[str, str], key: str) -> None:
    server = serve(as_json(GEMINI_ANSWER))
    provider = registry(**environ).open("gemini", ProviderSettings(model="m", url=server.url))
    provider.reply(CASE, ChatRequest("", [UserMessage("t")]))
    provider.close()
    assert server.asked[0].headers["x-goog-api-key"] == key


def test_a_missing_key_names_every_variable() -> None:
    with pytest.raises(ConfigError, match=r"^gemini needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY "):
        registry().open("gemini", ProviderSettings(model="m"))


def test_the_documentation_lists_the_presets_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "providers.md").read_text(encoding="utf-8")
    _, _, below = page.partition("| provider | dialect | base URL | key |\n")
    listed = [line for line in below.partition("\n\n")[0].splitlines() if not line.startswith("|---")]
    assert listed == [row_of(preset) for preset in PRESETS]


def row_of(preset: Preset) -> str:
    url = f"`{preset.url}`" if preset.url else "your own"
    keys = ", ".join(f"`{variable}`" for variable in (preset.key_variable, *preset.other_key_variables))
    optional = "" if preset.key_required else ", not needed"
    return f"| `{preset.name}` | `{preset.dialect}` | {url} | {keys}{optional} |"


# --- presets of one's own


def test_a_users_preset(serve: Serve) -> None:
    server = serve(as_json(MESSAGES_ANSWER))
    known = registry()
    known.add_preset(Preset("lab", "anthropic", f"{server.url}/", "LAB_KEY"), {"LAB_KEY": "k-77"})
    provider = known.open("lab", ProviderSettings(model="m"))
    assert provider.reply(CASE, ChatRequest("", [UserMessage("t")])).text == "hi"
    provider.close()
    assert server.asked[0].headers["x-api-key"] == "k-77"
    with pytest.raises(ConfigError, match="'lab' is registered already"):
        known.add_preset(Preset("lab", "anthropic", server.url))


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        (
            "lab = openai-chat https://lab.example/v1 LAB_API_KEY",
            Preset("lab", "openai-chat", "https://lab.example/v1", "LAB_API_KEY"),
        ),
        (
            "  local=ollama\thttp://10.0.0.7:11434  ",
            Preset("local", "ollama", "http://10.0.0.7:11434", key_required=False),
        ),
        (
            "gw.1 = gemini https://h/v1beta?route=a=b GW_KEY",
            Preset("gw.1", "gemini", "https://h/v1beta?route=a=b", "GW_KEY"),
        ),
    ],
)
def test_a_line_describes_a_preset(line: str, preset: Preset) -> None:
    assert parse_provider_line(line) == preset
    registry().add_preset(preset)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected NAME = DIALECT URL"),
        ("lab", "'lab' describes no provider; expected NAME = DIALECT URL"),
        ("lab = openai-chat", "expected NAME = DIALECT URL"),
        ("lab openai-chat https://lab.example/v1", "expected NAME = DIALECT URL"),
        (
            "lab = openai-chat https://h/v1 KEY more",
            "such as: lab = openai-chat https://lab.example/v1 LAB_API_KEY",
        ),
        ("lab = openai https://lab.example/v1", "no dialect 'openai'.*known: openai-chat, openai-responses"),
        ("lab = antropic https://lab.example/v1", "did you mean 'anthropic'"),
        ("lab = openai-chat lab.example/v1", r"no http\(s\) URL"),
        ("lab = openai-chat https://lab.example/v1 sk-ab-12", "no environment variable; name the variable"),
        (" = openai-chat https://lab.example/v1", "cannot name a provider"),
        ("my lab = openai-chat https://lab.example/v1", "cannot name a provider"),
        ("a:b = openai-chat https://lab.example/v1", "cannot name a provider"),
    ],
)
def test_a_line_that_describes_none(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        parse_provider_line(line)
    assert "sk-ab-12" not in str(refused.value)


def test_credentials_in_a_line_are_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"\[redacted\]") as refused:
        parse_provider_line("https://me:geheim9@lab.example/v1?key=abcd1234")
    assert "geheim9" not in str(refused.value)
    assert "abcd1234" not in str(refused.value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_named(serve: Serve, dialect: str) -> None:
    known = registry()
    known.add_preset(parse_provider_line(f"mine = {dialect} http://127.0.0.1:1/v1"))
    provider = known.open("mine", ProviderSettings(model="m"))
    provider.close()
    assert isinstance(provider, DialectProvider)


def test_the_registry_and_the_mock_load_no_http_library() -> None:
    program = (
        "import sys\n"
        "from pytest_tooleval.providers import mock, presets\n"
        "registry = presets.ProviderRegistry()\n"
        "presets.register_builtin_providers(registry)\n"
        "registry.open('mock', presets.ProviderSettings())\n"
        "print(sorted({'httpx', 'ssl', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
