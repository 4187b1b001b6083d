from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_tooleval.agent.directory import take_own_directory, threads_can_have_own, working_directory


def test_the_main_thread_keeps_the_processs_directory() -> None:
    assert threading.current_thread() is threading.main_thread()
    assert take_own_directory() is False


def test_the_main_thread_stands_in_a_folder_and_comes_back(tmp_path: Path) -> None:
    before = Path.cwd()
    with working_directory(tmp_path):
        assert Path.cwd() == tmp_path.resolve()
    assert Path.cwd() == before


def test_threads_stand_in_folders_of_their_own_at_the_same_time(tmp_path: Path) -> None:
    if not threads_can_have_own():
        pytest.skip("this system gives threads no working directory of their own")
    both_are_there = threading.Barrier(2, timeout=10)

    def stand_in(folder: Path) -> str:
        folder.mkdir()
        with working_directory(folder):
            both_are_there.wait()
            return os.path.realpath(".")

    before = Path.cwd()
    folders = [tmp_path / "a", tmp_path / "b"]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(stand_in, folders)) == [os.path.realpath(folder) for folder in folders]
    assert Path.cwd() == before


def test_a_failure_leads_back_too(tmp_path: Path) -> None:
    before = Path.cwd()
    with pytest.raises(KeyError), working_directory(tmp_path):
        raise KeyError
    assert Path.cwd() == before
