from __future__ import annotations

import random
from statistics import fmean

import pytest

from pytest_tooleval.measures.gold import (
    GOLD_METRICS,
    cache_metrics,
    discovery_metrics,
    ergonomics_metrics,
    invocation_metrics,
    share,
    tokens_metrics,
)
from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.measures.ranking import first_rank


def measured(family: str, row_id: str, verdict: str = "passed", **record: object) -> Measurement:
    return Measurement(family, row_id, "evals", "f", 0, row_id, "t", verdict=verdict, record=record)


def row(category: str, rank: int | None, decision: str = "use", *, wrong: bool | None = None) -> Measurement:
    hit = decision in {"no_good_match", "catalog_empty"} if category == "no_match" else rank == 1
    fields = {"category": category, "rank": rank, "decision": decision, "wrongServer": wrong, "pass": hit}
    return measured("discovery", "r", "passed" if hit else "missed", **fields)


ERRORED = Measurement("discovery", "n", "evals", "f", 0, "e", "t", verdict="error", reason="gone")
SKIPPED = Measurement("discovery", "n", "evals", "f", 0, "s", "t", verdict="skipped", reason="no")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], 0.5),
        ([True, None, None], 1.0),
        ([None], None),
        ([], None),
        ([False, False], 0.0),
        ([True, True, False], 2 / 3),
    ],
)
def test_a_share_is_of_what_is_known(values, expected):
    assert share(iter(values)) == expected


NOTHING = dict.fromkeys(("top1", "top3", "mrr", "wrongServerRate", "noMatchCorrectness", "falseRefusalRate"))


@pytest.mark.parametrize(
    ("rows", "metrics"),
    [
        ([], {}),
        ([ERRORED, SKIPPED], {}),
        (
            [row("lexical", 1), row("lexical", None), row("semantic", None, "no_good_match")],
            {"top1": 1 / 3, "top3": 1 / 3, "mrr": 1 / 3, "falseRefusalRate": 1 / 3},
        ),
        (
            [row("lexical", 1), row("ambiguous", 2), row("semantic", 3), row("lexical", 4), ERRORED],
            {"top1": 0.25, "top3": 0.75, "mrr": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, "falseRefusalRate": 0.0},
        ),
        (
            [row("no_match", None, "no_good_match"), row("no_match", None, "catalog_empty"), row("no_match", 1)],
            {"noMatchCorrectness": 2 / 3},
        ),
        ([row("no_match", None, "empty_query")], {"noMatchCorrectness": 0.0}),
        (
            [
                row("wrong_server", 1, wrong=False),
                row("wrong_server", 2, wrong=True),
                row("wrong_server", None, wrong=False),
                row("lexical", 1),
            ],
            {"top1": 0.5, "top3": 0.75, "mrr": 2.5 / 4, "wrongServerRate": 1 / 3, "falseRefusalRate": 0.0},
        ),
    ],
)
def test_discovery(rows, metrics):
    assert discovery_metrics(rows) == pytest.approx({**NOTHING, **metrics})


def scenario(**fields: object) -> Measurement:
    nothing = dict.fromkeys(("validArguments", "firstCallOk", "repaired", "schemaErrorSurfaced", "offlineHandled"))
    return measured("invocation", "s", **{**nothing, "clearErrors": [], **fields})


@pytest.mark.parametrize(
    ("rows", "metrics"),
    [
        ([], {}),
        ([ERRORED], {}),
        ([scenario(validArguments=True, firstCallOk=True)], {"validArgumentRate": 1, "firstCallSuccess": 1}),
        (
            [
                scenario(validArguments=True, firstCallOk=True),
                scenario(validArguments=False, firstCallOk=False, clearErrors=[True]),
                scenario(validArguments=True, repaired=True, clearErrors=[True]),
                scenario(validArguments=True, repaired=False, clearErrors=[True, False]),
                scenario(schemaErrorSurfaced=True, clearErrors=[True]),
                scenario(schemaErrorSurfaced=False),
                scenario(offlineHandled=True, clearErrors=[False]),
                scenario(clearErrors=[True]),
                ERRORED,
            ],
            {
                "validArgumentRate": 3 / 4,
                "firstCallSuccess": 1 / 2,
                "repairSuccess": 1 / 2,
                "schemaErrorRate": 1 / 2,
                "offlineHandledRate": 1,
                "errorClarity": 5 / 7,
            },
        ),
    ],
)
def test_invocation(rows, metrics):
    names = (
        "validArgumentRate",
        "firstCallSuccess",
        "repairSuccess",
        "schemaErrorRate",
        "offlineHandledRate",
        "errorClarity",
    )
    assert invocation_metrics(rows) == pytest.approx({**dict.fromkeys(names), **metrics})


