"""Children that end: bounded in time and output, and nothing that they started is left running."""

from __future__ import annotations

import atexit
import codecs
import contextlib
import errno
import os
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tooleval.errors import ToolUnavailableError

if TYPE_CHECKING:
    import psutil

MARKER = "TOOLEVAL_COMMAND"
"""Variable that every child gets; its value is one run's own, so that stray children can be told."""

_CHUNK = 65_536
_DRAIN_BYTES = 1_048_576
_POLL_SECONDS = 0.05
_REAP_SECONDS = 3.0
_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


@dataclass(slots=True)
class _SharedFolder:
    """A folder that runs work in: the processes from before the first of them, and how many there are now."""

    known: frozenset[int]
    runs: int = 0
    clearing: threading.Lock = field(default_factory=threading.Lock)


_running: dict[str, subprocess.Popen[bytes]] = {}
_shared: dict[Path, _SharedFolder] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a child ended.

    Attributes:
        output: stdout and stderr in the order they came, bounded, bytes that are not UTF-8 replaced.
        exit_code: negative for the signal that ended the child; None when it ran out of time.
        seconds: how long it ran.

    """

    output: str
    exit_code: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Service:
    """A child that goes on until it is ended, with pipes to its input, output and errors.

    Attributes:
        process: the child; its pipes are the caller's to use and to close.
        token: the value of its `MARKER`, which everything that it starts inherits.

    """

    process: subprocess.Popen[bytes]
    token: str

    def terminate(self) -> None:
        """Ask the child, and what is in its process group, to end."""
        _signal_group(self.process, signal.SIGTERM)

    def end(self) -> None:
        """Kill the child and everything that it started; ended twice is ended once."""
        if self.token in _running:
            _end(self.process, self.token)
            _end_survivors(lambda other: _is_marked(other, self.token), frozenset())


def start_service(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Service:
    """Start a child that goes on until it is ended, at the latest when this process ends in good order.

    It has its own session and exactly `environment` (and `MARKER`). Safe to call from many threads.

    Raises:
        ToolUnavailableError: no process can be started now: no room for one more process or open file.
        OSError: the program cannot be run, or not in `cwd`.
        ValueError: an argument or a variable holds a null character or text that cannot be encoded.

    """
    token = uuid.uuid4().hex
    process = _start(arguments, cwd, {**environment, MARKER: token}, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _running[token] = process
    return Service(process, token)


class BoundedOutput:
    """Text of any length of which the first and the last characters are kept."""

    def __init__(self, most: int) -> None:
        self._head_most = most // 2
        self._tail_most = most - self._head_most
        self._head = ""
        self._tail = ""
        self._left_out = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes, *, final: bool = False) -> None:
        """Take the next bytes; `final` ends a character that was cut off."""
        text = self._decoder.decode(data, final)
        room = self._head_most - len(self._head)
        self._head += text[:room]
        tail = self._tail + text[room:]
        surplus = max(0, len(tail) - self._tail_most)
        self._left_out += surplus
        self._tail = tail[surplus:]

    def text(self) -> str:
        """Return what was kept, with a notice where characters were left out."""
        if not self._left_out:
            return self._head + self._tail
        return f"{self._head}\n[... {self._left_out} characters left out ...]\n{self._tail}"


def run(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    output_chars: int,
    within: Path | None = None,
) -> Finished:
    """Run a child to its end, or to the end of its time, and end everything that it started.

    It has its own session, no input, exactly `environment` (and `MARKER`), and stdout and stderr in one pipe. It is
    over when the child has exited, though others still hold the pipe. Safe to call from many threads.

    Args:
        arguments: program and its arguments.
        cwd: where it runs.
        environment: all its variables.
        seconds: most time; then it is killed and its output so far is kept.
        output_chars: most characters of output that are kept, the notice in their midst aside.
        within: real path of a folder that only such runs work in: when the last that is under way ends, processes
            that appeared meanwhile and work inside it are ended too, although they dropped their environment.

    Raises:
        ToolUnavailableError: no process can be started now: no room for one more process or open file.
        OSError: the program cannot be run, or not in `cwd`.
        ValueError: an argument holds a null character or text that cannot be encoded.

    """
    with _clearing(within):
        return _run(arguments, cwd, environment, seconds, BoundedOutput(output_chars))


def end_processes_inside(folder: Path) -> None:
    """Kill processes that work inside the folder (a real path) or have their home or temporary folder there."""
    _end_survivors(lambda process: _works_inside(process, folder) or _lives_inside(process, folder), frozenset())


def _run(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], seconds: float, output: BoundedOutput
) -> Finished:
    known = _process_ids()
    token = uuid.uuid4().hex
    started = time.monotonic()
    process = _start(arguments, cwd, {**environment, MARKER: token})
    try:
        _running[token] = process
        in_time = _read_until_exit(process, output, started + seconds)
    finally:
        _end(process, token)
        pipe = os.fstat(_pipe(process))
        _end_survivors(lambda other: _is_marked(other, token) or _writes_to(other, pipe), known)
        _close(process, output)
    return Finished(output.text(), process.returncode if in_time else None, time.monotonic() - started)


@contextlib.contextmanager
def _clearing(folder: Path | None) -> Iterator[None]:
    """End what works inside the folder when no run uses it any more: till then it may be another run's."""
    if folder is None:
        yield
        return
    shared = _share(folder)
    try:
        yield
    finally:
        with shared.clearing:
            if shared.runs == 1:
                _end_survivors(lambda process: _works_inside(process, folder), shared.known)
            with _guard:
                shared.runs -= 1
                if not shared.runs:
                    _shared.pop(folder, None)


