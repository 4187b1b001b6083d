"""`tooleval describe`: the exact schema of a tool."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tooleval.cli.broker_command import answer, broker_parser


def run(arguments: Sequence[str]) -> int:
    """Print what the broker says of a tool; 1 when there is no such tool."""
    parser = broker_parser(
        "describe",
        "Show a tool's exact schema and an example call, as the reference broker's describeTool does.",
        "tooleval describe --catalog evals/catalog/tools.json slack.post_message",
    )
    parser.add_argument("ref", metavar="REF", help="the tool, as server.name")
    parser.add_argument("--part", metavar="POINTER", help="JSON pointer into a schema too large to show whole")
    options = parser.parse_args(arguments)
    part = {} if options.part is None else {"part": options.part}
    return answer(options, "describeTool", {"toolRef": options.ref, **part})
