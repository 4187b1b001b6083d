"""Limits of time are measured by a clock that nobody sets: the time of day is asked for dates only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "pytest_tooleval"
DATES_ONLY = {
    "controller.py": "the name of a snapshot",
    "gate_reports.py": "when a gate was evaluated, for reports",
    "providers/http.py": "dates in Retry-After",
    "reports/result_file.py": "generatedAt",
    "session.py": "the id of a run",
}
TIME_OF_DAY = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
}


def askers() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        if any(map(asks, ast.walk(ast.parse(path.read_text())))):
            yield path.relative_to(PACKAGE).as_posix()


def asks(node: ast.AST) -> bool:
    is_member = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return is_member and (node.value.id, node.attr) in TIME_OF_DAY


def test_the_time_of_day_decides_about_nothing() -> None:
    assert set(askers()) == set(DATES_ONLY)
