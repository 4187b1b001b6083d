from __future__ import annotations

import json

import pytest
from chat_samples import chat_answer
from loopback import as_json, serving

USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 100},
}


def call(name: str, arguments: object, call_id: str = "c1") -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def calls(*made: dict[str, object]) -> object:
    return as_json(chat_answer({"content": None, "tool_calls": list(made)}, "tool_calls", usage=USAGE))


def text(words: str) -> object:
    return as_json(chat_answer({"content": words}, usage=USAGE))


def target(server) -> list[str]:
    return ["--provider", "openai:m1", "--provider-url", server.url]


def test_a_task_is_worked_on_over_http(suite):
    suite.fixture("a", expected=["list_dir", "file_read"], files={"x.txt": "secret word: plum\n"})
    with serving(
        calls(call("list_dir", {})), calls(call("file_read", {"path": "x.txt"}, "c2")), text("The word is plum.")
    ) as server:
        document = suite.result(*target(server), "--tooleval-seed", "7", "--tooleval-temperature", "0")
    case = document["toolUse"]["cases"][0]
    assert (case["verdict"], case["names"], case["answer"]) == (
        "passed",
        ["list_dir", "file_read"],
        "The word is plum.",
    )
    assert case["tokens"] == 450
    assert case["usage"] == {"input": 60, "cacheRead": 300, "cacheWrite": 0, "output": 90, "reasoning": 0}
    first, second, third = (asked.body for asked in server.asked)
    assert (first["model"], first["seed"], first["temperature"]) == ("m1", 7, 0)
    assert first["tool_choice"] == "auto"
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "file_read",
        "list_dir",
        "glob",
        "grep",
        "web_fetch",
    ]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["content"] == "x.txt"
    assert "secret word: plum" in third["messages"][5]["content"]


def test_only_the_allowed_tools_are_offered(suite):
    suite.fixture(
        "a", expected=[], tool_permission={"edit": "allow", "read": "deny", "bash": "ask"}, tools_deny=["glob"]
    )
    with serving(text("hi")) as server:
        suite.run(*target(server))
    offered = [tool["function"]["name"] for tool in server.asked[0].body["tools"]]
    assert offered == ["list_dir", "file_write", "file_edit", "run_command", "web_fetch"]


def test_a_denied_tool_that_is_called_all_the_same_is_an_error_result_in_the_trace(suite):
    suite.fixture("a", verifier={"avoid": ["file_write"], "files": {"x.txt": {"exists": False}}})
    with serving(calls(call("file_write", {"path": "x.txt", "content": "x"})), text("ok")) as server:
        case = suite.result(*target(server))["toolUse"]["cases"][0]
    assert case["trace"][0]["outcome"] == "denied"
    assert case["mismatches"] == [
        {"kind": "unexpected", "what": "file_write was called once, and is to be avoided"}
    ]
    assert "category 'edit' is 'deny'" in server.asked[1].body["messages"][3]["content"]


@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_servers_fault_is_an_error_after_its_retries(suite, status):
    suite.passing("a")
    with serving(as_json({"error": {"message": "overloaded today"}}, status)) as server:
        result = suite.run(*target(server), "--tooleval-retries", "1")
        result.assert_outcomes(errors=1)
        assert len(server.asked) == 2
    result.stdout.fnmatch_lines([f"not measured: openai: *{status}*overloaded today*(2 attempts)"])


def test_a_refused_key_fails_at_once_and_is_not_shown(suite, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key-0123456789")
    suite.passing("a")
    with serving(as_json({"error": {"message": "Incorrect API key: sk-wrong-key-0123456789"}}, 401)) as server:
        result = suite.run(*target(server))
        assert len(server.asked) == 1
        assert server.asked[0].headers["authorization"] == "Bearer sk-wrong-key-0123456789"
    result.stdout.fnmatch_lines(["not measured: openai: *401*OPENAI_API_KEY*"])
    assert "sk-wrong-key" not in result.stdout.str()


def test_unknown_usage_is_null_and_not_zero(suite):
    suite.fixture("a", expected=[])
    suite.thresholds(overall={"tokensMax": 10})
    with serving(as_json(chat_answer({"content": "hi"}))) as server:
        document = suite.result(*target(server))
    assert document["toolUse"]["byTarget"]["openai:m1"]["tokens"] is None
    assert document["gates"][0]["pass"] is False
    assert document["gates"][0]["detail"] == "no data: no case of the scope has a value for tokens"


def test_an_unparsed_call_in_the_text_is_hinted_at(suite):
    suite.fixture("a", expected=["grep"])
    words = '<tool_call>{"name": "grep", "arguments": {"pattern": "x"}}</tool_call>'
    with serving(text(words)) as server:
        result = suite.run(*target(server))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["  the text looks like an unparsed tool call; check the server's tool-call parser*"]
    )


