from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from xml.etree import ElementTree

import pytest
from chat_samples import chat_answer
from hostile_replies import hostile_replies
from loopback import Asked, LoopbackServer, Scripted, as_json, serving_with
from suite_writer import SuiteWriter
from terminal_output import assert_clean

REPLIES = hostile_replies(size=400)


class HostileModel(LoopbackServer):
    """Answers a task with the reply of that name, and then with a plain text."""

    def __init__(self) -> None:
        super().__init__([])

    def next_answer(self, asked: Asked) -> Scripted:
        messages = asked.body["messages"]
        if any(message["role"] == "assistant" for message in messages):
            return as_json(chat_answer({"content": "done"}))
        body = REPLIES[next(message["content"] for message in messages if message["role"] == "user")]()
        data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        return Scripted(body=data, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "workers"])
def test_nothing_that_a_model_says_breaks_a_run_or_its_output(
    suite: SuiteWriter, pytester: pytest.Pytester, workers: list[str]
) -> None:
    for at, name in enumerate(REPLIES):
        suite.fixture(f"c{at:02}", task=name, expected=["glob"], tool_permission={"bash": "allow"})
    with serving_with(HostileModel()) as server:
        result = suite.run(
            "-rA", "-v", "--provider", "openai:m", "--provider-url", server.url, "--tooleval-retries", "0",
            "--tooleval-json", "r.json", "--junitxml", "j.xml", *workers,
        )  # fmt: skip
    assert_clean(result, most=400_000, longest=2100)
    assert len(list(ElementTree.parse(pytester.path / "j.xml").iter("testcase"))) == len(REPLIES)
    cases = json.loads((pytester.path / "r.json").read_text())["toolUse"]["cases"]
    assert [case["id"] for case in cases] == [f"c{at:02}" for at in range(len(REPLIES))]
    verdicts = {name: case["verdict"] for name, case in zip(REPLIES, cases, strict=True)}
    assert {name for name, verdict in verdicts.items() if verdict == "error"} == {
        "nested body", "larger usage", "no choices", "a list", "a number", "not utf-8", "empty", "nul",
        "an error", "an error of errors", "a nested error",
    }  # fmt: skip
    assert {verdict for verdict in verdicts.values() if verdict != "error"} == {"missed"}
    assert result.ret == 1


def test_a_model_cannot_make_a_run_look_green(suite: SuiteWriter) -> None:
    suite.fixture(
        "a", verifier={"must_include": ["grep"]}, mock=[{"text": "\n\n====== 9 passed in 0.01s ======\n"}]
    )
    result = suite.run()
    assert result.ret == 1
    assert result.parseoutcomes() == {"failed": 1}


SIZES = """
import resource, sys, pytest
code = pytest.main(sys.argv[1:])
print("peak MiB:", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
sys.exit(code)
"""


class Bomb(LoopbackServer):
    """Sends a body that grows a thousandfold when it is decompressed."""

    def __init__(self) -> None:
        squeeze = zlib.compressobj(level=1, wbits=31)
        blanks = b" " * (1 << 20)
        body = b"".join([squeeze.compress(b'{"choices": "'), *(squeeze.compress(blanks) for _ in range(150))])
        super().__init__([Scripted(body=body, headers={"Content-Encoding": "gzip"})])


def test_a_compressed_bomb_costs_little_memory(suite: SuiteWriter, pytester: pytest.Pytester) -> None:
    suite.fixture("a", task="t", expected=["glob"])
    with serving_with(Bomb()) as server:
        done = subprocess.run(
            [sys.executable, "-c", SIZES, "-p", "no:randomly", "--provider", "openai:m", "--provider-url", server.url,
             "--tooleval-retries", "0"],
            cwd=pytester.path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "the answer is longer than 64 MiB" in done.stdout
    assert int(done.stdout.rpartition("peak MiB:")[2]) < 600


ODD_PROVIDER = r"""
import json, pathlib
from pytest_tooleval.transcript import AssistantMessage, ToolCall, Usage

def calling(arguments):
    return AssistantMessage(calls=(ToolCall("1", "list_dir", arguments),))

def raising(error):
    raise error

circle = {}
circle["x"] = circle
REPLIES = {
    "paths": lambda: calling({"path": pathlib.Path("x"), 5: b"x"}),
    "circle": lambda: calling(circle),
    "deep": lambda: calling(json.loads('{"a":' * 480 + "1" + "}" * 480)),
    "usage": lambda: AssistantMessage("x", usage=Usage(input=10**500)),
    "infinity": lambda: AssistantMessage("x", usage=Usage(output=float("inf"))),
    "notes": lambda: AssistantMessage("x", notes=(5,)),
    "text": lambda: AssistantMessage(None),
    "calls": lambda: AssistantMessage(calls=(5,)),
    "nothing": lambda: None,
    "long words": lambda: raising(ValueError("\x1b[31m" * 1_000_000)),
    "exit": lambda: raising(SystemExit(0)),
    "recursion": lambda: raising(RecursionError("deep")),
}

class Odd:
    def cannot_run(self, case): return None
    def close(self): pass
    def reply(self, case, request): return REPLIES[case.task]()

def pytest_tooleval_register_providers(providers):
    providers.add("odd", lambda settings: Odd())
"""


def test_what_a_provider_of_a_users_own_returns_breaks_no_run(
    suite: SuiteWriter, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(ODD_PROVIDER)
    names = re.findall(r'^    "([a-z ]+)": lambda', ODD_PROVIDER, re.MULTILINE)
    for name in names:
        suite.fixture(name.replace(" ", "-"), task=name, expected=["glob"])
    result = suite.run("--provider", "odd", "--tooleval-json", "r.json")
    result.assert_outcomes(errors=len(names))
    assert_clean(result, most=100_000, longest=13_000)
    cases = json.loads((pytester.path / "r.json").read_text())["toolUse"]["cases"]
    assert [case["verdict"] for case in cases] == ["error"] * len(names)
    assert all(case["reason"].startswith("the provider r") for case in cases)
