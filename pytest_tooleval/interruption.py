"""Signals that end a process, made to end a run in good order: folders removed, commands ended, results written."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_ENDING = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP interrupt like Ctrl-C, where nobody else handles them and this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Make the first signal of any kind interrupt a worker process, and those that follow do nothing.

    A worker may be told twice, by the terminal and by the controller, and the second word must not break its
    tidying up. The handlers stay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = False

    def interrupt_once(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            _interrupt(number, frame)

    for number in (signal.SIGINT, *_ENDING):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt_once)
    try:
        yield
    finally:
        told = True


def interrupt_processes(pids: Iterable[int]) -> None:
    """Tell worker processes of this machine to end now: xdist by itself gives them five seconds."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")
