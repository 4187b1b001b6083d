from __future__ import annotations

from pytest_tooleval.broker.lint import Finding
from pytest_tooleval.reports.lint_section import lint_lines


def test_no_finding_is_no_line() -> None:
    assert list(lint_lines("evals/catalog", [])) == []


def test_counts_and_first_tools() -> None:
    found = [Finding("schema-invalid", f"s.t{number}", "", "") for number in range(5)]
    found.append(Finding("description-missing", "s.t0", "", ""))
    assert list(lint_lines("evals/catalog", found)) == [
        "lint: 6 findings in 5 tools; 'tooleval lint evals/catalog' says what to do",
        "lint: description-missing: s.t0",
        "lint: schema-invalid: s.t0, s.t1, s.t2 and 2 more",
    ]
