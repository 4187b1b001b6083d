"""Children that go on until they are ended, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pytest_tooleval.tools.process import MARKER, Service, end_running, start_service

DEAF = "trap '' TERM; echo ready; while :; do sleep 1; done"
Start = Callable[[str], Service]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a shell."""
    services: list[Service] = []

    def started(command: str) -> Service:
        environment = {"PATH": os.environ["PATH"], "A": "1"}
        service = start_service(["/bin/sh", "-c", command], cwd=tmp_path, environment=environment)
        services.append(service)
        return service

    yield started
    for service in services:
        service.end()
        for pipe in (service.process.stdin, service.process.stdout, service.process.stderr):
            if pipe:
                pipe.close()


def line_of(service: Service) -> str:
    assert service.process.stdout
    return service.process.stdout.readline().decode().strip()


def marked(service: Service) -> list[int]:
    """Return what is left of a child and of what it started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == service.token:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_its_pipes_are_its_own(start: Start) -> None:
    service = start('read line; echo "<$line>"; echo wrong >&2')
    assert service.process.stdin
    assert service.process.stderr
    service.process.stdin.write(b"hello\n")
    assert (line_of(service), service.process.stderr.readline()) == ("<hello>", b"wrong\n")


def test_it_has_its_own_session_the_folder_and_exactly_the_environment(start: Start, tmp_path: Path) -> None:
    service = start("pwd -P; ps -o sid= -p $$; env | cut -d= -f1 | sort | tr '\n' ' '")
    folder, session, names = (line_of(service) for _ in range(3))
    assert (folder, session) == (str(tmp_path.resolve()), str(service.process.pid))
    assert set(names.split()) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"A", "PATH", MARKER}


def test_it_can_be_asked_to_end(start: Start) -> None:
    service = start("echo ready; sleep 60 & wait")
    line_of(service)
    service.terminate()
    assert service.process.wait(5) == -15


def test_ended_it_is_gone_with_all_that_it_started(start: Start) -> None:
    service = start(f'setsid sh -c "{DEAF}" & {DEAF}')
    line_of(service)
    line_of(service)
    assert len(marked(service)) >= 2
    service.end()
    assert service.process.returncode == -9
    assert marked(service) == []
    service.end()


def test_what_it_left_when_it_ended_by_itself_is_gone_too(start: Start) -> None:
    service = start("setsid sleep 60 & exit 3")
    assert service.process.wait(5) == 3
    service.end()
    assert marked(service) == []


def test_it_is_ended_with_everything_that_runs(start: Start) -> None:
    service = start(DEAF)
    line_of(service)
    end_running()
    assert service.process.wait(5) == -9


def test_it_ends_with_this_process() -> None:
    script = (
        "from pathlib import Path; from pytest_tooleval.tools.process import start_service;"
        f"print(start_service(['/bin/sh', '-c', {DEAF!r}], cwd=Path('/'), environment={{}}).process.pid)"
    )
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, check=True)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(int(said.stdout)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(int(said.stdout))


@pytest.mark.parametrize(
    ("arguments", "folder", "kind"),
    [
        (["/no/such/program"], "/", FileNotFoundError),
        (["/bin/sh"], "/no/such/folder", FileNotFoundError),
        (["a\0b"], "/", ValueError),
    ],
)
def test_what_cannot_be_started(arguments: list[str], folder: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        start_service(arguments, cwd=Path(folder), environment={})
