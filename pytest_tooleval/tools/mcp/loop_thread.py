"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines for the threads that hand them over; the thread is a daemon and keeps no process alive."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine; the future of one that comes too late is cancelled."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            late: Future[Result] = Future()
            late.cancel()
            return late

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the loop's thread, unless it is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def close(self, seconds: float) -> None:
        """Stop the loop; what still runs in it is cancelled. A loop that does not stop in time is left behind."""
        stopping = self.submit(_cancel_others())
        with contextlib.suppress(TimeoutError):
            stopping.result(seconds)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(seconds)
        if not self._thread.is_alive():
            self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
