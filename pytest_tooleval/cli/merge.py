"""`tooleval merge`: the result files of the parts of a run as one."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tooleval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_tooleval.reports.merge import Baseline, Merged, Part

PASSED, FAILED = 0, 1
MOST_FAILURES = 50


def run(arguments: Sequence[str]) -> int:
    """Put the files together, print the summary; 1 when the verdict is fail or the file could not be written.

    Raises:
        ToolevalError: they cannot be put together.

    """
    from pytest_tooleval.reports.merge import merge, read_part
    from pytest_tooleval.reports.result_file import write_result
    from pytest_tooleval.reports.text_file import why_not_written

    given = _parse(arguments)
    parts = [read_part(path) for path in given.parts]
    merged = merge(parts, _baseline(given.baseline, parts), partial=given.partial)
    for line in _summary(merged):
        print(line)
    if given.output is not None:
        try:
            write_result(given.output, merged.document)
        except OSError as error:
            print(f"tooleval merge: {given.output} cannot be written: {why_not_written(error)}", file=sys.stderr)
            return FAILED
        print(f"result file: {given.output}")
    return PASSED if merged.result.passed else FAILED


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tooleval merge",
        description="Put the result files of the parts of one run together: metrics, gates and comparison anew.",
        epilog="Example: tooleval merge part-1.json part-2.json -o results.json",
        allow_abbrev=False,
    )
    parser.add_argument("parts", nargs="+", type=Path, metavar="PART", help="a file of --tooleval-json")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the result file of the whole run")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="compare with this one (default: what the parts named)"
    )
    parser.add_argument(
        "--partial", action="store_true", help="the parts are not meant to cover everything; fail for no lack"
    )
    return parser.parse_args(arguments)


def _baseline(named: Path | None, parts: Sequence[Part]) -> Baseline | None:
    """Read the baseline that is named, or that the parts were compared with.

    Raises:
        ConfigError: it cannot be read, or is not the one that they were compared with.

    """
    from pytest_tooleval.reports.merge import Baseline, baseline_of
    from pytest_tooleval.reports.result_reader import read_result

    if named is not None:
        return Baseline(named.as_posix(), read_result(named))
    known = baseline_of(parts)
    if known is None:
        return None
    file, time = known
    try:
        document = read_result(Path(file))
    except ConfigError as error:
        raise ConfigError(f"the parts were compared with a baseline: {error}; or name it with --baseline") from None
    if document["generatedAt"] != time:
        raise ConfigError(f"{file} is not the baseline that the parts were compared with; name it with --baseline")
    return Baseline(file, document)


def _summary(merged: Merged) -> Iterator[str]:
    """Yield what a run prints at its end."""
    from pytest_tooleval.reports.terminal import summary_title, terminal_summary

    width = shutil.get_terminal_size().columns
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    result = merged.result
    if result.measurements:
        yield _headline(summary_title(result), width)
        yield terminal_summary(result, width, color=color).rstrip("\n")
    yield from _comparison(merged, width, color=color)
    failures = list(_failures(merged))
    yield from failures[:MOST_FAILURES]
    if len(failures) > MOST_FAILURES:
        yield f"and {len(failures) - MOST_FAILURES} more"
    if result.interrupted:
        yield "a part was interrupted"
    if result.not_whole:
        yield f"{result.not_whole} are in these files; a part is missing, or --partial says that none is"
    yield f"verdict: {'pass' if result.passed else 'fail'}"


def _comparison(merged: Merged, width: int, *, color: bool) -> Iterator[str]:
    if merged.comparison is None:
        return
    from pytest_tooleval.reports.comparison_summary import comparison_blocks
    from pytest_tooleval.reports.tables import rendered

    yield _headline(f"compared with {merged.document['comparison']['baseline']['file']}", width)
    yield rendered(comparison_blocks(merged.comparison), width, color=color).rstrip("\n")


def _headline(title: str, width: int) -> str:
    return f" {title} ".center(width, "=")


def _failures(merged: Merged) -> Iterable[str]:
    """Yield a line for each gate and case that makes the run fail, as pytest words it."""
    from pytest_tooleval.measures.text import printable

    for gate in merged.result.gates:
        if gate.failed:
            yield printable(f"FAILED {gate.planned.gate.file}::{gate.planned.name} - {gate.detail}")
    for measurement in merged.result.measurements:
        if measurement.verdict == "error":
            yield printable(f"ERROR {measurement.nodeid} - {measurement.reason}")
        elif measurement.verdict == "missed" and not measurement.deferred:
            yield printable(f"FAILED {measurement.nodeid} - {measurement.reason}")
