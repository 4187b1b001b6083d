"""Every dialect over a real server that misbehaves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from chat_samples import CASE
from fault_server import (
    ANSWER,
    ARGUMENTS,
    CACHED_TOKENS,
    DIALECTS,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    TOOL,
    Fault,
    FaultServer,
    Plan,
    every,
    serving_faults,
)

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers import waiting
from pytest_tooleval.providers.presets import ProviderRegistry, register_builtin_providers
from pytest_tooleval.providers.provider import ChatRequest, Provider, ProviderSettings, ToolSpec
from pytest_tooleval.transcript import AssistantMessage, ToolMessage, UserMessage

READ = ToolSpec(TOOL, "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASK = ChatRequest("Be brief.", [UserMessage("Read notes.txt.")], [READ])
PRESETS = {
    "openai-chat": "openai",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic",
    "ollama": "ollama",
    "gemini": "gemini",
}
BROKEN_OFF = {Fault.STALL: 0.3}


@pytest.fixture(autouse=True)
def _little_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_BACKOFF", 0.01)


@contextmanager
def opened(
    dialect: str, plan: Plan, timeout: float = 20.0, retries: int = 3
) -> Iterator[tuple[FaultServer, Provider]]:
    registry = ProviderRegistry()
    register_builtin_providers(registry, {})
    with serving_faults(plan) as server:
        urls = {"ollama": server.root, "gemini": server.gemini_url}
        settings = ProviderSettings("scripted", urls.get(dialect, server.url), timeout, retries)
        provider = registry.open(PRESETS[dialect], settings)
        yield server, provider
        provider.close()


def worked_through(provider: Provider) -> tuple[AssistantMessage, AssistantMessage]:
    first = provider.reply(CASE, ASK)
    result = ToolMessage(first.calls[0].id, TOOL, "plum")
    return first, provider.reply(CASE, ChatRequest(ASK.system, [*ASK.messages, first, result], ASK.tools))


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fault_is_outlived_and_counted(dialect: str, fault: Fault) -> None:
    with opened(dialect, lambda number: fault if number == 1 else None, BROKEN_OFF.get(fault, 20.0)) as (
        server,
        provider,
    ):
        first, second = worked_through(provider)
    assert [(call.name, call.arguments) for call in first.calls] == [(TOOL, ARGUMENTS)]
    assert (second.text, second.calls) == (ANSWER, ())
    assert (first.attempts, second.attempts, server.requests) == (2, 1, 3)
    assert server.faults == {fault: 1}
    usage = first.usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output) == (
        PROMPT_TOKENS - CACHED_TOKENS,
        CACHED_TOKENS,
        OUTPUT_TOKENS,
    )
    assert usage.total == PROMPT_TOKENS + OUTPUT_TOKENS


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_a_fault_that_stays_is_an_error_with_its_attempts(fault: Fault) -> None:
    with (
        opened("openai-chat", lambda _: fault, BROKEN_OFF.get(fault, 20.0)) as (server, provider),
        pytest.raises(ProviderError, match=r"\(4 attempts[;)]") as failed,
    ):
        provider.reply(CASE, ASK)
    assert failed.value.transient
    assert failed.value.attempts == server.requests == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_threads_lose_no_answer_and_no_attempt(dialect: str) -> None:
    faults = [fault for fault in Fault if fault is not Fault.STALL]
    with opened(dialect, every(5, faults), retries=12) as (server, provider), ThreadPoolExecutor(8) as pool:
        conversations = list(pool.map(lambda _: worked_through(provider), range(40)))
    assert {second.text for _, second in conversations} == {ANSWER}
    attempts = sum(first.attempts + second.attempts for first, second in conversations)
    assert attempts == server.requests == 80 + sum(server.faults.values())
    assert sum(server.faults.values()) == server.requests // 5
