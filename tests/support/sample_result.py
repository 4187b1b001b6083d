"""The result file of a small run of every family, made by a real pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "search_notes", "title": "Search", "description": "Find notes.", "readOnly": True}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
CATALOG = {
    "version": 1,
    "description": "d",
    "servers": [{"id": "notes", "status": "online"}],
    "tools": [
        {"toolRef": f"notes.{name}", "serverId": "notes", **TOOL, "name": name, "inputSchema": SCHEMA}
        for name in ("search_notes", "delete_note")
    ],
}
ROWS = [
    {"intent": "search my notes", "category": "lexical", "acceptable": ["notes.search_notes"], "rationale": "r"},
    {"intent": "bake a cake", "category": "no_match", "acceptable": [], "rationale": "r"},
]
SCENARIOS = {
    "version": 1,
    "scenarios": [
        {"name": "s", "toolRef": "notes.search_notes", "arguments": {"query": "a"}, "expectedOutcome": "success", "rationale": "r"}
    ],
}  # fmt: skip
ERGONOMICS = {"version": 1, "cases": [{"name": "e", "kind": "find", "query": "search notes", "rationale": "r"}]}
FIXTURES = [
    {
        "id": "good",
        "task": "t",
        "expected": ["list_dir"],
        "mock": [{"calls": [{"name": "list_dir"}]}, {"text": "a"}],
    },
    {"id": "bad", "task": "t", "expected": ["glob"], "tags": ["x"], "mock": [{"text": "b"}]},
    {"id": "skipped", "task": "t", "expected": ["glob"]},
]
THRESHOLDS = {"tool_use": {"overall": {"passRateMin": 0.4}}, "discovery": {"overall": {"top1Min": 0.1}}}


def sample_result(folder: Path) -> dict[str, Any]:
    """Run the suite in a folder, and return its result file."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    evals = folder / "evals"
    for name, value in {
        "catalog/c.json": CATALOG,
        "invocation/i.json": SCENARIOS,
        "ergonomics/e.json": ERGONOMICS,
        "fixtures/f.json": FIXTURES,
        "thresholds.json": THRESHOLDS,
    }.items():
        path = evals / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    (evals / "discovery").mkdir()
    (evals / "discovery" / "d.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--tooleval-json", "r.json"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    path = folder / "r.json"
    assert path.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found
