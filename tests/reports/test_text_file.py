"""Files that are written whole or not at all, wherever the path leads."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tooleval.reports.text_file import why_unwritable, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_on_a_full_disk_the_old_file_stays(small_disk: Path) -> None:
    path = small_disk / "r.json"
    write_text(path, "old")
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(path, "x" * 100_000)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == "old"
    assert names(small_disk) == ["r.json"]


def test_a_read_only_disk_is_known_before_the_run(small_disk: Path) -> None:
    path = small_disk / "new" / "r.json"
    assert why_unwritable(path) == ""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert why_unwritable(path) == "Read-only file system"
    with pytest.raises(OSError, match="Read-only file system"):
        write_text(path, "x")


def test_a_link_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "kept" / "r.json"
    target.parent.mkdir()
    link = tmp_path / "r.json"
    link.symlink_to(target)
    write_text(link, "first")
    write_text(link, "second")
    assert link.is_symlink()
    assert target.read_text() == "second"
    assert names(target.parent) == ["r.json"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "half \udc80\n")
    reader.join()
    assert read == ["half \\udc80\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "full"
    try:
        os.mknod(
            device, stat.S_IFCHR | 0o600, os.makedev(1, 7)
        )  # what /dev/full is: not that one, should this fail
        device.open("w").close()
    except PermissionError:
        pytest.skip("no device can be made here")
    with pytest.raises(OSError, match="No space left"):
        write_text(device, "x")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names(tmp_path) == ["full"]


def test_any_name_that_a_file_may_have_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_text(path, "x")
    assert path.read_text() == "x"


def test_what_surely_cannot_be_written_is_known_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to("gone/r.json")
    assert why_unwritable(tmp_path / "taken") == ""
    assert why_unwritable(tmp_path / "a" / "b" / "r.json") == ""
    assert why_unwritable(tmp_path / "nowhere") == ""
    assert why_unwritable(tmp_path / "taken" / "r.json") == "Not a directory"
    assert why_unwritable(tmp_path / "folder") == "Is a directory"
    assert why_unwritable(Path("/dev/null")) == ""
    assert names(tmp_path) == ["folder", "nowhere", "taken"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_known_before_the_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert why_unwritable(tmp_path / "r.json") == "Permission denied"
    with pytest.raises(OSError, match="Permission denied"):
        write_text(tmp_path / "r.json", "x")
