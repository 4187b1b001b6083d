"""`tooleval lint`: what is wrong with the tools of a catalog."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tooleval.measures.text import printable

if TYPE_CHECKING:
    from pytest_tooleval.broker.lint import Finding
    from pytest_tooleval.cases.catalog import Catalog

CLEAN, FOUND = 0, 1
_FORMATS = ("text", "json")


def run(arguments: Sequence[str]) -> int:
    """Print the findings; 1 when there is one.

    Raises:
        ToolevalError: the catalog cannot be used, or an option names what there is not.

    """
    from pytest_tooleval.broker.lint import LintSettings, lint
    from pytest_tooleval.cases.catalog import load_catalogs

    given = _parse(arguments)
    settings = LintSettings(frozenset(given.disable), given.token_budget, _estimator(given.token_estimator))
    catalog = load_catalogs(given.catalog)
    findings = lint(catalog, settings)
    lines = _json_lines if given.format == "json" else _text_lines
    for line in lines(catalog, findings):
        print(printable(line))
    return FOUND if findings else CLEAN


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    from pytest_tooleval.broker.lint import RULES, TOKEN_BUDGET

    width = max(map(len, RULES)) + 2
    parser = argparse.ArgumentParser(
        prog="tooleval lint",
        description="Find what is wrong with the tools of a catalog: what keeps a model or a search from using\n"
        "them, and what a provider's API refuses. Exits with 1 when something was found.",
        epilog="\n".join(["rules:", *(f"  {rule:<{width}}{what}" for rule, what in RULES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "catalog", type=Path, nargs="+", metavar="FILE", help="a catalog, a tools/list result, or a folder of them"
    )
    parser.add_argument(
        "--disable", action="append", default=[], metavar="RULE", help="leave a rule out; may be repeated"
    )
    parser.add_argument(
        "--token-budget",
        type=_whole,
        default=TOKEN_BUDGET,
        metavar="N",
        help=f"most tokens of one tool's definition (default: {TOKEN_BUDGET})",
    )
    parser.add_argument(
        "--token-estimator",
        default="chars/4",
        metavar="NAME",
        help="counts tokens: chars/4, o200k or cl100k (default: chars/4)",
    )
    parser.add_argument("--format", choices=_FORMATS, default=_FORMATS[0], help="default: text")
    return parser.parse_args(arguments)


def _whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def _estimator(name: str) -> Any:
    from pytest_tooleval.measures.token_estimates import EstimatorRegistry, register_builtin_estimators

    registry = EstimatorRegistry()
    register_builtin_estimators(registry)
    return registry.open(name)


def _text_lines(catalog: Catalog, findings: Sequence[Finding]) -> Iterator[str]:
    from pytest_tooleval.broker.lint import counts_of

    for finding in findings:
        yield f"{finding.ref}: {finding.rule}: {finding.message}. {finding.fix}"
    servers, tools = len(catalog.servers), len(catalog.tools)
    looked_at = f"{_count(tools, 'tool')} on {_count(servers, 'server')}"
    if not findings:
        yield f"{looked_at}: nothing found"
        return
    counts = ", ".join(f"{rule} {count}" for rule, count in counts_of(findings).items())
    touched = len({finding.ref for finding in findings})
    yield f"{looked_at}: {_count(len(findings), 'finding')} in {_count(touched, 'tool')}: {counts}"


def _json_lines(catalog: Catalog, findings: Sequence[Finding]) -> Iterator[str]:
    import json

    from pytest_tooleval.broker.lint import counts_of

    told = {
        "tools": len(catalog.tools),
        "servers": len(catalog.servers),
        "counts": counts_of(findings),
        "findings": [finding.to_plain() for finding in findings],
    }
    yield json.dumps(told, indent=2)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
