"""A project in a temporary folder in which a page's examples are used."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpcore
import httpx
import hypothesis.core
import jsonschema
import jsonschema_rs
import platformdirs
import pytest
import regex
from chat_samples import chat_answer
from doc_pages import Block, Mark
from loopback import Asked, LoopbackServer, Scripted, as_json

from pytest_tooleval import controller, session
from pytest_tooleval.cases.load import load_fixture_file
from pytest_tooleval.cli import main as cli
from pytest_tooleval.gates.thresholds import load_thresholds
from pytest_tooleval.providers import openai_chat
from pytest_tooleval.reports import result_file, terminal

# pytester forgets what an inner run imported: what is imported here is imported once for all of them.
IMPORTED_ONCE = (
    hypothesis.core,
    httpcore,
    httpx,
    jsonschema,
    jsonschema_rs,
    regex,
    controller,
    session,
    openai_chat,
    result_file,
    terminal,
)

_LOCAL_URL = re.compile(r"http://localhost:(?:8080|11434)/v1")
_FIXTURE_PATH = re.compile(r"(?:^|/)fixtures/.*(?<!\.schema)\.json$")
_HOME_CONFIG = "~/.config/"
_USAGE = {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420}


class ModelServer(LoopbackServer):
    """Speaks Chat Completions, and plays the script of the fixture whose task it is asked."""

    def __init__(self) -> None:
        super().__init__([])
        self.scripts: dict[str, list[dict[str, Any]]] = {}
        self.own_scripts: dict[str, list[dict[str, Any]]] = {}

    def next_answer(self, asked: Asked) -> Scripted:
        messages = asked.body["messages"]
        task = next(message["content"] for message in messages if message["role"] == "user")
        script = self.own_scripts.get(asked.body["model"]) or self.scripts[task]
        turn = sum(message["role"] == "assistant" for message in messages)
        return as_json(_answer(script[turn], turn) if turn < len(script) else chat_answer({"content": ""}))


def _answer(turn: dict[str, Any], number: int) -> dict[str, Any]:
    calls = [
        {
            "id": f"call{number}x{position}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call.get("arguments", {}))},
        }
        for position, call in enumerate(turn.get("calls", ()))
    ]
    message = {"content": turn.get("text", ""), **({"tool_calls": calls} if calls else {})}
    return chat_answer(message, "tool_calls" if calls else "stop", usage=_USAGE)


@contextlib.contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Project:
    """Takes a page's steps one after the other."""

    pytester: pytest.Pytester
    enter: Callable[[Path], None]
    server: ModelServer
    count: int = 0
    folder: Path = field(init=False)
    commands: int = 0

    def __post_init__(self) -> None:
        self.start_anew()

    def take(self, step: Block | Mark) -> None:
        if isinstance(step, Mark):
            self._obey(step)
        elif "not run" not in step.marks:
            self._use(step)

    def _obey(self, mark: Mark) -> None:
        if mark.key == "new project":
            self.start_anew()
        elif mark.key == "server":
            model, _, script = mark.value.partition(" plays ")
            self.server.own_scripts[model] = json.loads(script)
        else:
            raise AssertionError(f"unknown mark {mark}")

    def start_anew(self) -> None:
        self.count += 1
        self.folder = self.pytester.path / f"project{self.count}"
        self.folder.mkdir()
        (self.folder / "pytest.ini").touch()
        self.server.scripts.clear()
        self.server.own_scripts.clear()
        self.enter(self.folder)

    def _use(self, block: Block) -> None:
        if block.language == "console":
            for command, shown in console_commands(block.text):
                self._check_command(block, command, shown)
        elif "verifier" in block.marks:
            self._check_verifier(block)
        elif "answer" in block.marks:
            self._check_answer(block, block.marks["answer"])
        elif "wrong file" in block.marks:
            self._write(block.marks["wrong file"], block)
        else:
            path = self._write(block.marks["file"], block)
            self._check_file(path)

    def _write(self, name: str, block: Block) -> Path:
        path = self.folder / name
        if name.startswith(_HOME_CONFIG):
            path = platformdirs.user_config_path(appauthor=False) / name.removeprefix(_HOME_CONFIG)
        if path.suffix in {".toml", ".cfg"}:
            (self.folder / "pytest.ini").unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return path

    def _check_file(self, path: Path) -> None:
        if _FIXTURE_PATH.search(path.as_posix()):
            load_fixture_file(path, path)
            value = json.loads(path.read_text(encoding="utf-8"))
            for fixture in value if isinstance(value, list) else [value]:
                self.server.scripts[fixture["task"]] = fixture.get("mock", [])
        elif path.name == "thresholds.json":
            load_thresholds(path, path, ".")
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".jsonl":
            for line in path.read_text(encoding="utf-8").splitlines():
                json.loads(line)
        elif path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        elif path.suffix == ".yml":
            for command in workflow_commands(path.read_text(encoding="utf-8")):
                finished, output = self._run(command)
                assert finished == 0, f"{command}\n{output}"

    def _check_verifier(self, block: Block) -> None:
        path = self.folder / "verifier.json"
        verifier = json.loads(block.text)
        path.write_text(json.dumps({"task": "Work.", "verifier": verifier}), encoding="utf-8")
        load_fixture_file(path, path)
        path.unlink()

    def _check_answer(self, block: Block, command: str) -> None:
        exit_code, output = self._run(command)
        where = f"{block.place}: $ {command}"
        assert exit_code == int(block.marks.get("exits", "0")), f"{where} exits with {exit_code}\n{output}"
        assert json.loads(output) == json.loads(block.text), f"{where} answers something else:\n{output}"

    def _check_command(self, block: Block, command: str, shown: str) -> None:
        exit_code, output = self._run(command)
        where = f"{block.place}: $ {command}"
        assert exit_code == int(block.marks.get("exits", "0")), f"{where} exits with {exit_code}\n{output}"
        assert not shown or is_shown(shown, output), f"{where} shows something else:\n{output}"

    def _run(self, command: str) -> tuple[int, str]:
        self.commands += 1
        found = _LOCAL_URL.search(command)
        documented = found[0] if found else ""
        words, target = _redirected(
            shlex.split(command.replace(documented, self.server.url) if documented else command)
        )
        exit_code, output = self._run_words(words)
        if documented:
            output = output.replace(self.server.url, documented)
        if target is not None:
            (self.folder / target).write_text(output, encoding="utf-8")
            output = ""
        return exit_code, "".join(f"{line.rstrip()}\n" for line in output.splitlines())

    def _run_words(self, words: list[str]) -> tuple[int, str]:
        program, *arguments = words
        if program == "pytest":
            result = self.pytester.runpytest_inprocess("-p", "no:randomly", *arguments)
            return int(result.ret), "".join(f"{line}\n" for line in (*result.outlines, *result.errlines))
        assert program == "tooleval", program
        if arguments[:1] == ["bundled"]:
            return in_a_process("pytest_tooleval.cli.main", arguments, self.folder)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return cli.main(arguments), said.getvalue()


