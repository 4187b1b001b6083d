"""Workers of another machine, reached over a socket; here the other machine is this one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """Return the address of an execnet server that runs in a folder of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "execnet.script.socketserver", address]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))) == 0:
                break
        time.sleep(0.05)
    yield address
    server.kill()
    server.wait()


def test_cases_run_where_the_gateway_leads(suite, pytester, gateway):
    for number in range(4):
        suite.passing(f"pass-{number}")
    suite.missing("miss")
    alone = suite.result()
    command = [sys.executable, "-m", "pytest", "--dist", "load", "--tx", f"socket={gateway}//chdir={pytester.path}"]
    done = subprocess.run(
        [*command, "--tooleval-json", "remote.json"], cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert "mock: 5 of 5 measured" in done.stdout, done.stdout + done.stderr
    remote = json.loads((pytester.path / "remote.json").read_text())

    def verdicts(document):
        return [(case["id"], case["verdict"], case["names"]) for case in document["toolUse"]["cases"]]

    assert verdicts(remote) == verdicts(alone)
    assert remote["verdict"] == alone["verdict"] == "fail"
