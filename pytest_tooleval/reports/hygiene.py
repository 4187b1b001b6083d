"""Rows that do not measure what they say."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tooleval.measures.measurement import Measurement


def hygiene_findings(rows: Sequence[Measurement]) -> list[dict[str, str]]:
    """Return `{intent, category, issue}` for each discovery row that is flagged, once whatever it was run on."""
    findings: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        issue = row.record.get("hygiene")
        if issue:
            finding = {"intent": row.record["intent"], "category": row.record["category"], "issue": issue}
            findings.setdefault((row.file, row.id), finding)
    return list(findings.values())
