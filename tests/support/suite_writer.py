"""Suites that tests write, run by a real pytest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpcore
import httpx
import hypothesis.core
import jsonschema
import jsonschema_rs
import pytest
import regex

from pytest_tooleval import controller, session
from pytest_tooleval.providers import openai_chat
from pytest_tooleval.reports import result_file, terminal

# pytester forgets what an inner run imported: what is imported here is imported once for all of them.
IMPORTED_ONCE = (
    httpcore,
    hypothesis.core,
    httpx,
    jsonschema,
    jsonschema_rs,
    regex,
    controller,
    session,
    openai_chat,
    result_file,
    terminal,
)


class SuiteWriter:
    """Writes a suite's files and runs pytest on it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.root = pytester.path / "evals"
        (self.root / "fixtures").mkdir(parents=True)

    def fixture(self, case_id: str, calls: list[str] | None = None, **keys: Any) -> Path:
        """Write a fixture that expects one `list_dir` and whose script calls the named tools."""
        value = {"task": "Look around.", **keys}
        if "expected" not in keys and "verifier" not in keys:
            value["expected"] = ["list_dir"]
        if "mock" not in keys and calls is not None:
            turns = [{"calls": [{"name": name, "arguments": {}}]} for name in calls]
            value["mock"] = [*turns, {"text": "Done."}]
        return self.write(f"fixtures/{case_id}.json", value)

    def passing(self, case_id: str, **keys: Any) -> Path:
        """Write a fixture that passes under `mock`."""
        return self.fixture(case_id, ["list_dir"], **keys)

    def missing(self, case_id: str, **keys: Any) -> Path:
        """Write a fixture that misses under `mock`."""
        return self.fixture(case_id, ["glob"], **keys)

    def thresholds(self, **gates: Any) -> Path:
        """Write the gates over tool use."""
        return self.write("thresholds.json", {"tool_use": gates})

    def write(self, name: str, value: Any) -> Path:
        """Write a JSON file of the suite; a string is written as it is."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
        return path

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in this process, other plugins that reorder left out."""
        return self._pytester.runpytest_inprocess("-p", "no:randomly", *arguments)

    def result(self, *arguments: str) -> dict[str, Any]:
        """Run pytest and return the result file."""
        self.run("--tooleval-json", "result.json", *arguments)
        found: dict[str, Any] = json.loads((self._pytester.path / "result.json").read_text())
        return found