def in_a_process(module: str, arguments: list[str], folder: Path) -> tuple[int, str]:
    """Run a module as a program of its own, and return its exit code and what it said, blanks at line ends left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    finished = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return finished.returncode, "".join(f"{line.rstrip()}\n" for line in finished.stdout.splitlines())


def _redirected(words: list[str]) -> tuple[list[str], str | None]:
    return (words[:-2], words[-1]) if len(words) > 2 and words[-2] == ">" else (words, None)


def console_commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that is shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.rstrip("\n")


def workflow_commands(text: str) -> Iterator[str]:
    """Yield the pytest commands of a workflow, once for each value of its matrix."""
    matrix = re.search(r"matrix:\n\s+(\w+): \[(.+)\]", text)
    values = [value.strip(' "') for value in matrix[2].split(",")] if matrix else [""]
    name = matrix[1] if matrix else ""
    for command in re.findall(r"run: (pytest .+)", text):
        for value in values:
            yield re.sub(r"\$\{\{ matrix\." + name + r" \}\}", value, command)


def is_shown(shown: str, output: str) -> bool:
    """Whether an output is what is shown; `...` stands for anything in a line, alone for any lines.

    The length of a bar depends on the seconds beside it and does not matter.
    """
    pattern = ""
    for line in _with_short_bars(shown).splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("..."))) + r"\n"
    return re.fullmatch(pattern, _with_short_bars(output).rstrip("\n") + "\n") is not None


def _with_short_bars(text: str) -> str:
    return re.sub(r"([=_!-])\1{2,}", r"\1\1\1", text)
