"""What a summary says of the tools in a suite's catalogs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_tooleval.broker.lint import Finding, counts_of

_MOST_NAMED = 3


def lint_lines(catalog: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line that says how much was found, and one for each rule with its first tools; none for no finding.

    Args:
        catalog: where the catalog is, as it is given to `tooleval lint`.
        findings: what `lint` returned for it.

    """
    if not findings:
        return
    touched = len({finding.ref for finding in findings})
    yield f"lint: {len(findings)} findings in {touched} tools; 'tooleval lint {catalog}' says what to do"
    for rule, count in counts_of(findings).items():
        refs = [finding.ref for finding in findings if finding.rule == rule]
        more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
        yield f"lint: {rule}: {', '.join(refs[:_MOST_NAMED])}{more}"
