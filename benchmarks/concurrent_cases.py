"""Cases of two calls to a server that answers after 200 ms, against the ideal wall time and a bare client loop."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import httpx

CALL = {"id": "c1", "type": "function", "function": {"name": "file_read", "arguments": '{"path": "notes.txt"}'}}
CALLS_A_CASE = 2


class SlowModel(BaseHTTPRequestHandler):
    """Answers a first request with a call of file_read and a second one with text, each after a delay."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits for the client's delayed ACK of the headers: 40 ms more
    delay = 0.2
    bodies: ClassVar[list[Any]] = []
    guard = threading.Lock()

    def do_POST(self) -> None:
        """Answer after the delay."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.guard:
            self.bodies.append(body)
        time.sleep(self.delay)
        answered = any(message["role"] == "tool" for message in body["messages"])
        message = {"content": "It holds one line."} if answered else {"content": None, "tool_calls": [CALL]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        text = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: clients may be killed."""


def serve(delay: float) -> None:
    """Serve in this process until stdin ends; tell the port, then at each line the requests since the last one."""
    SlowModel.delay = delay
    server = Server(("127.0.0.1", 0), SlowModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for _ in sys.stdin:
        print(json.dumps(SlowModel.bodies), flush=True)
        SlowModel.bodies.clear()


class ServerProcess:
    """The server in a process of its own, so that its CPU is nobody else's."""

    def __init__(self, delay: float) -> None:
        command = [sys.executable, __file__, "--serve", str(delay)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self._line()}/v1"

    def _line(self) -> str:
        if self._process.stdout is None:
            raise RuntimeError("the server has no stdout")
        return self._process.stdout.readline().strip()

    def asked(self) -> list[Any]:
        """Return the bodies of the requests that came since the last time."""
        if self._process.stdin is None:
            raise RuntimeError("the server has no stdin")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        bodies: list[Any] = json.loads(self._line())
        return bodies

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


def write_suite(root: Path, cases: int) -> None:
    """Write fixtures of one demanded call."""
    (root / "pytest.ini").write_text("[pytest]\n")
    folder = root / "evals" / "fixtures"
    folder.mkdir(parents=True)
    fixture = {"task": "Read notes.txt.", "files": {"notes.txt": "one line\n"}, "expected": ["file_read"]}
    fixtures = [{**fixture, "id": f"case-{number}"} for number in range(cases)]
    (folder / "cases.json").write_text(json.dumps(fixtures))


def child_cpu() -> float:
    """Return user and system seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_pytest(root: Path, url: str, concurrency: int) -> tuple[float, float]:
    """Return wall and CPU seconds of the whole pytest process."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "evals", "--provider", "openai:slow"]
    command += ["--provider-url", url, "--tooleval-concurrency", str(concurrency)]
    environment = {**os.environ, "OPENAI_API_KEY": ""}
    cpu, started = child_cpu(), time.perf_counter()
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return wall, child_cpu() - cpu


def bare_cpu(url: str, bodies: list[Any], concurrency: int) -> float:
    """Return CPU seconds a request of threads with an `httpx.Client` each that post the same bodies."""
    local = threading.local()
    context = httpx.create_ssl_context()

    def ask(body: Any) -> None:
        if not hasattr(local, "client"):
            local.client = httpx.Client(verify=context, trust_env=False)
        local.client.post(f"{url}/chat/completions", json=body).json()

    before = time.process_time()
    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(ask, bodies))
    return (time.process_time() - before) / len(bodies)


def main() -> None:
    """Print the ratios, medians of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    requests = options.cases * CALLS_A_CASE
    ideal = requests * options.delay / options.concurrency
    walls, cpus, bares = [], [], []
    server = ServerProcess(options.delay)
    try:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            write_suite(root, options.cases)
            for _ in range(options.rounds):
                wall, cpu = run_pytest(root, server.url, options.concurrency)
                asked = server.asked()
                if len(asked) != requests:
                    sys.exit(f"the server counted {len(asked)} requests; expected {requests}")
                bare = bare_cpu(server.url, asked, options.concurrency)
                server.asked()
                walls.append(wall / ideal)
                cpus.append(cpu / requests / bare)
                bares.append(bare)
                print(f"wall {wall:.2f} s, {cpu / requests * 1000:.2f} ms CPU a call, bare {bare * 1000:.2f} ms")
    finally:
        server.close()
    print(f"wall time over the ideal {ideal:.1f} s: {median(walls):.2f}")
    print(f"CPU a call over a bare threaded loop ({median(bares) * 1000:.1f} ms): {median(cpus):.2f}")


if __name__ == "__main__":
    main()
