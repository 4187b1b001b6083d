"""Measurements of tool use and discovery, made by hand."""

from __future__ import annotations

from typing import Any

from pytest_tooleval.measures.measurement import Measurement, Verdict

_VERDICTS: dict[str, Verdict] = {"+": "passed", "-": "missed", "E": "error", "s": "skipped"}


def tool_use_trials(target: str, *signs: str, **record: Any) -> list[Measurement]:
    """Return the trials of cases `c0`, `c1`, …: for each a text with a sign for each trial.

    `+` passed, `-` missed, `E` errored, `s` was skipped.
    """
    fields = {"accuracy": None, "calls": 2, "errors": 0, "tokens": 100, "latencySeconds": 1.0} | record
    return [
        Measurement(
            "tool_use",
            f"c{place}[{target}-t{trial}]",
            "evals",
            "evals/fixtures/a.json",
            place,
            f"c{place}",
            target,
            trial,
            verdict=_VERDICTS[sign],
            record=fields | {"pass": {"+": True, "-": False}.get(sign)},
        )
        for place, trials in enumerate(signs)
        for trial, sign in enumerate(trials, start=1)
    ]


def discovery_rows(target: str, *ranks: int | None) -> list[Measurement]:
    """Return matchable rows `r0`, `r1`, … with the rank of their acceptable tool."""
    return [
        Measurement(
            "discovery",
            f"r{place}[{target}]",
            "evals",
            "evals/discovery/a.jsonl",
            place,
            f"r{place}",
            target,
            tags=("lexical",),
            verdict="passed" if rank == 1 else "missed",
            record={"rank": rank, "category": "lexical", "pass": rank == 1},
        )
        for place, rank in enumerate(ranks)
    ]
