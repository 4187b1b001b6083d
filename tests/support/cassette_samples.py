"""Cassettes for tests: one of everything, and strategies for any."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from json_values import SCALARS, TEXT, json_values

from pytest_tooleval.providers.cassette import Asked, Cassette, Exchange, Frame, Label
from pytest_tooleval.providers.provider import Sampling, ToolSpec
from pytest_tooleval.transcript import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

GREP = ToolSpec("grep", "Search.\nLine by line.", {"type": "object", "properties": {"pattern": {"type": "string"}}})
FRAME = Frame("Be brief.", Sampling("required", 0.5, 64, 7), (GREP,))
CALL = ToolCall(
    id="call_1",
    name="grep",
    arguments={"pattern": "main"},
    raw_arguments='{"pattern":"main"}',
    raw_name="functions.grep",
    extra={"extra_content": {"thought_signature": "Wg=="}},
)
REPLY = AssistantMessage(
    text="Looking.\n",
    calls=(CALL, ToolCall("call_2", "grep", None, "{oops", "grep")),
    finish="length",
    usage=Usage(input=5, cache_read=4, cache_write=3, output=2, reasoning=1, reported_total=15),
    opaque={"reasoning_details": [{"data": "QUJD=="}]},
    attempts=2,
    notes=("grep was sent without a part of its schema",),
)
RESULTS = (ToolMessage("call_1", "grep", "a.py:1: main"), ToolMessage("call_2", "grep", "no JSON", is_error=True))
EVERYTHING = Cassette(
    Label("find-main", "openai:gpt-x", 2),
    (
        Exchange(Asked(FRAME, 0, (UserMessage("Find main."),)), REPLY),
        Exchange(Asked(FRAME, 1, (AssistantMessage("Looking.", attempts=0), *RESULTS)), AssistantMessage("a.py")),
    ),
)

_LINES = st.lists(TEXT, max_size=3).map("\n".join)
_OBJECTS = st.dictionaries(TEXT, json_values(), max_size=3)
_COUNTS = st.integers(0, 10**9)
_CALLS = st.builds(
    ToolCall,
    id=TEXT,
    name=TEXT,
    arguments=st.none() | _OBJECTS,
    raw_arguments=TEXT | _OBJECTS.map(json.dumps),
    raw_name=TEXT,
    extra=_OBJECTS,
)
REPLIES = st.builds(
    AssistantMessage,
    text=_LINES,
    calls=st.lists(_CALLS, max_size=3).map(tuple),
    finish=st.sampled_from(["stop", "length", "refusal"]),
    usage=st.none()
    | st.builds(Usage, _COUNTS, _COUNTS, _COUNTS, _COUNTS, _COUNTS, reported_total=st.none() | _COUNTS),
    opaque=_OBJECTS,
    attempts=_COUNTS,
    notes=st.lists(TEXT, max_size=2).map(tuple),
)
_MESSAGES: st.SearchStrategy[Message] = (
    st.builds(UserMessage, _LINES) | st.builds(ToolMessage, TEXT, TEXT, _LINES, st.booleans()) | REPLIES
)
_SAMPLINGS = st.builds(
    Sampling,
    tool_choice=st.sampled_from(["auto", "required", "none"]),
    temperature=st.none() | st.floats(0, 2),
    max_output_tokens=st.none() | _COUNTS,
    seed=st.none() | st.integers(-5, 10**12),
)
_SCHEMAS = st.dictionaries(TEXT, SCALARS | st.lists(TEXT, max_size=2) | _OBJECTS, max_size=3)
_TOOLS = st.lists(st.builds(ToolSpec, TEXT, _LINES, _SCHEMAS), max_size=2).map(tuple)
_FRAMES = st.builds(Frame, _LINES, _SAMPLINGS, _TOOLS)


@st.composite
def cassettes(draw: Any) -> Cassette:
    """Draw a cassette in which frames mostly stay the same."""
    frames = draw(st.lists(_FRAMES, min_size=1, max_size=2))
    asked = st.builds(Asked, st.sampled_from(frames), st.integers(0, 3), st.lists(_MESSAGES, max_size=3).map(tuple))
    exchanges = draw(st.lists(st.builds(Exchange, asked, REPLIES), max_size=3))
    label = draw(st.builds(Label, TEXT, TEXT, st.integers(1, 9)))
    return Cassette(label, tuple(exchanges))
