"""Ends children that go on when this process dies without ending them: a small process that outlives it.

A child whose parent is killed sees the end of its input and ends, if it cares; a server behind a wrapper may not.
The watchdog is this file, run as a program with nothing but the standard library. It reads from a pipe which
children there are and, when the pipe closes, gives them some time and then kills them, with all that they started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

_LAST_SECONDS = 3.0
_LOOK_SECONDS = 0.05


class Watchdog:
    """Guards children, from the first on that it is told of. Safe to use from many threads.

    Args:
        variable: the environment variable whose value tells a child, and what it started, from other processes.
        grace_seconds: how long children have to end after this process died, and again after SIGTERM.

    """

    def __init__(self, variable: str, grace_seconds: float) -> None:
        self._arguments = (variable, str(grace_seconds))
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def guard(self, pid: int, token: str) -> None:
        """Take care of a child that leads its own process group."""
        self._tell(f"+ {token} {pid}\n", start=True)

    def release(self, token: str) -> None:
        """Forget a child that has ended."""
        self._tell(f"- {token}\n", start=False)

    def close(self) -> None:
        """End the watchdog; what it guards is left alone, and its caller's to end."""
        with self._guard:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.kill()
            process.wait()
            process.stdin.close()

    def _tell(self, line: str, *, start: bool) -> None:
        """Write a line; without a watchdog, which is a safety net only, children are merely less safe."""
        with self._guard, contextlib.suppress(OSError):
            if self._process is None and start and sys.executable:
                self._process = _start(self._arguments)
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line.encode())


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this file, in this Python
        [sys.executable, "-I", "-S", __file__, *arguments],
        cwd="/",
        env={},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    )


def watch(variable: str, grace_seconds: float, lines: Iterable[str]) -> None:
    """Read of children until the lines end, then end those that are left, after some time to end by themselves."""
    guarded: dict[str, int] = {}
    for line in lines:
        match line.split():
            case ["+", token, pid]:
                guarded[token] = int(pid)
            case ["-", token]:
                guarded.pop(token, None)
    if guarded:
        _end(guarded, frozenset(f"{variable}={token}".encode() for token in guarded), grace_seconds)


def _end(guarded: dict[str, int], marks: frozenset[bytes], grace: float) -> None:
    def left() -> list[int]:
        return [*_leaders(guarded.values()), *_marked(marks)]

    for number, seconds in ((None, grace), (signal.SIGTERM, grace), (signal.SIGKILL, _LAST_SECONDS)):
        if _gone(left, number, seconds):
            return


def _gone(left: Callable[[], list[int]], number: int | None, seconds: float) -> bool:
    """Signal what is left, what dies only by SIGKILL again and again, and return True when nothing is left."""
    deadline = time.monotonic() + seconds
    signalled: set[int] = set()
    while pids := left():
        if time.monotonic() > deadline:
            return False
        for pid in pids:
            if number is not None and (number == signal.SIGKILL or pid not in signalled):
                signalled.add(pid)
                _signal(pid, number)
        time.sleep(_LOOK_SECONDS)
    return True


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        if _leads(pid):
            os.killpg(pid, number)
        os.kill(pid, number)


def _leaders(pids: Iterable[int]) -> Iterator[int]:
    return (pid for pid in pids if _leads(pid))


def _leads(pid: int) -> bool:
    """Tell whether a process leads a session; a number that another process got meanwhile rarely does."""
    try:
        return os.getsid(pid) == pid and not _is_zombie(pid)
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    """Tell whether a process is over and only nobody has asked how it ended; False where there is no `/proc`."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].startswith("Z")
    return False


def _marked(marks: frozenset[bytes]) -> Iterator[int]:
    """Yield the processes whose environment holds a mark; none where there is no `/proc`."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if not marks.isdisjoint((folder / "environ").read_bytes().split(b"\0")):
                yield int(folder.name)


if __name__ == "__main__":
    watch(sys.argv[1], float(sys.argv[2]), sys.stdin)
