from __future__ import annotations

import pytest
from suite_writer import SuiteWriter


@pytest.fixture
def suite(pytester: pytest.Pytester) -> SuiteWriter:
    return SuiteWriter(pytester)
