"""The metrics of gold sets, over the records of their rows. A rate over no rows is None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

from pytest_tooleval.measures.measurement import Measurement

REFUSALS = frozenset({"no_good_match", "catalog_empty"})

Metrics: TypeAlias = Mapping[str, float | None]


def share(values: Iterable[bool | None]) -> float | None:
    """Return the share of true among the values that are not None; None when there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def discovery_metrics(rows: Sequence[Measurement]) -> Metrics:
    """Return the ranking metrics over rows; rows that errored are left out, rows that found nothing are not.

    `top1`, `top3`: share of matchable rows (all but `no_match`) with an acceptable tool at rank 1, in ranks 1 to 3.
    `mrr`: mean over matchable rows of 1 / rank of the first acceptable tool, 0 when absent (Voorhees 1999, TREC-8).
    `wrongServerRate`: of `wrong_server` rows, share whose rank 1 is the right operation on another server.
    `noMatchCorrectness`: of `no_match` rows, share that were refused.
    `falseRefusalRate`: of matchable rows, share that were refused although a tool fits.
    """
    records = [row.record for row in rows if row.measured]
    matchable = [record for record in records if record["category"] != "no_match"]
    ranks = [record["rank"] for record in matchable]
    return {
        "top1": share(rank == 1 for rank in ranks),
        "top3": share(rank is not None and rank <= 3 for rank in ranks),
        "mrr": fmean(1 / rank if rank else 0.0 for rank in ranks) if ranks else None,
        "wrongServerRate": share(r["wrongServer"] for r in records if r["category"] == "wrong_server"),
        "noMatchCorrectness": share(record["pass"] for record in records if record["category"] == "no_match"),
        "falseRefusalRate": share(record["decision"] in REFUSALS for record in matchable),
    }


def invocation_metrics(rows: Sequence[Measurement]) -> Metrics:
    """Return the rates over scenarios.

    `validArgumentRate`: of calls that are expected to be valid, share that keep the catalogued schema.
    `firstCallSuccess`: of `success` scenarios, share whose first call is ok.
    `repairSuccess`: of `repair` scenarios, share whose first call fails as expected and whose second is ok.
    `schemaErrorRate`, `offlineHandledRate`: of `TOOL_SCHEMA_CHANGED` and `DOWNSTREAM_SERVER_OFFLINE` scenarios,
    share in which the error is surfaced as that.
    `errorClarity`: of observed errors, share with a type and an instruction that does not invite a blind retry.
    """
    records = [row.record for row in rows if row.measured]
    return {
        "validArgumentRate": share(record["validArguments"] for record in records),
        "firstCallSuccess": share(record["firstCallOk"] for record in records),
        "repairSuccess": share(record["repaired"] for record in records),
        "schemaErrorRate": share(record["schemaErrorSurfaced"] for record in records),
        "offlineHandledRate": share(record["offlineHandled"] for record in records),
        "errorClarity": share(clear for record in records for clear in record["clearErrors"]),
    }


def ergonomics_metrics(rows: Sequence[Measurement]) -> Metrics:
    """Return for each demand the share of the cases that it applies to whose answers keep it, on both surfaces."""
    records = [row.record for row in rows if row.measured]
    return {
        "decisionRate": share(record["decisionKnown"] for record in records),
        "instructionRate": share(record["instructive"] for record in records),
        "errorDispositionRate": share(record["errorDisposed"] for record in records),
        "withinBudgetRate": share(record["withinBudget"] for record in records),
        "parityRate": share(record["parity"] for record in records),
    }


def tokens_metrics(rows: Sequence[Measurement]) -> Metrics:
    """Return `startupReduction`: 1 - tokens of the broker's own tools / tokens of all tools (mean over corpora)."""
    return {"startupReduction": _mean(rows, "startupReductionRatio")}


def cache_metrics(rows: Sequence[Measurement]) -> Metrics:
    """Return `redundantCallReduction`: share of the cacheable operations that the cache served."""
    return {"redundantCallReduction": _mean(rows, "redundantCallReduction")}


def _mean(rows: Sequence[Measurement], key: str) -> float | None:
    values = [row.record[key] for row in rows if row.measured and row.record[key] is not None]
    return fmean(values) if values else None


GOLD_METRICS: Mapping[str, Callable[[Sequence[Measurement]], Metrics]] = {
    "discovery": discovery_metrics,
    "invocation": invocation_metrics,
    "ergonomics": ergonomics_metrics,
    "tokens": tokens_metrics,
    "cache": cache_metrics,
}