def _share(folder: Path) -> _SharedFolder:
    with _guard:
        shared = _shared.setdefault(folder, _SharedFolder(_process_ids()))
        shared.runs += 1
    with shared.clearing:  # nothing may start in the folder while it is being cleared
        return shared


def _start(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - running what the caller names is the purpose
            arguments,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise ToolUnavailableError(
                f"no process can be started: {error.strerror}. End other programs, run fewer cases at a time, "
                "or raise the limits of processes and open files (ulimit -u, ulimit -n)"
            ) from error
        raise


def _read_until_exit(process: subprocess.Popen[bytes], output: BoundedOutput, deadline: float) -> bool:
    """Return True when the child exited, False when its time was over first."""
    pipe = _pipe(process)
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    while process.poll() is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if not poller.poll(min(left, _POLL_SECONDS) * 1000):
            continue
        data = os.read(pipe, _CHUNK)
        if not data:
            return _exits_within(process, left)
        output.add(data)
    return True


def _pipe(process: subprocess.Popen[bytes]) -> int:
    if process.stdout is None:
        raise ValueError("the child was started without a pipe")
    return process.stdout.fileno()


def _exits_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes], token: str) -> None:
    _kill_group(process)
    _exits_within(process, _REAP_SECONDS)
    _running.pop(token, None)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process, signal.SIGKILL)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        os.killpg(process.pid, number)


def _close(process: subprocess.Popen[bytes], output: BoundedOutput) -> None:
    """Take what is still in the pipe, without waiting for more, and close it."""
    pipe = _pipe(process)
    os.set_blocking(pipe, False)
    for _ in range(_DRAIN_BYTES // _CHUNK):
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            break
        if not data:
            break
        output.add(data)
    output.add(b"", final=True)
    if process.stdout is not None:
        process.stdout.close()


def _process_ids() -> frozenset[int]:
    import psutil

    try:
        return frozenset(psutil.pids())
    except OSError:
        return frozenset()


def _other_processes(known: frozenset[int]) -> Iterator[psutil.Process]:
    import psutil

    for pid in _process_ids() - known - {os.getpid()}:
        with contextlib.suppress(psutil.Error, OSError):
            yield psutil.Process(pid)


def _end_survivors(is_ours: Callable[[psutil.Process], bool], known: frozenset[int]) -> None:
    """Kill until a look at all processes finds none: one that forks as it dies leaves a child for the next look."""
    import psutil

    deadline = time.monotonic() + _REAP_SECONDS
    while found := [process for process in _other_processes(known) if is_ours(process)]:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if time.monotonic() > deadline:
            return
        time.sleep(0.002)


def _is_marked(process: psutil.Process, token: str) -> bool:
    return _environment(process).get(MARKER) == token


def _environment(process: psutil.Process) -> dict[str, str]:
    import psutil

    try:
        environment: dict[str, str] = process.environ()
    except (psutil.Error, OSError):
        return {}
    return environment


def _works_inside(process: psutil.Process, folder: Path) -> bool:
    import psutil

    try:
        return _is_inside(process.cwd(), folder)
    except (psutil.Error, OSError):
        return False


def _writes_to(process: psutil.Process, pipe: os.stat_result) -> bool:
    """Tell whether the process still writes to that pipe; only where there is `/proc`."""
    return any(_is_same(Path(f"/proc/{process.pid}/fd/{number}"), pipe) for number in (1, 2))


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def _lives_inside(process: psutil.Process, folder: Path) -> bool:
    environment = _environment(process)
    return any(_is_inside(environment.get(name, ""), folder) for name in ("HOME", "TMPDIR"))


def _is_inside(path: str, folder: Path) -> bool:
    return path == str(folder) or path.startswith(f"{folder}{os.sep}")


def end_running() -> None:
    """Kill every child that runs now, in whatever thread; its caller sees it end."""
    for process in list(_running.values()):
        _kill_group(process)


atexit.register(end_running)
os.register_at_fork(after_in_child=_running.clear)
