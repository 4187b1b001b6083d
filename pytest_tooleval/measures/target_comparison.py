"""Two targets over the same cases: what differs, how sure that is, and what could have been seen at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal, TypeAlias

from pytest_tooleval.measures.compared_metrics import METRICS, Metric, Side, Trial, side
from pytest_tooleval.measures.detectable import detectable_mean_difference, detectable_share_difference
from pytest_tooleval.measures.intervals import CaseMean, Interval, mean_value, share_difference_interval
from pytest_tooleval.measures.mean_difference import FEWEST_CASES, mean_difference_interval
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.quantiles import ALPHA
from pytest_tooleval.measures.significance import holm, sign_flip_p_value
from pytest_tooleval.measures.tool_sets import is_scripted

SCRIPTED_NOTE = "mock plays the fixtures' scripts: a difference from it is none between two models"
NO_DIFFERENCE: Literal["no difference shown"] = "no difference shown"

Finding: TypeAlias = Literal["better", "worse", "higher", "lower", "no difference shown"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How a metric differs between two targets, over the cases that have a value on both.

    Attributes:
        metric: its name in the result file.
        pairs: cases that are compared; without any, what follows is None, 0 or empty.
        reference: mean of the first target.
        target: mean of the second.
        difference: the second less the first.
        interval: its interval of 95 % confidence, see `agreeing`; None where the cases do not allow one.
        p_value: of the paired test, exact McNemar where each case differs wholly or not at all.
        corrected_p_value: after Holm's correction over the pairs of the comparison; None where none is made.
        verdict: what the difference is, in words.
        rises: cases in which the second target is higher.
        falls: cases in which it is lower.
        detectable: the smallest difference that these cases could have shown; None where that cannot be said.
        reason: why there is no difference or no interval, else empty.

    """

    metric: str
    pairs: int = 0
    reference: float | None = None
    target: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    corrected_p_value: float | None = None
    verdict: Finding | None = None
    rises: int = 0
    falls: int = 0
    detectable: float | None = None
    reason: str = ""

    @property
    def discordant(self) -> int:
        """Cases that come out differently."""
        return self.rises + self.falls


@dataclass(frozen=True, slots=True)
class TargetComparison:
    """A target against another.

    Attributes:
        family: the family of the cases.
        reference: the first target, which the other is compared with.
        target: the other.
        cases: cases that were measured on either.
        differences: one for each metric, the primary one first.
        corrected_over: over how many pairs the primary metric's p value is corrected.
        notes: what to know before reading it.

    """

    family: str
    reference: str
    target: str
    cases: int
    differences: tuple[Difference, ...]
    corrected_over: int = 1
    notes: tuple[str, ...] = ()

    @property
    def primary(self) -> Difference:
        """The difference that the comparison is about."""
        return self.differences[0]

    @property
    def is_scripted(self) -> bool:
        """Whether a side of it is no model."""
        return is_scripted(self.reference) or is_scripted(self.target)


def compare_targets(
    family: str, measurements: Iterable[Measurement], targets: Sequence[str]
) -> list[TargetComparison]:
    """Compare every two targets of a run, the earlier one as the reference.

    Args:
        family: `tool_use` or `discovery`.
        measurements: of that family.
        targets: their names, in the order of the options.

    """
    trials: dict[str, list[Trial]] = {target: [] for target in targets}
    for m in measurements:
        if m.measured and m.target in trials:
            trials[m.target].append(Trial((m.corpus, m.file, m.id), m.verdict == "passed", m.record))
    sides = [side(family, target, found) for target, found in trials.items()]
    return compare_sides(family, list(combinations(sides, 2)))


def compare_sides(family: str, pairs: Sequence[tuple[Side, Side]]) -> list[TargetComparison]:
    """Compare each second side with the first.

    With several pairs the p values of the primary metric (pass rate; top-1) are corrected over the pairs by Holm's
    method, so that the chance of any false difference among them stays at 5 %. Pairs with the scripted target are
    left out of that, and the other metrics are not corrected.

    Args:
        family: `tool_use` or `discovery`.
        pairs: reference and target of each comparison.

    """
    found = [_compare(family, reference, target) for reference, target in pairs]
    counting = [not comparison.is_scripted and comparison.primary.p_value is not None for comparison in found]
    if sum(counting) < 2:
        return found
    p_values = [c.primary.p_value if counts else None for c, counts in zip(found, counting, strict=True)]
    corrected = zip(found, holm(p_values), strict=True)
    return [c if p_value is None else _corrected(c, p_value, sum(counting)) for c, p_value in corrected]


