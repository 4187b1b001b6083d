"""What the runs of one target had for tools, and what they asked a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tooleval.measures.measurement import Measurement

FIND, DESCRIBE = "findTool", "describeTool"
_SCRIPTED = "mock"


@dataclass(frozen=True, slots=True)
class BrokerTotals:
    """What the measured runs of a target asked their broker beside calls of tools; each trial is a run of its own.

    Attributes:
        finds: searches.
        describes: looks at a tool's schema.
        errors: these and other calls that the broker answered with an error.

    """

    finds: int
    describes: int
    errors: int


@dataclass(frozen=True, slots=True)
class ToolSetTotals:
    """The tools of a target.

    Attributes:
        model: the target's name without what tells its tools.
        way: how tools were reached, `direct` or `broker`.
        distractors: how many tools stood beside those of a case.
        least: fewest tools of a run; None when no run came to have any, as for `most`.
        most: most tools of a run.
        broker: what the broker was asked, None where there was none.

    """

    model: str
    way: str
    distractors: int
    least: int | None
    most: int | None
    broker: BrokerTotals | None


def is_scripted(target: str) -> bool:
    """Whether a target of this name plays scripts, on whatever tools: it is no model."""
    return target.partition("+")[0] == _SCRIPTED


def tool_set_totals(measurements: Iterable[Measurement]) -> ToolSetTotals | None:
    """Return what the runs of one target had for tools, or None when none was begun.

    Args:
        measurements: of their records `toolSet` and `brokerCalls` are read.

    """
    found = list(measurements)
    told = [each.record["toolSet"] for each in found if "toolSet" in each.record]
    if not told:
        return None
    sizes = [each["size"] for each in told if each["size"] is not None]
    asked = [each.record["brokerCalls"] for each in found if each.measured and "brokerCalls" in each.record]
    return ToolSetTotals(
        model=told[0]["model"],
        way=told[0]["tools"],
        distractors=told[0]["distractors"],
        least=min(sizes, default=None),
        most=max(sizes, default=None),
        broker=_broker_totals(call for calls in asked for call in calls) if asked else None,
    )


def _broker_totals(calls: Iterable[Mapping[str, Any]]) -> BrokerTotals:
    counts = Counter[str]()
    for call in calls:
        counts[call["name"]] += 1
        counts["error"] += "error" in call
    return BrokerTotals(counts[FIND], counts[DESCRIBE], counts["error"])