def test_a_reply_cut_off_by_the_output_limit_is_truncated(suite):
    suite.fixture("a", verifier={"answer": {"contains": "Once"}})
    with serving(as_json(chat_answer({"content": "Once upon"}, "length"))) as server:
        case = suite.result(*target(server))["toolUse"]["cases"][0]
    assert (case["status"], case["pass"], case["detail"]) == (
        "truncated",
        False,
        "the reply was cut off by the output limit",
    )


def test_the_system_prompt_is_read_from_a_file(suite, pytester):
    (pytester.path / "prompt.txt").write_text("Be brief.")
    suite.fixture("a", expected=[])
    with serving(text("hi")) as server:
        suite.run(*target(server), "--tooleval-system-prompt", "prompt.txt")
    assert server.asked[0].body["messages"][0] == {"role": "system", "content": "Be brief."}


def test_two_models_stand_side_by_side(suite):
    suite.passing("a")
    with serving(text("no calls at all")) as server:
        result = suite.run("--compare", "mock,openai:m1", "--provider-url", server.url)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "metric *mock *openai:m1",
            "measured *1 of 1 *1 of 1",
            "accuracy *1.00 *0.00",
            "pass rate *1.00 *0.00",
            "tokens *- *150",
        ]
    )


def test_one_url_for_one_provider(suite):
    suite.passing("a")
    with serving(text("hi")) as server:
        suite.run("--compare", "mock,openai:m1", "--provider-url", f"openai={server.url}")
        assert len(server.asked) == 1


def test_a_provider_of_the_ini_file_is_asked_with_its_own_key(suite, pytester, monkeypatch):
    monkeypatch.setenv("LAB_KEY", "lab-secret-1")
    suite.fixture("a", expected=["list_dir"])
    with serving(calls(call("list_dir", {})), text("Nothing there.")) as server:
        pytester.makeini(f"[pytest]\ntooleval_add_provider =\n    lab = openai-chat {server.url} LAB_KEY\n")
        suite.run("--provider", "lab:m1").assert_outcomes(passed=1)
    assert server.asked[0].headers["authorization"] == "Bearer lab-secret-1"


def test_requests_that_failed_before_one_was_answered_are_counted_and_told(suite):
    suite.fixture("a", expected=["list_dir"])
    busy = as_json({"error": {"message": "server overloaded"}}, 503, Retry_After="0")
    with serving(busy, calls(call("list_dir", {})), text("Nothing there.")) as server:
        case = suite.result(*target(server))["toolUse"]["cases"][0]
    assert (case["verdict"], case["attempts"], case["turns"]) == ("passed", 3, 2)
    assert [note for note in case["notes"] if "HTTP 503" in note and "server overloaded" in note]


FAILED_CALL = {
    "message": "Failed to call a function.",
    "code": "tool_use_failed",
    "failed_generation": "<function=list_dir{oops</function>",
}
OFF_FORMAT = {"message": "The model produced output that does not match the expected x format"}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(as_json({"error": FAILED_CALL}, 400), "invalid_arguments", id="groq"),
        pytest.param(as_json({"error": OFF_FORMAT}, 500), "unknown_tool", id="llama.cpp"),
    ],
)
def test_a_call_that_the_server_cannot_read_is_the_models_failure_and_is_not_asked_for_again(
    suite, answer, outcome
):
    suite.fixture("a", expected=["list_dir", "list_dir"])
    with serving(answer, text("I give up.")) as server:
        case = suite.result(*target(server))["toolUse"]["cases"][0]
        assert len(server.asked) == 2
    assert (case["verdict"], case["trace"][0]["outcome"], case["tokens"]) == ("missed", outcome, None)
