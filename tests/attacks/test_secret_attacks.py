from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from chat_samples import chat_answer
from loopback import Asked, LoopbackServer, Scripted, as_json, serving, serving_with
from mcp_project import misbehaving
from suite_writer import SuiteWriter

API_KEY = "sk-proj-T3st_0123456789abcdefghij"
QUOTED = "p\"a\\ss'w\u00f6rd/with spaces"
TOKEN = "eyJ" + "hbGciOiJIUzI1NiJ9" * 60
LINES = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{line:02}" for line in range(20)]
PRIVATE = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])
SECRETS = {
    "OPENAI_API_KEY": API_KEY,
    "DATABASE_PASSWORD": QUOTED,
    "SESSION_JWT": TOKEN,
    "DEPLOY_PRIVATE_KEY": PRIVATE,
    "MYSQL_PWD": "mysql-word-1",
    "GH_PAT": "ghp_0123456789abcdef",
    "WALLET_PASSPHRASE": "correct horse battery",
}
PARTS = [*SECRETS.values(), *LINES]
FORMS = {
    form
    for part in PARTS
    for form in (
        part,
        " ".join(part.split()),
        json.dumps(part)[1:-1],
        json.dumps(part, ensure_ascii=False)[1:-1],
        repr(part)[1:-1],
        quote(part, safe=""),
    )
}

Script = Callable[[str], Scripted]


class Echo(LoopbackServer):
    """Answers each task by its script, which is told the key that came with the request."""

    def __init__(self, scripts: dict[str, list[Script]]) -> None:
        super().__init__([])
        self.scripts = scripts

    def next_answer(self, asked: Asked) -> Scripted:
        self.asked.append(asked)
        messages = asked.body["messages"]
        script = self.scripts[next(message["content"] for message in messages if message["role"] == "user")]
        turn = sum(message["role"] == "assistant" for message in messages)
        return script[min(turn, len(script) - 1)](asked.headers["authorization"].removeprefix("Bearer "))


def calls(key: str) -> Scripted:
    """Make calls whose ids, names and arguments hold secrets."""
    named = [
        ("list_dir", {"path": key}),
        (f"send_{key}", {"to": QUOTED, PRIVATE: [TOKEN]}),
        ("grep", {"pattern": f"({key}"}),
        ("file_read", {"path": QUOTED}),
        ("run_command", {"command": f"echo '{key}'; env; cat /proc/$PPID/environ 2>/dev/null | head -c 0; env"}),
        ("web_fetch", {"url": f"http://{key}@127.0.0.1/?key={key}"}),
        ("run_command", {"command": f"printf %0490d 0; echo '{key}'; false"}),
        ("run_command", {"command": f"printf %0485d 0; echo '{TOKEN}'; false"}),
    ]
    made = [
        {"id": f"{key}{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(named)
    ]
    return as_json(chat_answer({"content": PRIVATE, "tool_calls": made, "reasoning": key}, "tool_calls"))


def says(text: str) -> Script:
    return lambda key: as_json(chat_answer({"content": text.replace("KEY", key)}))


def fails(status: int, body: str, **headers: str) -> Script:
    def answer(key: str) -> Scripted:
        shown = {name: value.replace("KEY", key) for name, value in headers.items()}
        return Scripted(status, body.replace("KEY", key).encode(), shown)

    return answer


def reads(_: str) -> Scripted:
    function = {"name": "file_read", "arguments": '{"path": "config.txt"}'}
    made = [{"id": "c1", "type": "function", "function": function}]
    return as_json(chat_answer({"content": None, "tool_calls": made}, "tool_calls"))


SCRIPTS: dict[str, list[Script]] = {
    "read": [reads, says("It is there.")],
    "tools": [calls, says(f"The key is KEY, {QUOTED}, {TOKEN}\n{PRIVATE}\n and {' '.join(SECRETS.values())}")],
    "cut": [says("x" * 480 + "KEY" + "y" * 480 + TOKEN)],
    "refused": [fails(401, '{"error": {"message": "Incorrect key KEY", "code": "KEY", "param": "KEY"}}')],
    "html": [fails(500, "<html>Bearer KEY KEY http://u:KEY@h/?api_key=KEY</html>", Retry_After="0")],
    "bad parameter": [fails(400, '{"error": {"message": "no", "param": "KEY"}}')],
    "inside": [fails(200, '{"error": {"message": "rate limit of KEY", "code": 400}}')],
    "junk": [fails(200, "KEY is no JSON")],
    "moved": [fails(302, "KEY", Location="http://u:KEY@elsewhere/KEY?key=KEY")],
    "type": [fails(200, "no", Content_Type="KEY")],
}


@pytest.fixture
def suite_with_secrets(suite: SuiteWriter, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SuiteWriter, Echo]]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    for at, name in enumerate(SCRIPTS):
        files = {"config.txt": "\n".join(SECRETS.values())}
        suite.fixture(f"c{at}", task=name, expected=["glob"], tool_permission={"bash": "allow"}, files=files)
    with serving_with(Echo(SCRIPTS)) as server:
        yield suite, server


def leaks(text: str) -> list[str]:
    return sorted({form[:30] for form in FORMS if form in text})


def cut_leaks(text: str) -> list[str]:
    """Return what of the long secrets stands in a text though it was cut off."""
    return re.findall(r"sk-proj-T3st\w+|eyJhbGciOiJ\w+|IUzI1NiJ9\w{9,}", text)


