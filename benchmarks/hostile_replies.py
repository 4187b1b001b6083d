"""Replies that a hostile model server may send, at full size: 100,000 calls, 50 MB of arguments, any nesting."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from chat_samples import chat_answer
from hostile_replies import hostile_replies
from loopback import Asked, LoopbackServer, Scripted, as_json, serving_with
from terminal_output import is_control

RUN = """
import sys, pytest
code = pytest.main(sys.argv[1:])
peak = next((line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")), "0")
print("peak KiB", peak, file=sys.stderr)
sys.exit(code)
"""
UNWANTED = ("INTERNALERROR", "Traceback", "/pytest_tooleval/")


class Hostile(LoopbackServer):
    """Answers the first request with a body, and all others with a plain text."""

    def __init__(self, body: bytes) -> None:
        super().__init__([])
        self.body = body

    def next_answer(self, asked: Asked) -> Scripted:
        """Return the next answer."""
        if any(message["role"] == "assistant" for message in asked.body["messages"]):
            return as_json(chat_answer({"content": "done"}))
        return Scripted(body=self.body, headers={"Content-Type": "application/json"})


def run(body: bytes) -> dict[str, Any]:
    """Run one case against a server that sends this body; return what it took and what was said."""
    with tempfile.TemporaryDirectory() as name, serving_with(Hostile(body)) as server:
        root = Path(name)
        folder = root / "evals" / "fixtures"
        folder.mkdir(parents=True)
        (root / "pytest.ini").write_text("[pytest]\n")
        (folder / "case.json").write_text(json.dumps({"task": "Look.", "expected": ["glob"]}))
        command = [sys.executable, "-c", RUN, "-p", "no:randomly", "-rA", "--tooleval-json", "r.json"]
        command += ["--provider", "openai:hostile", "--provider-url", server.url, "--tooleval-retries", "0"]
        started = time.perf_counter()
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
        seconds = time.perf_counter() - started
        said = done.stdout.decode("utf-8", "replace")
        errors = done.stderr.decode("utf-8", "replace")
        result = root / "r.json"
        return {
            "seconds": seconds,
            "peak": int(errors.rpartition("peak KiB")[2] or 0) // 1024,
            "output": len(said),
            "result": result.stat().st_size if result.exists() else None,
            "wrong": [word for word in UNWANTED if word in said + errors] + sorted(set(filter(is_control, said))),
            "code": done.returncode,
        }


def main() -> int:
    """Print a line for each body; return 1 when a run broke or its output is not clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("names", nargs="*", help="only these bodies")
    options = parser.parse_args()
    failed = False
    print(f"{'body':22} {'MB':>6} {'s':>6} {'peak MiB':>8} {'output':>8} {'result':>10}")
    for name, make in hostile_replies(options.size).items():
        if options.names and name not in options.names:
            continue
        text = make()
        body = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        found = run(body)
        is_wrong = bool(found["wrong"]) or found["result"] is None or found["code"] != 1
        failed |= is_wrong
        print(
            f"{name:22} {len(body) / 1e6:6.1f} {found['seconds']:6.1f} {found['peak']:8d} {found['output']:8d}"
            f" {found['result'] or 0:10d} {'WRONG: ' + str(found['wrong']) if is_wrong else ''}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
