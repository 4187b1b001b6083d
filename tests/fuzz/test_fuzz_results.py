from __future__ import annotations

import contextlib
import io
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fuzzing import ODD_VALUES, check_told, fuzzed, in_time, mutations, spoilt_texts
from hypothesis import given
from hypothesis import strategies as st
from parts import case, gate, run_document
from run_logs import JSON_TEXT, fingerprint, header, key, write
from sample_result import sample_result

from pytest_tooleval.cli import main as cli
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.measures.outcome import CaseOutcome
from pytest_tooleval.reports.comparison import compare, comparison_section, regressed_by_corpus
from pytest_tooleval.reports.comparison_summary import comparison_blocks
from pytest_tooleval.reports.result_reader import read_result
from pytest_tooleval.reports.resume import Rerun, Resumed
from pytest_tooleval.reports.run_log_reader import logged_runs, remove_old_runs
from pytest_tooleval.reports.scoreboard import scoreboard
from pytest_tooleval.reports.tables import rendered

EVERY = [case("a1"), case("a2", "missed"), case("b3", "error"), case("c4", "skipped")]
PARTS = [
    run_document(EVERY, EVERY[:2], [gate(), gate("accuracy", 0.9)], defer=True),
    run_document(EVERY, EVERY[2:], [gate(), gate("accuracy", 0.9)], defer=True),
]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result file of a run of every family."""
    return sample_result(tmp_path_factory.mktemp("sample"))


def written(folder: Path, value: Any, name: str = "r.json") -> Path:
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


@fuzzed(50)
@given(data=st.data())
def test_any_result_file_is_reported_and_compared_or_refused(
    whole: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    value = data.draw(mutations(st.just(whole)))
    path = written(tmp_path_factory.getbasetemp(), value)
    with in_time():
        try:
            document = read_result(path)
        except ConfigError as error:
            check_told(error)
            return
        assert scoreboard(document).strip()
        for before, now in ((document, whole), (whole, document)):
            found = compare(before, now)
            regressed_by_corpus(found)
            json.dumps(comparison_section(found, before, "b.json"), allow_nan=False)
            assert isinstance(rendered(comparison_blocks(found), 80, color=False), str)


@fuzzed(30)
@given(data=st.data())
def test_a_spoilt_result_file_is_refused_or_read(
    whole: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = written(tmp_path_factory.getbasetemp(), data.draw(spoilt_texts(st.just(whole))))
    with in_time(), contextlib.suppress(ConfigError):
        scoreboard(read_result(path))


def run_command(*arguments: object) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = cli.main([str(argument) for argument in arguments])
    return code, said.getvalue()


@fuzzed(50)
@given(mutations(st.just(PARTS[0])), mutations(st.just(PARTS[1])))
def test_any_parts_are_merged_or_refused(tmp_path_factory: pytest.TempPathFactory, one: Any, other: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    paths = [written(folder, one, "one.json"), written(folder, other, "other.json")]
    with in_time():
        code, said = run_command("merge", *paths, "-o", folder / "merged.json")
    assert code in (0, 1, 2)
    assert "Traceback" not in said
    assert said.strip()
    if code < 2:
        json.loads((folder / "merged.json").read_text())


def resumed(folder: Path, lines: list[bytes]) -> None:
    """Resume a run whose log has these lines."""
    shutil.rmtree(folder, ignore_errors=True)
    path = write(folder, header(), "a", "b")
    path.write_bytes(b"\n".join(lines) + b"\n")
    with in_time():
        for run in logged_runs(folder):
            assert run.files
        found = Resumed.last_run(folder, header(1), JSON_TEXT)
        assert found.header(header(2)).run
        for case_id in ("a", "b", "c"):
            taken = found.take(key(case_id), fingerprint())
            assert taken is None or isinstance(taken, CaseOutcome | Rerun)
        assert found.counts.summary
        found.close()
        remove_old_runs(folder)


@pytest.fixture(scope="module")
def log_lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return write(tmp_path_factory.mktemp("log"), header(), "a", "b").read_bytes().splitlines()


@fuzzed(50)
@given(data=st.data())
def test_any_log_is_resumed_or_left_alone(
    log_lines: list[bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = list(log_lines)
    at = data.draw(st.integers(0, len(lines) - 1))
    value = json.loads(lines[at])
    changed = mutations(st.just(value)).map(json.dumps).map(str.encode)
    lines[at] = data.draw(
        changed | spoilt_texts(st.just(value)) | st.binary(max_size=30) | ODD_VALUES.map(json.dumps).map(str.encode)
    )
    resumed(tmp_path_factory.getbasetemp() / f"fuzz-log-{next(NUMBERS) % 50}", lines)


@fuzzed(30)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([b'{"key": ', b', "shared": "', b'{"shared": ', b"\n", b"[" * 5000])
    )
)
def test_a_log_of_anything_is_left_alone(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    resumed(tmp_path_factory.getbasetemp() / f"fuzz-log-{next(NUMBERS) % 50}", [b"".join(pieces)])