@pytest.mark.parametrize("options", [[], ["-n2"], ["--tooleval-record"]], ids=["one process", "workers", "record"])
def test_no_secret_of_the_environment_gets_out(
    suite_with_secrets: tuple[SuiteWriter, Echo], pytester: pytest.Pytester, options: list[str]
) -> None:
    suite, server = suite_with_secrets
    url = f"http://127.0.0.1:{server.server_port}/v1"
    before = {path for path in pytester.path.rglob("*") if path.is_file()}
    result = suite.run(
        "-rA", "-vv", "--showlocals", "--provider", "openai:m", "--provider-url", url, "--tooleval-retries", "0",
        "--tooleval-json", "out/r.json", "--tooleval-snapshot", "out", "--junitxml", "out/j.xml", *options,
    )  # fmt: skip
    written = [path for path in pytester.path.rglob("*") if path.is_file() and path not in before]
    texts = {str(path): path.read_text(errors="replace") for path in written if path.suffix != ".pyc"}
    texts |= {"stdout": result.stdout.str(), "stderr": result.stderr.str()}

    assert all(asked.headers["authorization"] == f"Bearer {API_KEY}" for asked in server.asked)
    assert any(name.endswith("r.json") for name in texts)
    assert any("snapshots" in name for name in texts)
    assert any(name.endswith(".jsonl") for name in texts), "no run log"
    assert any("cassettes" in name for name in texts) == ("--tooleval-record" in options)
    assert {name: found for name, text in texts.items() if (found := leaks(text) or cut_leaks(text))} == {}
    cases = json.loads((pytester.path / "out/r.json").read_text())["toolUse"]["cases"]
    assert len(cases) == len(SCRIPTS)
    (tools,) = (case for case in cases if case["id"] == "c1")
    assert tools["verdict"] == ("error" if "--tooleval-record" in options else "missed")
    assert json.dumps(tools).count("[redacted]") > 10 or tools["verdict"] == "error"
    assert "Traceback" not in result.stdout.str()


def test_commands_see_no_secret_by_any_way(suite_with_secrets: tuple[SuiteWriter, Echo]) -> None:
    """The environment of the commands is theirs alone; that of this process is not asked for theirs."""
    suite, _ = suite_with_secrets
    found = "env; export -p; cat /proc/self/environ"
    suite.fixture(
        "env",
        mock=[{"calls": [{"name": "run_command", "arguments": {"command": f"({found}) > seen; wc -c seen"}}]}],
        verifier={"files": {"seen": {"contains": ["PATH="], "not_contains": list(SECRETS)}}},
        tool_permission={"bash": "allow"},
    )
    suite.run("-k", "env", "--provider", "mock").assert_outcomes(passed=1)


def test_a_secret_longer_than_a_file_name_does_not_stop_pytest(
    suite: SuiteWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", "x" * 5000)
    monkeypatch.setenv("SOME_SECRET", "a/" * 3000)
    suite.passing("a")
    suite.run().assert_outcomes(passed=1)


def test_a_path_is_no_secret(suite: SuiteWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_CREDENTIALS_FILE", str(tmp_path))
    suite.fixture("a", mock=[{"text": f"It is in {tmp_path}."}])
    assert str(tmp_path) in suite.result()["toolUse"]["cases"][0]["answer"]


CONFIGURED = "configured-secret-42"


def test_no_secret_of_a_servers_configuration_gets_out(suite: SuiteWriter, pytester: pytest.Pytester) -> None:
    """The model repeats what a tool of the server says of the server's environment, where it is no secret."""
    entry = misbehaving(env={"WIKI_TOKEN": CONFIGURED, "LANG_OF_WIKI": "esperanto"})
    web = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {CONFIGURED[::-1]}"}}
    suite.write("mcp.json", {"mcpServers": {"wiki": entry, "web": web}})
    for at, words in enumerate([CONFIGURED, CONFIGURED[::-1]]):
        calls = [
            {"name": "environment"},
            {"name": "refuse", "arguments": {"code": -32000, "text": words}},
            {"name": "echo", "arguments": {"text": words}},
        ]
        answer = f"It is {words}, in esperanto."
        suite.fixture(f"c{at}", mcp=["wiki"], mock=[{"calls": calls}, {"text": answer}], expected=["glob"])
    before = {path for path in pytester.path.rglob("*") if path.is_file()}
    result = suite.run("-rA", "--tooleval-json", "out/r.json", "--junitxml", "out/j.xml")
    written = [path for path in pytester.path.rglob("*") if path.is_file() and path not in before]
    texts = {str(path): path.read_text(errors="replace") for path in written if path.suffix != ".pyc"}
    texts |= {"stdout": result.stdout.str(), "stderr": result.stderr.str()}
    assert len(texts) > 4
    for name, text in texts.items():
        assert CONFIGURED not in text, name
        assert CONFIGURED[::-1] not in text, name
    assert "in esperanto" in (pytester.path / "out/r.json").read_text()


def test_keys_in_a_base_url_do_not_get_out(suite: SuiteWriter, pytester: pytest.Pytester) -> None:
    suite.fixture("a", task="t", expected=["glob"])
    with serving(fails(401, "no")("")) as server:
        url = f"http://user:pa55word-1@127.0.0.1:{server.server_port}/v1?key=AIzaTEST0123"
        result = suite.run("--provider", "openai:m", "--provider-url", url, "--tooleval-json", "r.json", "-rA")
        assert "key=AIzaTEST0123" in server.asked[0].path
    texts = [path.read_text(errors="replace") for path in pytester.path.rglob("*.json*") if path.is_file()]
    for text in (result.stdout.str(), result.stderr.str(), *texts):
        assert "AIzaTEST" not in text
        assert "pa55word" not in text