def _corrected(comparison: TargetComparison, p_value: float, over: int) -> TargetComparison:
    metric = METRICS[comparison.family][0]
    primary = replace(comparison.primary, corrected_p_value=p_value)
    primary = replace(primary, verdict=_verdict(metric, primary, scripted=False))
    return replace(comparison, differences=(primary, *comparison.differences[1:]), corrected_over=over)


def _compare(family: str, reference: Side, target: Side) -> TargetComparison:
    names = reference.target, target.target
    scripted = any(map(is_scripted, names))
    return TargetComparison(
        family,
        *names,
        len(reference.cases | target.cases),
        tuple(_difference(metric, reference, target, scripted=scripted) for metric in METRICS[family]),
        notes=(SCRIPTED_NOTE,) if scripted else (),
    )


def _difference(metric: Metric, reference: Side, target: Side, *, scripted: bool) -> Difference:
    before, now = reference.means[metric.name], target.means[metric.name]
    cases = [case for case in before if case in now]
    if not cases:
        nothing_common = reference.cases.isdisjoint(target.cases)
        what = "was measured" if nothing_common else f"has a value of {metric.name}"
        return Difference(metric.name, reason=f"no case {what} on both")
    found = _estimate(metric, [before[case] for case in cases], [now[case] for case in cases])
    return replace(found, verdict=_verdict(metric, found, scripted=scripted))


def _estimate(metric: Metric, before: Sequence[CaseMean], now: Sequence[CaseMean]) -> Difference:
    differences = [other.value - one.value for one, other in zip(before, now, strict=True)]
    p_value = sign_flip_p_value(differences)
    interval = _interval(metric, before, now, differences)
    if interval is not None and p_value is not None:
        interval = agreeing(interval, fmean(differences), p_value)
    detectable = detectable_mean_difference if metric.kind == "amount" else detectable_share_difference
    return Difference(
        metric.name,
        len(differences),
        mean_value(before),
        mean_value(now),
        fmean(differences),
        interval,
        p_value,
        rises=sum(difference > 0 for difference in differences),
        falls=sum(difference < 0 for difference in differences),
        detectable=detectable(differences),
        reason="" if interval else _why_no_interval(differences),
    )


def _interval(
    metric: Metric, before: Sequence[CaseMean], now: Sequence[CaseMean], differences: Sequence[float]
) -> Interval | None:
    """Return the interval of a difference; of graded values that of shares is safe where too few cases differ."""
    differing = sum(difference != 0 for difference in differences)
    if metric.kind == "share" or (metric.kind == "graded" and differing < FEWEST_CASES):
        return share_difference_interval(before, now)
    return mean_difference_interval(differences)


def agreeing(interval: Interval, difference: float, p_value: float) -> Interval:
    """Return an interval that agrees with the test about 0: the test is exact, the interval is not.

    Where the test does not reject, 0 is taken in; where it does, the interval ends at 0 on that side at the latest.

    Args:
        interval: of a difference.
        difference: the difference.
        p_value: of the test that it is 0.

    """
    if p_value > ALPHA:
        return interval.reaching(0.0)
    if difference > 0:
        return replace(interval, low=max(interval.low, 0.0))
    return replace(interval, high=min(interval.high, 0.0))


def _why_no_interval(differences: Sequence[float]) -> str:
    if len(differences) < FEWEST_CASES:
        return f"no interval: fewer than {FEWEST_CASES} cases"
    return "no interval: the difference is the same in every case"


def _verdict(metric: Metric, found: Difference, *, scripted: bool) -> Finding:
    """Return in words what a difference is; the p value, corrected where it is, says whether it is shown."""
    p_value = found.p_value if found.corrected_p_value is None else found.corrected_p_value
    if p_value is None or p_value > ALPHA or found.difference is None:
        return NO_DIFFERENCE
    direction: Literal["higher", "lower"] = "higher" if found.difference > 0 else "lower"
    if scripted:
        return direction
    return "better" if direction == metric.better else "worse"
