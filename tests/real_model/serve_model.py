"""Serves a GGUF model over HTTP on a free loopback port, and prints where."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import xllamacpp


def main(model: str, template: str) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = 1
    parameters.n_ctx = 4096
    parameters.use_jinja = True
    parameters.chat_template = Path(template).read_text(encoding="utf-8")
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"serving at {server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