def ergonomics(*demands: bool | None) -> Measurement:
    names = ("decisionKnown", "instructive", "errorDisposed", "withinBudget", "parity")
    return measured("ergonomics", "e", **dict(zip(names, demands, strict=True)))


@pytest.mark.parametrize(
    ("rows", "rates"),
    [
        ([], (None,) * 5),
        ([ERRORED, SKIPPED], (None,) * 5),
        ([ergonomics(True, True, None, True, True)], (1, 1, None, 1, 1)),
        (
            [
                ergonomics(True, False, None, True, True),
                ergonomics(False, True, True, True, False),
                ergonomics(True, True, False, False, False),
                SKIPPED,
            ],
            (2 / 3, 2 / 3, 1 / 2, 2 / 3, 1 / 3),
        ),
    ],
)
def test_ergonomics(rows, rates):
    names = ("decisionRate", "instructionRate", "errorDispositionRate", "withinBudgetRate", "parityRate")
    assert ergonomics_metrics(rows) == pytest.approx(dict(zip(names, rates, strict=True)))


@pytest.mark.parametrize(
    ("metrics", "key", "name"),
    [
        (tokens_metrics, "startupReductionRatio", "startupReduction"),
        (cache_metrics, "redundantCallReduction", "redundantCallReduction"),
    ],
)
@pytest.mark.parametrize(
    ("values", "expected"), [([], None), ([None], None), ([0.5], 0.5), ([0.5, None, 0.25], 0.375), ([-1.0], -1.0)]
)
def test_workloads(metrics, key, name, values, expected):
    rows = [measured("tokens", "t", **{key: value}) for value in values]
    assert metrics([*rows, ERRORED]) == {name: expected}


def test_every_family_with_gates_has_its_metrics():
    assert set(GOLD_METRICS) == {"discovery", "invocation", "ergonomics", "tokens", "cache"}


def random_rankings(seed: int) -> list[tuple[list[str], set[str]]]:
    """Return rankings without ties of up to 20 refs, each with the refs that are relevant to it."""
    chance = random.Random(seed)
    refs = [f"s{n % 7}.tool_{n}" for n in range(20)]
    cases = []
    for _ in range(60):
        ranked = chance.sample(refs, chance.randint(0, 20))
        cases.append((ranked, set(chance.sample(refs, chance.randint(1, 4)))))
    return cases


@pytest.mark.parametrize("seed", range(5))
def test_ranking_metrics_agree_with_ir_measures(seed):
    ir_measures = pytest.importorskip("ir_measures")
    cases = random_rankings(seed)
    ours = discovery_metrics([row("lexical", first_rank(ranked, fitting)) for ranked, fitting in cases])
    qrels = [ir_measures.Qrel(str(n), ref, 1) for n, (_, fitting) in enumerate(cases) for ref in sorted(fitting)]
    run = [
        ir_measures.ScoredDoc(str(n), ref, 100.0 - place)
        for n, (ranked, _) in enumerate(cases)
        for place, ref in enumerate(ranked)
    ]
    measures = [ir_measures.Success @ 1, ir_measures.Success @ 3, ir_measures.RR]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)

    for name, measure in zip(("top1", "top3", "mrr"), measures, strict=True):
        assert ours[name] == pytest.approx(theirs[measure], abs=1e-9), name
        assert 0 < ours[name] < 1


@pytest.mark.parametrize("seed", range(5))
def test_no_ranking_of_repeats_gets_more_than_its_first_places(seed):
    chance = random.Random(seed)
    cases = [([chance.choice("abcde") for _ in range(12)], {"a"}) for _ in range(50)]
    once = [(list(dict.fromkeys(ranked)), fitting) for ranked, fitting in cases]
    metrics = [
        discovery_metrics([row("lexical", first_rank(ranked, fitting)) for ranked, fitting in rankings])
        for rankings in (cases, once)
    ]
    assert metrics[0] == metrics[1]
    assert metrics[0]["mrr"] == pytest.approx(
        fmean(1 / (ranked.index("a") + 1) if "a" in ranked else 0 for ranked, _ in once)
    )
