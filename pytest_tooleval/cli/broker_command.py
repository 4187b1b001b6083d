"""What `tooleval find`, `describe` and `call` share: the catalog, the broker over it, the printed answer."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_tooleval.cli.opened_broker import open_broker
from pytest_tooleval.measures.text import printable

ANSWERED, REFUSED = 0, 1
_FORMATS = ("text", "json", "concise")


def broker_parser(name: str, description: str, example: str) -> argparse.ArgumentParser:
    """Return a parser with the options that the three commands share."""
    parser = argparse.ArgumentParser(
        prog=f"tooleval {name}",
        description=description,
        epilog=f"Example: {example}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--catalog",
        required=True,
        type=Path,
        metavar="FILE",
        help="a catalog, a tools/list result, or a folder of them",
    )
    parser.add_argument(
        "--mcp-config", type=Path, metavar="FILE", help="the live servers (mcpServers); without, simulated ones"
    )
    parser.add_argument(
        "--format", choices=_FORMATS, default="text", help="json is the broker's own answer (default: text)"
    )
    return parser


def answer(options: argparse.Namespace, operation: str, request: Mapping[str, Any]) -> int:
    """Print the broker's answer to a request; 1 when it is an error.

    Args:
        options: what `broker_parser` read.
        operation: the broker's operation.
        request: its arguments.

    Raises:
        ToolevalError: the catalog cannot be used.

    """
    from pytest_tooleval.broker.surface import command_json

    opened = open_broker(options.catalog, options.mcp_config)
    try:
        text = command_json(opened.broker, operation, request)
    finally:
        opened.close()
    told = json.loads(text)
    if options.format == "json":
        print(_as_encodable(text))
    elif not told["ok"]:
        print("\n".join(_error_lines(told["error"])), file=sys.stderr)
    else:
        lines = _TEXTS[operation] if options.format == "text" else _CONCISE[operation]
        print(printable("\n".join(lines(told))))
    return ANSWERED if told["ok"] else REFUSED


def _as_encodable(text: str) -> str:
    """Return JSON text that standard output can encode: other scripts are escaped where they have to be."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":"))
    return text


def _error_lines(error: Mapping[str, Any]) -> Iterator[str]:
    yield printable(f"{error['type']}: {error['message']}")
    yield printable(f"next: {error['agentInstruction']}")


def _found_lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{told['decision']}: {told['selectedToolRef'] or 'none'} (confidence {told['confidence']:.2f})"
    yield f"  {told['reason']}"
    selected = told.get("selected")
    if selected:
        yield f"  {selected['description']}"
        yield from _argument_lines(selected)
    for other in told["alternatives"]:
        yield f"also: {other['toolRef']}: {other['reason']}"
    yield from _closing_lines(told, [told["nextAction"]])


def _argument_lines(selected: Mapping[str, Any]) -> Iterator[str]:
    if "recommendedCall" in selected:
        yield f"  arguments, for example: {_one_line(selected['recommendedCall']['arguments'])}"
    preview = selected.get("schemaPreview", {"arguments": {}, "omitted": 0})
    yield from (f"  {name}: {line}" for name, line in preview["arguments"].items())
    if preview["omitted"]:
        yield f"  and {preview['omitted']} more"


def _described_lines(told: Mapping[str, Any]) -> Iterator[str]:
    if "part" in told:
        yield f"{told['toolRef']} {told['part']}"
        yield json.dumps(told.get("schemaPart", told.get("parts")), indent=2, ensure_ascii=False)
    else:
        yield f"{told['toolRef']}: {told['hints']['effect']}; its server is {told['serverStatus']}"
        yield f"  {told['description']}"
        yield json.dumps(told.get("inputSchema", told.get("parts")), indent=2, ensure_ascii=False)
    if "exampleCall" in told:
        yield f"for example: {_one_line(told['exampleCall']['arguments'])}"
    yield from _closing_lines(told, [told["nextAction"]])


def _called_lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield json.dumps(told["result"], indent=2, ensure_ascii=False)
    yield from _closing_lines(told, told["nextActions"])


def _closing_lines(told: Mapping[str, Any], actions: list[Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"note: {notice}" for notice in told.get("notices", ()))
    yield from (f"next: {action['instruction']}" for action in actions)


def _concise_found(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{told['decision']} {told['selectedToolRef'] or '-'} {told['confidence']:.2f}"


def _concise_described(told: Mapping[str, Any]) -> Iterator[str]:
    yield _one_line(told.get("schemaPart", told.get("inputSchema", told.get("parts"))))


def _concise_called(told: Mapping[str, Any]) -> Iterator[str]:
    yield _one_line(told["result"])


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_TEXTS = {"findTool": _found_lines, "describeTool": _described_lines, "callTool": _called_lines}
_CONCISE = {"findTool": _concise_found, "describeTool": _concise_described, "callTool": _concise_called}
