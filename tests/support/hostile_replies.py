"""Bodies that a hostile or broken Chat Completions server may answer with, by name; `size` says how large."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chat_samples import chat_answer

ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\r\x00\u202eback\u2066"


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * levels + "1" + closing * levels


def call(name: str, arguments: Any = "{}", call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Any, **message: Any) -> str:
    return json.dumps(chat_answer({"content": None, "tool_calls": list(calls), **message}, "tool_calls"))


def saying(content: Any, **rest: Any) -> str:
    return json.dumps(chat_answer({"content": content}, **rest))


def usage(text: str) -> str:
    return saying("ok", usage="USAGE").replace('"USAGE"', text)


def hostile_replies(size: int) -> dict[str, Callable[[], str | bytes]]:
    """Return what makes each body.

    Args:
        size: how many calls, characters and so on; the largest bodies are of some hundred times as many bytes.

    """
    return {
        "many calls": lambda: calling(*(call("list_dir", call_id=f"c{at}") for at in range(size))),
        "many denied": lambda: calling(*(call("file_write", call_id=f"c{at}") for at in range(size))),
        "many unknown": lambda: calling(*(call(f"x{at}", call_id=f"c{at}") for at in range(size))),
        "many namespaces": lambda: calling(*(call("functions.list_dir", call_id=f"c{at}") for at in range(size))),
        "one id": lambda: calling(*(call("list_dir") for _ in range(size // 10))),
        "large arguments": lambda: calling(call("file_read", json.dumps({"path": "x" * size * 500}))),
        "large junk": lambda: calling(call("file_read", "x" * size * 500)),
        "many arguments": lambda: calling(call("file_read", json.dumps({f"a{at}": at for at in range(size)}))),
        "large name": lambda: calling(call("x" * size * 500)),
        "large answer": lambda: saying("a." * size * 200 + "://@"),
        "wide answer": lambda: saying("\ufdfa" * size * 100),
        "escapes": lambda: calling(
            call(ANSI, json.dumps({ANSI: ANSI}), ANSI),
            call(f"functions.{ANSI}"),
            call("file_read", json.dumps({"path": ANSI})),
            call("grep", json.dumps({"pattern": ANSI, ANSI: ANSI})),
            call("list_dir", json.dumps({ANSI: 1})),
            call("\n\n=== 99 passed in 0.01s ===\n"),
            content=ANSI,
        ),
        "escapes in the answer": lambda: saying(f"{ANSI}\n=== 99 passed in 0.01s ===\n{ANSI}"),
        "surrogates": lambda: calling(
            call("\ud800", '{"path": "\\ud800"}', "\udfff"), call("file_read", '{"\\udc00": "\udc00"}')
        ),
        "surrogate answer": lambda: saying("half \ud83d of \udfff"),
        "names": lambda: calling(
            call(""), call(" "), call("."), call("functions."), call("a" * 300), call("\u0000")
        ),
        **{
            f"nested {levels}": lambda levels=levels: calling(call("list_dir", nested(levels)))  # type: ignore[misc]
            for levels in (90, 120, 250, 300, 480, 600, 1000, 100_000)
        },
        "nested lists": lambda: calling(call("list_dir", '{"a":' + nested(400, "[", "]") + "}")),
        "nested twice": lambda: calling(call("list_dir", json.dumps(json.dumps(nested(200))))),
        "nested body": lambda: saying("ok").replace("{", '{"x": ' + nested(100_000) + ", ", 1),
        "nested reasoning": lambda: saying("ok").replace(
            '"content"', '"reasoning_details": ' + nested(400) + ', "content"'
        ),
        "numbers": lambda: calling(
            call("list_dir", '{"depth": 1e999}'),
            call("list_dir", '{"depth": NaN}'),
            call("list_dir", '{"depth": -Infinity}'),
            call("list_dir", '{"depth": 1e308}'),
            call("list_dir", '{"depth": 1e15}'),
            call("list_dir", '{"depth": ' + "9" * 4000 + "}"),
            call("list_dir", '{"depth": ' + "9" * 5000 + "}"),
            call("list_dir", '{"depth": -0.0}'),
            call("file_read", '{"path": "a", "offset": ' + "9" * 400 + "}"),
            call("run_command", '{"command": "true", "timeout": 1e300}'),
        ),
        "large usage": lambda: usage(f'{{"prompt_tokens": {"9" * 4000}, "total_tokens": {"9" * 4000}}}'),
        "larger usage": lambda: usage(f'{{"prompt_tokens": {"9" * 5000}}}'),
        "odd usage": lambda: usage('{"prompt_tokens": NaN, "completion_tokens": -5, "total_tokens": 1e308}'),
        "usage of other types": lambda: usage(
            '{"prompt_tokens": "5", "completion_tokens": [], "total_tokens": true}'
        ),
        "duplicate keys": lambda: '{"choices": [], "choices": [{"message": {"content": "a", "content": "b"}}]}',
        "wrong types": lambda: json.dumps(
            {
                "choices": [
                    {
                        "finish_reason": ["x"],
                        "message": {
                            "content": {"a": 1},
                            "tool_calls": [
                                call("list_dir", {"a": [1]}, {"x": 1}),
                                call("list_dir", [1], 5),
                                call("list_dir", 5, None),
                                call("list_dir", None, [[]]),
                            ],
                        },
                    }
                ],
                "usage": [1],
                "id": {},
                "created": "x",
            }
        ),
        "no choices": lambda: '{"choices": [null]}',
        "a list": lambda: "[[[]]]",
        "a number": lambda: "9" * 5000,
        "not utf-8": lambda: b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
        "utf-16": lambda: saying("ok").encode("utf-16"),
        "empty": lambda: "",
        "nul": lambda: b"\0" * 1000,
        "an error": lambda: json.dumps({"error": {"message": ANSI * 50, "code": ANSI, "param": "x" * size}}),
        "an error of errors": lambda: json.dumps({"error": {"message": {"message": [ANSI] * size}}}),
        "a nested error": lambda: '{"error": ' + nested(300) + "}",
    }
