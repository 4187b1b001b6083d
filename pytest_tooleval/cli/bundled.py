"""`tooleval bundled`: the fixtures that come with the package, run in any folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_HELP = """\
usage: tooleval bundled [PYTEST ARGUMENTS...]

Run the fixtures that come with the package, without a suite of your own.
Every argument goes to pytest; 'pytest --help' lists them.

examples:
  tooleval bundled                             play the fixtures' scripts: no model, no key
  tooleval bundled --provider openai:MODEL     measure a model
  tooleval bundled -k grep --tooleval-json results.json
"""
# This process has imported the package before pytest could rewrite its asserts, of which it has none.
_SETTINGS = """\
[pytest]
tooleval_bundled = true
filterwarnings =
    ignore::pytest.PytestAssertRewriteWarning
"""


def run(arguments: Sequence[str]) -> int:
    """Run pytest on an empty suite in a temporary folder, and return its exit code."""
    if arguments and arguments[0] in {"-h", "--help"}:
        print(_HELP, end="")
        return 0
    with TemporaryDirectory(prefix="tooleval-bundled-") as folder:
        return _run_pytest(_empty_suite(Path(folder).resolve()), arguments)


def _empty_suite(root: Path) -> Path:
    """Make a suite without cases; pytest keeps its cache beside it."""
    (root / "pytest.ini").write_text(_SETTINGS, encoding="utf-8")
    suite = root / "evals"
    suite.mkdir()
    return suite


def _run_pytest(suite: Path, arguments: Sequence[str]) -> int:
    import pytest

    root = suite.parent
    settings = ["-p", "tooleval", "-c", os.fspath(root / "pytest.ini"), "--rootdir", os.fspath(root)]
    return int(pytest.main([*settings, os.fspath(suite), *arguments]))
