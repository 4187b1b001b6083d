"""`tooleval report`: the scoreboard of a snapshot, without a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMATS = ("markdown", "json")


def run(arguments: Sequence[str]) -> int:
    """Print or write the scoreboard; 1 when it could not be written.

    Raises:
        ToolevalError: the snapshot cannot be used.

    """
    from pytest_tooleval.reports.result_reader import read_result
    from pytest_tooleval.reports.text_file import why_not_written, write_text

    given = _parse(arguments)
    text = _writer(given.format)(read_result(given.snapshot))
    if given.output is None:
        print(text, end="")
        return 0
    try:
        write_text(given.output, text)
    except OSError as error:
        print(f"tooleval report: {given.output} cannot be written: {why_not_written(error)}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tooleval report",
        description="Make the scoreboard of a snapshot or result file, without running anything.",
        epilog="Example: tooleval report evals/snapshots/baseline.json -o evals/BENCHMARKS.md",
        allow_abbrev=False,
    )
    parser.add_argument("snapshot", type=Path, metavar="SNAPSHOT", help="a snapshot or result file")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to (default: print it)")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="markdown, or json: the numbers without the records of single cases",
    )
    return parser.parse_args(arguments)


def _writer(name: str) -> Callable[[Mapping[str, Any]], str]:
    if name == "json":
        from pytest_tooleval.reports.result_file import json_text
        from pytest_tooleval.reports.scoreboard import without_cases

        return lambda document: json_text(without_cases(document))
    from pytest_tooleval.reports.scoreboard import scoreboard

    return scoreboard
