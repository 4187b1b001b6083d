"""Cases of one MCP call each under `mock`, on a server that all share and on a server of its own for each.

Prints the wall-clock and CPU time of a case, servers included, and how many processes are left afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import plain_mcp_server

MARK = "TOOLEVAL_BENCHMARK"
GIT_SERVER = "mcp-server-git"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of pytest.

    Attributes:
        cases: how many passed.
        seconds: wall-clock seconds from start to exit.
        cpu_seconds: of pytest and all processes that ended under it.
        left: processes that still run afterwards.

    """

    cases: int
    seconds: float
    cpu_seconds: float
    left: int


def small_server(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entry of a server that does next to nothing, and the call that the cases make."""
    tool = plain_mcp_server.tool("echo", "Say it again.")
    entry = plain_mcp_server.written(folder, tools=[tool], results={"echo": plain_mcp_server.text("done")})
    return entry, {"name": "echo", "arguments": {}}


def git_server(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entry of mcp-server-git over a repository of one commit, and the call that the cases make."""
    repository = folder / "repository"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    repository.mkdir()
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Start"]):
        subprocess.run([*git, *arguments], check=True)
    call = {"name": "git_log", "arguments": {"repo_path": str(repository), "max_count": 1}}
    return {"command": GIT_SERVER, "args": ["--repository", str(repository)]}, call


SERVERS = {"small": small_server, "git": git_server}


def write(root: Path, cases: int, server: str | None, *, isolated: bool) -> None:
    """Write a suite of cases of one call each; without a server the call is one of the package's own tools."""
    fixtures = root / "evals" / "fixtures"
    fixtures.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n")
    call: Mapping[str, Any] = {"name": "list_dir", "arguments": {}}
    if server is not None:
        entry, call = SERVERS[server](root)
        own = {**entry, "isolated": isolated, "env": {MARK: os.environ[MARK]}}
        (root / "evals" / "mcp.json").write_text(json.dumps({"mcpServers": {"own": own}}))
    fixture = {
        "task": "Call it once.",
        **({} if server is None else {"mcp": ["own"]}),
        "expected": [call["name"]],
        "mock": [{"calls": [call]}, {"text": "Done."}],
    }
    for number in range(cases):
        (fixtures / f"case-{number}.json").write_text(json.dumps(fixture))


def run(root: Path, *arguments: str) -> Measured:
    """Run pytest on the suite of a folder."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "evals",
        "--tooleval-json", "result.json", *arguments,
    ]  # fmt: skip
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads((root / "result.json").read_text())["toolUse"]["cases"]
    return Measured(sum(case["pass"] is True for case in found), seconds, cpu, len(list(marked())))


def marked() -> Iterator[int]:
    """Yield the processes that this benchmark started, at whatever remove, and that still run."""
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get(MARK) == os.environ[MARK]
        except (psutil.Error, OSError):
            continue
        if is_ours and process.pid != os.getpid():
            yield process.pid


@contextmanager
def suite(cases: int, server: str | None, *, isolated: bool) -> Iterator[Path]:
    """Give the folder of a suite."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), cases, server, isolated=isolated)
        yield Path(name)


def report(cases: int, server: str | None, arguments: list[str], *, isolated: bool = False) -> int:
    """Print what a case costs beyond the first one; return how many processes are left."""
    with suite(1, server, isolated=isolated) as root:
        first = run(root, *arguments)
    with suite(cases, server, isolated=isolated) as root:
        whole = run(root, *arguments)
    more = max(1, cases - 1)
    wall = (whole.seconds - first.seconds) / more * 1000
    cpu = (whole.cpu_seconds - first.cpu_seconds) / more * 1000
    name = "no server" if server is None else f"{server}, {'isolated' if isolated else 'shared'}"
    print(
        f"{name:15} {whole.cases} of {cases} passed in {whole.seconds:5.1f} s (one: {first.seconds:.1f} s); "
        f"a case: {wall:6.1f} ms, {cpu:6.1f} ms of CPU; processes left: {first.left + whole.left}",
        flush=True,
    )
    return first.left + whole.left


def main() -> int:
    """Print a line for each way; return 1 when a process is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("arguments", nargs="*", help="further arguments of pytest, after --")
    options = parser.parse_args()
    os.environ[MARK] = uuid.uuid4().hex
    left = report(options.cases, None, options.arguments)
    for server in SERVERS:
        if server == "git" and shutil.which(GIT_SERVER, path=Path(sys.executable).parent) is None:
            print(f"{server}: left out: pip install {GIT_SERVER}")
            continue
        for isolated in (False, True):
            left += report(options.cases, server, options.arguments, isolated=isolated)
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
