"""`tooleval call`: a call of a tool, checked as a broker checks it and answered by a live or a simulated server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.jsontext import decode_document
from pytest_tooleval.cli.broker_command import answer, broker_parser


def run(arguments: Sequence[str]) -> int:
    """Print what the broker answers to a call; 1 when it is an error.

    Raises:
        CaseError: the arguments are not JSON.

    """
    parser = broker_parser(
        "call",
        "Check a call against a tool's schema and make it, as the reference broker's callTool does. "
        "Without --mcp-config the servers are simulated: nothing leaves this process, and every result says so.",
        "tooleval call --catalog evals/catalog/tools.json slack.post_message "
        """--arguments '{"channel": "#dev", "text": "hi"}'""",
    )
    parser.add_argument("ref", metavar="REF", help="the tool, as server.name")
    parser.add_argument("--arguments", default="{}", metavar="JSON", help="a JSON object (default: {})")
    options = parser.parse_args(arguments)
    return answer(options, "callTool", {"toolRef": options.ref, "arguments": _decoded(options.arguments)})


def _decoded(text: str) -> Any:
    document = decode_document(text, Path("--arguments"))
    values = [element.value for element in document.elements]
    return values if document.is_list else values[0]
