from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from cassette_samples import EVERYTHING
from fuzzing import check_told, fuzzed, in_time, mutations, spoilt_texts
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import tool_use_case

from pytest_tooleval.errors import CaseError, ProviderError
from pytest_tooleval.providers.cassette import Cassette, cassette_text
from pytest_tooleval.providers.cassette_name import cassette_path
from pytest_tooleval.providers.cassette_reader import decode_cassette
from pytest_tooleval.providers.provider import ChatRequest
from pytest_tooleval.providers.replay import CassetteShelf
from pytest_tooleval.transcript import AssistantMessage, ToolMessage

SHOWN = Path("cassettes/c.json")
WHOLE = json.loads(cassette_text(EVERYTHING))
LABEL = EVERYTHING.label
NUMBERS = itertools.count()


def decoded(text: str) -> Cassette | None:
    try:
        return decode_cassette(text, SHOWN)
    except CaseError as error:
        check_told(error)
        return None


@fuzzed(80)
@given(mutations(st.just(WHOLE)))
def test_any_json_is_a_cassette_or_a_problem(value: Any) -> None:
    with in_time():
        found = decoded(json.dumps(value))
        if found is not None:
            assert decode_cassette(cassette_text(found), SHOWN) == found


@fuzzed(40)
@given(spoilt_texts(st.just(WHOLE)))
def test_a_spoilt_file_is_replayed_or_refused(tmp_path_factory: Any, data: bytes) -> None:
    check_replay(tmp_path_factory.getbasetemp() / f"fuzz-cassettes-{next(NUMBERS) % 50}", data)


@fuzzed(40)
@given(mutations(st.just(WHOLE)))
def test_a_changed_file_is_replayed_or_refused(tmp_path_factory: Any, value: Any) -> None:
    data = json.dumps(value).encode()
    check_replay(tmp_path_factory.getbasetemp() / f"fuzz-cassettes-{next(NUMBERS) % 50}", data)


def check_replay(folder: Path, data: bytes) -> None:
    path = folder / cassette_path(LABEL)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    asked = EVERYTHING.exchanges[0].asked
    frame, messages = asked.frame, list(asked.messages)
    case = tool_use_case(LABEL.case, task="Find main.")
    with in_time():
        conversation = CassetteShelf(folder, "replay").conversation(case, LABEL.target, LABEL.trial, None)
        for _ in range(3):
            try:
                reply = conversation.reply(case, ChatRequest(frame.system, messages, frame.tools, frame.sampling))
            except ProviderError as error:
                check_told(error)
                return
            assert isinstance(reply, AssistantMessage)
            messages += [reply, *(ToolMessage(call.id, call.name, "x") for call in reply.calls)]
