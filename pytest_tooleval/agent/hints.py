"""What a reader of a result should know before blaming the model."""

from __future__ import annotations

import re
from collections.abc import Collection

_CALL_MARKUP = re.compile(
    r"<tool_call>|<function[=_ ]|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool.{0,2}calls?", re.IGNORECASE
)
_NAMED_CALL = re.compile(r'"(?:name|function)"\s*:\s*"([^"]+)"')


def unparsed_call_hint(text: str, tool_names: Collection[str]) -> str | None:
    """Return a note when a reply's text looks like a tool call that the server did not parse, else None."""
    named = any(name in tool_names for name in _NAMED_CALL.findall(text))
    if not named and not _CALL_MARKUP.search(text):
        return None
    return "the text looks like an unparsed tool call; check the server's tool-call parser and chat template"
