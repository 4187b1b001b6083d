from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_tooleval.broker.fusion import reciprocal_rank_fusion


@pytest.mark.parametrize(
    ("rankings", "order"),
    [
        ([["p", "a", "q"], ["b", "c", "q"]], ["q", "b", "p", "a", "c"]),
        ([["x", "y", "m", "n"], ["v", "w", "n", "m"]], ["m", "n", "v", "x", "w", "y"]),
        ([["a", "b"], []], ["a", "b"]),
        ([[], []], []),
        ([], []),
        ([["a", "a", "a", "b"], ["b", "a"]], ["a", "b"]),
    ],
)
def test_order(rankings, order):
    assert [ref for ref, _ in reciprocal_rank_fusion(rankings)] == order


def test_ranks_begin_at_one_and_absence_adds_nothing():
    scores = dict(reciprocal_rank_fusion([["a", "b"], ["b"]]))
    assert scores == {"a": 1 / 61, "b": pytest.approx(1 / 62 + 1 / 61)}


def test_mirrored_ranks_tie_whatever_the_order_of_the_legs():
    legs = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    scores = {score for _, score in reciprocal_rank_fusion(legs)}
    assert len(scores) == 1
    assert reciprocal_rank_fusion(legs) == reciprocal_rank_fusion(legs[::-1])


def test_k_weighs_the_top():
    legs = [["a", "b", "c", "d"], ["b", "c", "d", "e"]]
    assert reciprocal_rank_fusion(legs, k=1)[0] == ("b", pytest.approx(1 / 3 + 1 / 2))


def test_hash_seeds_change_nothing():
    script = (
        "from pytest_tooleval.broker.fusion import reciprocal_rank_fusion as fuse\n"
        "print(fuse([[f't{n}' for n in range(40)], [f't{n}' for n in range(39, -1, -1)]]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1
