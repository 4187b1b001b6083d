"""Children are bounded in time and output, and leave nothing behind: seen on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import pytest_tooleval
from pytest_tooleval.tools import process
from pytest_tooleval.tools.process import BoundedOutput, Finished

ENVIRONMENT = {"PATH": os.environ["PATH"]}
SOURCES = str(Path(pytest_tooleval.__file__).parents[1])


def shell(command: str, folder: Path, *, seconds: float = 10, output_chars: int = 1000) -> Finished:
    folder = folder.resolve()
    return process.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        environment=ENVIRONMENT,
        seconds=seconds,
        output_chars=output_chars,
        within=folder,
    )


def living(program: str) -> list[int]:
    """Return the ids of the processes with this command line; dead ones that nobody waited for have none."""
    found = psutil.process_iter(["cmdline"])
    return [other.pid for other in found if " ".join(other.info["cmdline"] or ()) == program]


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES},
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
    )


@pytest.fixture
def sleeper() -> Iterator[str]:
    """Give a command that runs far longer than any test, and that nobody else runs."""
    program = f"sleep 6{time.monotonic_ns()}"
    yield program
    for pid in living(program):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("pieces", "most", "expected"),
    [
        ([], 10, ""),
        ([b"hello"], 10, "hello"),
        ([b"01234", b"56789"], 10, "0123456789"),
        ([b"0123456789A"], 10, "01234\n[... 1 characters left out ...]\n6789A"),
        ([b"abc"] * 100, 7, "abc\n[... 293 characters left out ...]\ncabc"),
        ([b"x", b"y", b"z"], 0, "\n[... 3 characters left out ...]\n"),
        (["é".encode()[:1], "é".encode()[1:]], 10, "é"),
        ([b"a\xff\xfeb"], 10, "a\ufffd\ufffdb"),
        (["é".encode()[:1]], 10, "\ufffd"),
    ],
)
def test_output_keeps_its_beginning_and_its_end(pieces: list[bytes], most: int, expected: str) -> None:
    output = BoundedOutput(most)
    for piece in pieces:
        output.add(piece)
    output.add(b"", final=True)
    assert output.text() == expected


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("printf out; printf err >&2; printf again", "outerragain", 0),
        ("pwd >/dev/null; exit 7", "", 7),
        ("cat; echo read", "read\n", 0),
        ("read line || echo no input", "no input\n", 0),
        ("kill -TERM $$", "", -15),
        (r"printf 'a\377b'", "a\ufffdb", 0),
        ("exec >&- 2>&-; sleep 0.1; exit 4", "", 4),
    ],
)
def test_a_child_ends(command: str, output: str, exit_code: int, tmp_path: Path) -> None:
    finished = shell(command, tmp_path)
    assert (finished.output, finished.exit_code) == (output, exit_code)


def test_the_environment_is_exactly_what_was_given(tmp_path: Path) -> None:
    finished = process.run(
        ["/usr/bin/env"],
        cwd=tmp_path,
        environment={"A": "1", "B": "two words"},
        seconds=5,
        output_chars=1000,
    )
    lines = finished.output.splitlines()
    assert sorted(line for line in lines if not line.startswith(f"{process.MARKER}=")) == ["A=1", "B=two words"]
    assert len(lines) == 3


def test_the_child_has_its_own_session_and_the_folder(tmp_path: Path) -> None:
    finished = shell('pwd -P; ps -o sid= -p $$; echo "$$"', tmp_path)
    folder, session, pid = finished.output.split()
    assert folder == str(tmp_path.resolve())
    assert session == pid


def test_much_output_takes_little_memory(tmp_path: Path) -> None:
    shell("true", tmp_path)
    tracemalloc.start()
    try:
        finished = shell("head -c 300000000 /dev/zero; echo end", tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.exit_code == 0
    assert finished.output.endswith("end\n")
    assert "[... 299999004 characters left out ...]" in finished.output
    assert peak < 3_000_000


@pytest.mark.parametrize("background", ["{sleeper}", "setsid {sleeper}", "sh -c 'while :; do echo y; done'"])
def test_it_is_over_with_the_shell_though_others_hold_the_pipe(
    background: str, sleeper: str, tmp_path: Path
) -> None:
    finished = shell(f"{background.format(sleeper=sleeper)} & echo said", tmp_path, seconds=20)
    assert finished.exit_code == 0
    assert "said" in finished.output
    assert finished.seconds < 5


def test_time_is_bounded_and_the_output_so_far_is_kept(sleeper: str, tmp_path: Path) -> None:
    finished = shell(f"echo early; ({sleeper} & {sleeper} | cat)", tmp_path, seconds=0.3)
    assert finished.exit_code is None
    assert finished.output == "early\n"
    assert 0.3 <= finished.seconds < 5
    assert living(sleeper) == []


@pytest.mark.parametrize(
    "command",
    [
        "{sleeper} &",
        "nohup {sleeper} >/dev/null 2>&1 &",
        "setsid {sleeper} &",
        "(setsid sh -c '{sleeper} & {sleeper} &' &)",
        "env -i setsid {sleeper} >/dev/null 2>&1 &",
        "mkdir sub; cd sub; env -i setsid {sleeper} >/dev/null 2>&1 &",
        "cd /; setsid {sleeper} >/dev/null 2>&1 &",
        "trap '' TERM HUP INT; setsid {sleeper} &",
        "setsid sh -c 'trap \"\" TERM; {sleeper}; {sleeper}' >/dev/null 2>&1 &",
        "setsid {sleeper} & exit 3",
        "setsid {sleeper} & kill -9 $$",
    ],
)
def test_nothing_is_left_running(command: str, sleeper: str, tmp_path: Path) -> None:
    shell(f"{command.format(sleeper=sleeper)}\nsleep 0.05", tmp_path)
    assert living(sleeper) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_one_that_hides_but_still_writes_to_us_is_ended(sleeper: str, tmp_path: Path) -> None:
    shell(f"cd /; env -i setsid {sleeper} & sleep 0.05", tmp_path)
    assert living(sleeper) == []


def test_an_exception_in_the_waiting_thread_ends_the_group(sleeper: str, tmp_path: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            shell(f"setsid {sleeper} & {sleeper}", tmp_path)
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert living(sleeper) == []


def test_what_a_thread_still_waits_for_ends_with_the_program(sleeper: str, tmp_path: Path) -> None:
    script = """
        import sys, threading, time
        from pathlib import Path
        from pytest_tooleval.tools import process

        def wait():
            process.run(sys.argv[1].split(), cwd=Path(sys.argv[2]), environment={"PATH": "/usr/bin:/bin"},
                        seconds=60, output_chars=10)

        threading.Thread(target=wait, daemon=True).start()
        while not process._running:
            time.sleep(0.01)
    """
    done = python(script, sleeper, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert living(sleeper) == []


def test_a_run_spares_the_children_of_another_in_the_same_folder(sleeper: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(shell, f"env -i {sleeper.replace('sleep 6', 'sleep 0.6; exit 5 # ')}", tmp_path)
        time.sleep(0.1)
        quick = [pool.submit(shell, "setsid sleep 30 & echo quick", tmp_path) for _ in range(4)]
        assert [other.result().output for other in quick] == ["quick\n"] * 4
        assert slow.result().exit_code == 5


def test_many_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(24) as pool:
        finished = list(pool.map(lambda number: shell(f"echo {number}; exit {number}", tmp_path), range(96)))
    assert [(one.output, one.exit_code) for one in finished] == [(f"{n}\n", n) for n in range(96)]


def test_processes_inside_a_folder_are_ended(sleeper: str, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "case"
    beside = tmp_path.resolve() / "case-beside"
    for path in (folder, beside):
        path.mkdir()
    command = sleeper.split()
    works = subprocess.Popen(command, cwd=folder, env={})
    lives = subprocess.Popen(command, cwd="/", env={"HOME": str(folder / "home")})
    other = subprocess.Popen(command, cwd=beside, env={"HOME": str(beside)})
    try:
        threading.Timer(0.1, lambda: (works.wait(), lives.wait())).start()
        process.end_processes_inside(folder)
        assert (works.wait(5), lives.wait(5), other.poll()) == (-9, -9, None)
    finally:
        other.kill()
        other.wait()


FULL = """
    import os, resource, sys
    from pathlib import Path
    import psutil
    from pytest_tooleval.tools import process

    resource.setrlimit(resource.{limit}, ({most}, {most}))
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        process.run(["/bin/sh", "-c", "true"], cwd=Path("/"), environment={{}}, seconds=5, output_chars=10)
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("limit", "most"), [("RLIMIT_NPROC", 0), ("RLIMIT_NOFILE", 4)])
def test_no_room_for_a_process_is_no_fault_of_the_model(limit: str, most: int) -> None:
    done = python(FULL.format(limit=limit, most=most))
    assert done.stdout.startswith("ToolUnavailableError no process can be started: "), done.stdout + done.stderr
    assert "ulimit" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "folder", "error"),
    [
        (["/no/such/program"], "/", FileNotFoundError),
        (["/bin/sh", "-c", "true"], "/no/such/folder", FileNotFoundError),
        (["/bin/echo", "a\0b"], "/", ValueError),
    ],
)
def test_what_cannot_be_run(arguments: list[str], folder: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        process.run(arguments, cwd=Path(folder), environment={}, seconds=5, output_chars=10)
