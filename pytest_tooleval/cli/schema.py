"""`tooleval schema`: a published JSON Schema on standard output."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pytest_tooleval.cases.schema import SCHEMA_NAMES, schema_text


def run(arguments: Sequence[str]) -> int:
    """Print the named schema.

    Raises:
        ToolevalError: there is no schema of this name.

    """
    parser = argparse.ArgumentParser(
        prog="tooleval schema",
        description="Print the JSON Schema of a file format, for an editor or a validator.",
        epilog="Example: tooleval schema fixture > evals/fixture.schema.json",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help=f"one of: {', '.join(SCHEMA_NAMES)}")
    print(schema_text(parser.parse_args(arguments).name), end="")
    return 0
