"""What the installed plugin costs a run that uses nothing of it: CPU with it over CPU with `-p no:tooleval`."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 20


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    """Run pytest on one trivial test; return user and system seconds of the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the median ratio of alternating pairs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_trivial.py").write_text("def test_it():\n    pass\n")
        cpu_seconds([], folder)
        pairs = [(cpu_seconds([], folder), cpu_seconds(["-p", "no:tooleval"], folder)) for _ in range(ROUNDS)]
    ratios = sorted(with_it / without for with_it, without in pairs)
    print(f"with {median(w for w, _ in pairs):.3f} s, without {median(o for _, o in pairs):.3f} s")
    print(f"ratio {median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f}, {ROUNDS} alternating pairs)")


if __name__ == "__main__":
    main()
