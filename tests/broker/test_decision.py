from __future__ import annotations

import pytest

from pytest_tooleval.broker.decision import Evidence, Limits, judge

LIMITS = Limits(relevance=0.3, similarity=0.5, lead=0.1, similarity_lead=0.05)


def lexical(*scores: float) -> list[Evidence]:
    return [Evidence(f"s.{name}", score, score / 10) for name, score in zip("abc", scores, strict=False)]


@pytest.mark.parametrize(
    ("ranked", "decision"),
    [
        ([], "no_good_match"),
        (lexical(2.9), "no_good_match"),
        (lexical(2.9, 1.0), "no_good_match"),
        (lexical(3.0), "use"),
        (lexical(9.0, 5.0), "use"),
        (lexical(9.0, 8.2), "ambiguous"),
        (lexical(9.0, 9.0, 1.0), "ambiguous"),
        (lexical(2.0, 2.0), "no_good_match"),
    ],
)
def test_words_alone(ranked, decision):
    assert judge(ranked, LIMITS).decision == decision


@pytest.mark.parametrize(
    ("best", "following", "decision"),
    [
        (Evidence("s.a", 0, 0, 0.6), Evidence("s.b", 0, 0, 0.5), "use"),
        (Evidence("s.a", 0, 0, 0.49), Evidence("s.b", 0, 0, 0.2), "no_good_match"),
        (Evidence("s.a", 1, 0.1, 0.49), Evidence("s.b"), "no_good_match"),
        (Evidence("s.a", 1, 0.1, 0.51), Evidence("s.b"), "use"),
        (Evidence("s.a", 4, 0.4, 0.1), Evidence("s.b", 1, 0.1, 0.1), "use"),
        (Evidence("s.a", 4, 0.4, 0.62), Evidence("s.b", 4, 0.4, 0.60), "ambiguous"),
        (Evidence("s.a", 4, 0.4, 0.60), Evidence("s.b", 3, 0.3, 0.80), "ambiguous"),
        (Evidence("s.a", 4, 0.4, 0.70), Evidence("s.b", 4, 0.4, None), "use"),
    ],
)
def test_words_and_meaning(best, following, decision):
    assert judge([best, following], LIMITS).decision == decision


def test_confidence_grows_with_relevance_and_lead():
    def confidence(*scores: float) -> float:
        return judge(lexical(*scores), LIMITS).confidence

    assert 0 < confidence(1, 0.9) < confidence(4, 3.9) < confidence(4, 2) < confidence(8, 4) < confidence(8) < 1
    assert judge([], LIMITS).confidence == 0


@pytest.mark.parametrize(
    ("ranked", "reason"),
    [
        ([], "no tool holds a word of the query"),
        (
            lexical(2.0),
            "the nearest tool, s.a, holds too little of the query (relevance 0.20, needed 0.30)",
        ),
        (
            [Evidence("s.a", 1, 0.1, 0.4)],
            (
                "the nearest tool, s.a, holds too little of the query (relevance 0.10, needed 0.30; "
                "similarity 0.40, needed 0.50)"
            ),
        ),
        (lexical(9.0, 9.0), "s.a and s.b fit about equally well"),
        (lexical(9.0, 2.0), "s.a fits with relevance 0.90, ahead of s.b"),
        (
            [Evidence("s.a", 9, 0.9, 0.8)],
            "s.a fits with relevance 0.90 and similarity 0.80, and no other tool was found",
        ),
    ],
)
def test_reasons(ranked, reason):
    assert judge(ranked, LIMITS).reason == reason
