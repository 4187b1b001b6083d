"""The watchdog, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_tooleval.tools.watchdog import Watchdog, watch

VARIABLE = "TOOLEVAL_WATCHDOG_TEST"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a child that sleeps, or one that does so and ignores SIGTERM."""
    children: list[subprocess.Popen[bytes]] = []

    def started(token: str = "", *, deaf: bool = False) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", "-c", DEAF] if deaf else ["sleep", "60"]
        environment = {"PATH": os.environ["PATH"], **({VARIABLE: token} if token else {})}
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        children.append(child)
        if deaf and child.stdout:
            child.stdout.readline()
        return child

    yield started
    for child in children:
        child.kill()
        child.communicate()


def guarding(*guarded: tuple[str, int]) -> list[str]:
    return [f"+ {token} {pid}\n" for token, pid in guarded]


@pytest.mark.parametrize(("deaf", "signal"), [(False, -15), (True, -9)])
def test_a_child_that_goes_on_is_ended(start: Start, *, deaf: bool, signal: int) -> None:
    child = start("a", deaf=deaf)
    watch(VARIABLE, 0.1, guarding(("a", child.pid)))
    assert child.wait(5) == signal


def test_what_a_child_started_is_ended_too(start: Start) -> None:
    child = start("a")
    other = start("a", deaf=True)
    watch(VARIABLE, 0.1, guarding(("a", child.pid)))
    assert other.wait(5) == -9


def test_others_are_left_alone(start: Start) -> None:
    ended, released, unmarked, other = start("a"), start("b"), start(), start("c")
    watch(VARIABLE, 0.1, [*guarding(("a", ended.pid), ("b", released.pid)), "- b\n"])
    assert ended.wait(5) == -15
    assert [child.poll() for child in (released, unmarked, other)] == [None, None, None]


def test_a_child_that_ends_by_itself_costs_no_more_time_than_it_takes(start: Start) -> None:
    child = start("a")
    child.terminate()
    child.wait()
    started = time.monotonic()
    watch(VARIABLE, 5.0, guarding(("a", child.pid)))
    assert time.monotonic() - started < 2


def test_lines_that_say_nothing_are_passed_over() -> None:
    watch(VARIABLE, 5.0, ["\n", "+ a\n", "- unknown\n", "?\n"])


def test_it_ends_children_when_its_owner_is_killed(start: Start) -> None:
    child = start("k", deaf=True)
    owner = (
        "import os, sys; from pytest_tooleval.tools.watchdog import Watchdog;"
        f"Watchdog({VARIABLE!r}, 0.1).guard(int(sys.argv[1]), 'k'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", owner, str(child.pid)], check=False)
    assert child.wait(5) == -9


def test_closed_it_leaves_children_alone_and_is_gone(start: Start) -> None:
    child = start("a")
    watchdog = Watchdog(VARIABLE, 0.1)
    watchdog.close()
    watchdog.guard(child.pid, "a")
    process = watchdog._process
    assert process is not None
    assert process.poll() is None
    watchdog.close()
    watchdog.release("a")
    assert process.poll() == -9
    time.sleep(0.3)
    assert child.poll() is None
