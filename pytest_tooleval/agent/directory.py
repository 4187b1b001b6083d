"""A working directory for one run, for tools that open relative paths: the thread's own where that can be had.

On Linux a thread can leave the directory that it shares with the process (`unshare(CLONE_FS)`, unprivileged, though
a container may forbid it). Where it cannot, runs that need a directory take turns with the process's one.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

_CLONE_FS = 0x200
_process_directory = threading.RLock()
_thread = threading.local()


def take_own_directory() -> bool:
    """Give the calling thread a working directory of its own; False where the system has or allows none.

    The main thread never leaves the process's directory: everything else in it relies on that.
    """
    if threading.current_thread() is threading.main_thread():
        return False
    if not getattr(_thread, "own", False):
        _thread.own = _unshared()
    return bool(_thread.own)


@lru_cache(maxsize=1)
def threads_can_have_own() -> bool:
    """Whether threads get directories of their own on this system."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(take_own_directory).result()


@contextmanager
def working_directory(path: Path) -> Iterator[None]:
    """Stand in a folder; waits for other runs where the thread has no directory of its own."""
    if take_own_directory():
        with _standing_in(path):
            yield
    else:
        with _process_directory, _standing_in(path):
            yield


@contextmanager
def _standing_in(path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def _unshared() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None, use_errno=True).unshare(_CLONE_FS) == 0)
    except (OSError, AttributeError):
        return False
