from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from cassette_samples import EVERYTHING

from pytest_tooleval.errors import ProviderError
from pytest_tooleval.providers.cassette import Cassette, cassette_text
from pytest_tooleval.providers.cassette_file import CassetteFile

SHOWN = Path("evals/cassettes/openai__m/c.json")


@pytest.fixture
def file(tmp_path: Path) -> CassetteFile:
    return CassetteFile(tmp_path / "cassettes" / "openai__m" / "c.json", SHOWN)


def write(file: CassetteFile, content: str | bytes) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_what_is_written_is_read(file: CassetteFile) -> None:
    assert file.read() is None
    file.make_folder()
    file.write(EVERYTHING)
    assert file.read() == EVERYTHING
    assert file.path.read_text(encoding="utf-8") == cassette_text(EVERYTHING)
    assert file.path.stat().st_mode & 0o777 == 0o644
    assert list(file.path.parent.iterdir()) == [file.path]


def test_a_byte_order_mark_and_other_line_ends_do_not_matter(file: CassetteFile) -> None:
    write(file, "\ufeff" + cassette_text(EVERYTHING).replace("\n", "\r\n"))
    assert file.read() == EVERYTHING


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"format": "tooleval-cassette/v0"}',
            'at /format: is a cassette of another version: "tooleval-cassette/v0"',
        ),
        ("{", f"{SHOWN}:1: is not JSON"),
        (b"\xff\xfe", f"{SHOWN}: is not UTF-8 text"),
        ("", f"{SHOWN}:1: is empty"),
    ],
)
def test_a_broken_file_is_a_provider_error_that_says_what_to_do(
    file: CassetteFile, content: str | bytes, message: str
) -> None:
    write(file, content)
    with pytest.raises(ProviderError) as failed:
        file.read()
    assert message in str(failed.value)
    assert str(failed.value).endswith("; --tooleval-record records it anew")
    assert not failed.value.transient


def test_a_folder_or_a_pipe_in_its_place_is_no_file(file: CassetteFile) -> None:
    file.path.mkdir(parents=True)
    with pytest.raises(ProviderError, match=r"c\.json: is no regular file"):
        file.read()
    with pytest.raises(ProviderError, match=f"the cassette {SHOWN} cannot be written: Is a directory"):
        file.write(EVERYTHING)
    file.path.rmdir()
    os.mkfifo(file.path)
    with pytest.raises(ProviderError, match=r"c\.json: is no regular file"):
        file.read()


def test_a_file_in_the_folders_place_is_named(file: CassetteFile) -> None:
    write(CassetteFile(file.path.parent, SHOWN), "x")
    with pytest.raises(ProviderError, match=f"the cassette {SHOWN} cannot be read: Not a directory"):
        file.read()
    with pytest.raises(ProviderError, match=f"the cassette {SHOWN} cannot be written: "):
        file.make_folder()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_named(file: CassetteFile) -> None:
    file.make_folder()
    file.path.parent.chmod(0o500)
    try:
        with pytest.raises(ProviderError, match=f"the cassette {SHOWN} cannot be written: its folder is read-only"):
            file.make_folder()
        with pytest.raises(ProviderError, match="cannot be written: Permission denied"):
            file.write(EVERYTHING)
    finally:
        file.path.parent.chmod(0o700)


def test_what_cannot_be_written_leaves_the_old_file(file: CassetteFile) -> None:
    write(file, "old")
    broken = Cassette(EVERYTHING.label, (None,))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        file.write(broken)
    assert file.path.read_text() == "old"
    assert list(file.path.parent.iterdir()) == [file.path]


def test_a_reader_never_finds_a_part(file: CassetteFile) -> None:
    file.make_folder()
    file.write(EVERYTHING)
    writer = threading.Thread(target=lambda: [file.write(EVERYTHING) for _ in range(200)])
    writer.start()
    while writer.is_alive():
        assert file.read() == EVERYTHING
    writer.join()
