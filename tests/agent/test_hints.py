from __future__ import annotations

import pytest

from pytest_tooleval.agent.hints import unparsed_call_hint

TOOLS = {"file_read", "grep"}
HINT = "the text looks like an unparsed tool call; check the server's tool-call parser and chat template"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"grep","arguments":{"pattern":"x"}}</tool_call>',
        '[TOOL_CALLS] [{"name": "grep", "arguments": {}}]',
        "<function=grep>{}</function>",
        '<|python_tag|>{"name": "grep"}',
        "<|tool▁calls▁begin|>",
        '{"name": "grep", "parameters": {"pattern": "x"}}',
        'I will call:\n```json\n{"function" : "file_read", "path": "a"}\n```',
    ],
)
def test_text_that_looks_like_a_call(text):
    assert unparsed_call_hint(text, TOOLS) == HINT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I used grep to find it.",
        'The package is {"name": "left-pad"}.',
        "The function def name(): returns 1.",
        'print("grep")',
        "tool_call is a name in the file",
    ],
)
def test_text_that_does_not(text):
    assert unparsed_call_hint(text, TOOLS) is None
