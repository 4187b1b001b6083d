"""`tooleval schema`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import jsonschema
import pytest

from pytest_tooleval.cases.schema import SCHEMA_NAMES, schema_text

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_the_published_text_is_printed(tooleval: Run, name: str) -> None:
    finished = tooleval("schema", name)

    assert finished.returncode == 0
    assert finished.stderr == ""
    assert finished.stdout == schema_text(name)
    jsonschema.Draft202012Validator.check_schema(json.loads(finished.stdout))
