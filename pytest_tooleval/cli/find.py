"""`tooleval find`: the tool of a catalog for a task."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tooleval.cli.broker_command import answer, broker_parser


def run(arguments: Sequence[str]) -> int:
    """Print what the broker finds; a refusal to choose is an answer too, and 0."""
    parser = broker_parser(
        "find",
        "Find the tool of a catalog for a task, as the reference broker's findTool does.",
        "tooleval find --catalog evals/catalog/tools.json 'send a chat message'",
    )
    parser.add_argument("query", metavar="QUERY", help="what is to be done, in words")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="most tools in the answer, from 1 to 25 (default: 5)"
    )
    options = parser.parse_args(arguments)
    limit = {} if options.limit is None else {"limit": options.limit}
    return answer(options, "findTool", {"query": options.query, **limit})
