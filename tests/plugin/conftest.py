"""Suites written by tests, run by a real pytest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suite_writer import SuiteWriter


@pytest.fixture
def suite(pytester: pytest.Pytester) -> SuiteWriter:
    return SuiteWriter(pytester)


@pytest.fixture
def case_ids(pytester: pytest.Pytester) -> Callable[..., list[str]]:
    """Return the node ids that pytest collects."""

    def collect(*arguments: str) -> list[str]:
        result = pytester.runpytest_inprocess("-p", "no:randomly", "--collect-only", "-q", *arguments)
        return [line for line in result.outlines if "::" in line]

    return collect
