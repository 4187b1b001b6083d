"""Cases over a server of which one request in five fails: none may be lost, none scored as the model's failure."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from fault_server import FILES, TOOL, FaultServer, every, serving_faults

REQUEST_TIMEOUT = 2.0


def write(root: Path, cases: int) -> None:
    """Write a suite of cases that the server's model passes."""
    (root / "pytest.ini").write_text("[pytest]\n")
    folder = root / "evals" / "fixtures"
    folder.mkdir(parents=True)
    for number in range(cases):
        fixture = {"task": f"Read notes.txt, please ({number}).", "files": FILES, "expected": [TOOL]}
        (folder / f"case-{number}.json").write_text(json.dumps(fixture))


def run(root: Path, server: FaultServer, retries: int) -> tuple[list[dict[str, Any]], float]:
    """Run pytest on the suite; return the cases of its result file and the seconds that it took."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "evals",
        "--provider", "openai:faulty", "--provider-url", server.url, "--tooleval-json", "result.json",
        "--tooleval-request-timeout", str(REQUEST_TIMEOUT), "--tooleval-retries", str(retries),
    ]  # fmt: skip
    started = time.perf_counter()
    subprocess.run(command, cwd=root, check=False, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    document = json.loads((root / "result.json").read_text())
    found: list[dict[str, Any]] = document["toolUse"]["cases"]
    return found, seconds


def findings(found: list[dict[str, Any]], expected: int, requests: int) -> list[str]:
    """Return what is wrong with a run, one line each."""
    lost = {f"case-{number}" for number in range(expected)} ^ {case["id"] for case in found}
    ended = [case for case in found if case["status"] in {"ok", "truncated"}]
    attempts = sum(case["attempts"] for case in found)
    checks = {
        f"lost or invented: {sorted(lost)[:5]}": bool(lost),
        f"reported more than once: {len(found) - expected}": len(found) > expected,
        "scored as the model's failure": any(not case["pass"] for case in ended),
        "an error without a reason": any(not case["detail"] for case in found if case not in ended),
        f"{attempts} attempts reported, {requests} requests counted": attempts != requests,
    }
    return [text for text, is_wrong in checks.items() if is_wrong]


def main() -> int:
    """Print how the cases ended and what the server counted; return 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--nth", type=int, default=5, help="every which request fails")
    parser.add_argument("--retries", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serving_faults(every(options.nth), retry_after=0.2) as server:
        root = Path(name)
        write(root, options.cases)
        found, seconds = run(root, server, options.retries)
        requests, faults = server.requests, server.faults.copy()
    print(f"{options.cases} cases in {seconds:.0f} s; {requests} requests, {sum(faults.values())} of them failed:")
    for fault, count in faults.most_common():
        print(f"  {count:4d}  {fault.value}")
    print("statuses:", dict(Counter(case["status"] for case in found)))
    for reason, count in Counter(case["detail"] for case in found if case["status"] == "error").most_common(5):
        print(f"  {count:4d}  {reason}")
    attempts = Counter(case["attempts"] for case in found)
    print("attempts a case:", dict(sorted(attempts.items())), "in all:", sum(case["attempts"] for case in found))
    wrong = findings(found, options.cases, requests)
    print("\n".join(wrong) or "every case measured or an ERROR with its reason, every attempt counted")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
