"""Which files in a folder of cases hold cases."""

from __future__ import annotations

import os
from pathlib import Path


def case_files(folder: Path, suffix: str) -> list[Path]:
    """Return the case files below a folder, sorted; schemas and hidden files are none, links are not entered."""
    found = []
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if is_case_file(name, suffix)]
    return sorted(found)


def is_case_file(name: str, suffix: str) -> bool:
    """Whether a file of this name in a folder of cases holds cases."""
    return name.endswith(suffix) and not name.endswith(".schema.json") and not name.startswith(".")
