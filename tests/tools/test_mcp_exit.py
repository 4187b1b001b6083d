"""However the process that started servers ends, nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp_misbehaving import Quirk
from mcp_project import processes_with, soon

import pytest_tooleval

SUPPORT = Path(__file__).parents[1] / "support"
SOURCES = Path(pytest_tooleval.__file__).parents[1]
SCRIPT = """
import os, sys, time
from pathlib import Path
from mcp_misbehaving import Quirk
from mcp_project import McpProject, misbehaving

project = McpProject(Path(sys.argv[1]), os.environ)
running = project.servers(own=misbehaving(*map(Quirk, sys.argv[3:])))
case = project.case(running.__enter__())
project.call(case.__enter__(), "echo", text="x")
print(project.mark, flush=True)
if sys.argv[2] != "exits":
    time.sleep(60)
sys.exit(3)
"""


@pytest.mark.parametrize(("ending", "number", "code"), [("killed", 9, -9), ("interrupted", 2, 1), ("exits", 0, 3)])
def test_servers_are_gone(ending: str, number: int, code: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), ending, Quirk.STUBBORN.value, Quirk.FAMILY.value],
        env={**os.environ, "PYTHONPATH": f"{SUPPORT}:{SOURCES}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    mark = process.stdout.readline().decode().strip()
    assert mark
    if number:
        assert len(processes_with(mark)) == 2
        process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode in {code, -number}
    assert number == signal.SIGINT or errors == b""
    assert soon(lambda: not processes_with(mark))
