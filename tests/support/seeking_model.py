"""A Chat Completions server whose model does what the task says, through a broker where that is what it is offered.

A task is as `obedient_model.task` writes it. Where a wanted tool is not among those offered, the model searches for it
with the words of its name, and calls the first tool of that name in the answer; if there is none, it gives up. Its
tokens are the bytes of what it is asked, so that long lists of tools cost more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat_samples import chat_answer
from loopback import Asked, LoopbackServer, Scripted, as_json

GIVEN_UP = "I found no tool for that."


class SeekingModel(LoopbackServer):
    def __init__(self) -> None:
        super().__init__([])

    @property
    def options(self) -> list[str]:
        return ["--provider", "openai:seeker", "--provider-url", self.url]

    def next_answer(self, asked: Asked) -> Scripted:
        with self.lock:
            self.asked.append(asked)
        reply = _reply(asked.body)
        size = len(json.dumps(asked.body))
        return as_json(
            {**reply, "usage": {"prompt_tokens": size, "completion_tokens": 5, "total_tokens": size + 5}}
        )


def _reply(body: dict[str, Any]) -> dict[str, Any]:
    messages = body["messages"]
    wanted = json.loads(next(message["content"] for message in messages if message["role"] == "user"))
    turn = sum(message["role"] == "assistant" for message in messages)
    offered = {tool["function"]["name"] for tool in body.get("tools", ())}
    brokered = "callTool" in offered
    number, is_call = divmod(turn, 2) if brokered else (turn, 1)
    if number >= len(wanted["calls"]):
        return chat_answer({"content": wanted["answer"]})
    name, arguments = wanted["calls"][number]
    if not brokered:
        return _call(turn, name, arguments)
    if not is_call:
        return _call(turn, "findTool", {"query": name.replace("_", " ")})
    found = json.loads(messages[-1]["content"])
    refs = [found["selectedToolRef"], *(each["toolRef"] for each in found["alternatives"])]
    ref = next((ref for ref in refs if ref and ref.partition(".")[2] == name), None)
    if ref is None:
        return chat_answer({"content": GIVEN_UP})
    return _call(turn, "callTool", {"toolRef": ref, "arguments": arguments})


def _call(turn: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return chat_answer(
        {"content": None, "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}]},
        "tool_calls",
    )


@contextmanager
def seeking_model() -> Iterator[SeekingModel]:
    server = SeekingModel()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
