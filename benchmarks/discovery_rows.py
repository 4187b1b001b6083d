"""Discovery rows as pytest items over the same number of bare parametrised tests, collect and run, in CPU time."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from statistics import median

from scripted_cases import cpu_seconds

BARE = """
import pytest

@pytest.mark.parametrize("number", range({rows}))
def test_bare(number):
    pass
"""
STARTS = ("ka", "lo", "mi", "nu", "pe", "ra", "so", "tu")
WORDS = [start + end for start in STARTS for end in ("bal", "den", "fir", "gum", "hel")]


def write(root: Path, tools: int, rows: int) -> tuple[Path, Path]:
    """Write a corpus and a test module; return their folders."""
    chance = random.Random(7)
    (root / "pytest.ini").write_text("[pytest]\n")
    described = [" ".join(chance.choices(WORDS, k=12)) for _ in range(tools)]
    catalog = {
        "version": 1,
        "servers": [{"id": "s", "status": "online"}],
        "tools": [
            {"toolRef": f"s.tool_{number}", "serverId": "s", "name": f"tool_{number}", "description": text}
            for number, text in enumerate(described)
        ],
    }
    ours, bare = root / "evals", root / "bare"
    for folder in (ours / "catalog", ours / "discovery", bare):
        folder.mkdir(parents=True)
    (ours / "catalog" / "world.json").write_text(json.dumps(catalog))
    with (ours / "discovery" / "rows.jsonl").open("w") as file:
        for _ in range(rows):
            number = chance.randrange(tools)
            intent = " ".join(chance.sample(described[number].split(), 5))
            row = {"intent": intent, "category": "lexical", "acceptable": [f"s.tool_{number}"], "rationale": "made"}
            file.write(json.dumps({**row, "k": tools}) + "\n")
    (bare / "test_bare.py").write_text(BARE.format(rows=rows))
    return ours, bare


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_614)
    parser.add_argument("--tools", type=int, default=199)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ours, bare = write(root, options.tools, options.rows)
        base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        mine = [*base, str(ours / "discovery")]
        pairs = [(cpu_seconds(mine, root), cpu_seconds([*base, str(bare)], root)) for _ in range(options.rounds)]
    ratio = median(a / b for a, b in pairs)
    print(f"{options.rows} rows: ours {median(a for a, _ in pairs):.1f} s CPU, ratio {ratio:.2f} (at most 1.1)")


if __name__ == "__main__":
    main()
