"""What a server's tool answered, as text for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tooleval.errors import ToolError
from pytest_tooleval.measures.text import clean_text

_NOTHING = "[the tool returned no content]"


def answer_text(result: Mapping[str, Any], most: int) -> str:
    """Return the text of a `tools/call` result.

    Texts, and resources that are text, are given as they are. What is no text is a line in brackets that says what
    it is, and its data never shows. Structured content is given as JSON where there is no text beside it.

    Args:
        result: as it came; nothing about it is taken for granted.
        most: most characters, the notice of a cut included.

    Raises:
        ToolError: the tool said that it failed; with the same text.

    """
    if result.get("resultType") == "input_required":
        raise ToolError("The tool asks for further input from the user or the client, and there is none to give.")
    text = _bounded(clean_text("\n".join(_parts(result)) or _NOTHING), most)
    if result.get("isError") is True:
        raise ToolError(text)
    return text


def _parts(result: Mapping[str, Any]) -> Iterator[str]:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    yield from map(_block_text, blocks)
    structured = result.get("structuredContent")
    if structured is not None and not any(map(_is_text, blocks)):
        yield _json(structured)


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and bool(block.get("text"))


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return f"[content of no known type: {_short(_json(block))}]"
    kind = block.get("type")
    match kind:
        case "text":
            return _string(block.get("text", ""))
        case "image" | "audio":
            return f"[{kind}: {_of_type(block)}, {_decoded_size(block.get('data'))}]"
        case "resource_link":
            return _link_line(block)
        case "resource":
            return _resource_text(block.get("resource"))
    return f"[content of an unknown type: {_short(_string(kind))}]"


def _link_line(block: Mapping[str, Any]) -> str:
    name = block.get("title") or block.get("name")
    named = f"{_short(_string(name))}, " if name else ""
    description = block.get("description")
    described = f": {_short(_string(description))}" if description else ""
    return f"[resource link: {named}{_short(_string(block.get('uri')))}{described}]"


def _resource_text(resource: Any) -> str:
    if not isinstance(resource, dict):
        return "[resource: empty]"
    uri = _short(_string(resource.get("uri")))
    if "text" in resource:
        return f"[resource: {uri}]\n{_string(resource['text'])}"
    return f"[resource: {uri}, {_of_type(resource)}, {_decoded_size(resource.get('blob'))}]"


def _of_type(block: Mapping[str, Any]) -> str:
    return _short(_string(block.get("mimeType") or "of an unknown type"))


def _decoded_size(data: Any) -> str:
    if not isinstance(data, str):
        return "no data"
    return f"{len(data.rstrip('=')) * 3 // 4} bytes"


def _string(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[content that is nested too deeply]"


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text[: most + 1].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _bounded(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    notice = f"\n[cut: the beginning of {len(text)} characters; ask for a smaller part]"
    return text[: max(0, most - len(notice))] + notice
