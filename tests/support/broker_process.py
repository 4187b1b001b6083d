"""`tooleval broker` as a process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def command(catalog: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "pytest_tooleval.cli.main", "broker", "--catalog", str(catalog), *more]


@contextmanager
def listening(catalog: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server on a free port, and give the process and its URL."""
    process = subprocess.Popen(command(catalog, "--http", "0", *more), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                yield process, found[1]
                break
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
