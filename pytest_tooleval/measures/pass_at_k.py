"""pass@k and pass^k: the chance that one of k trials passes, and that all of them do."""

from __future__ import annotations

from math import comb


def pass_at_k(valid: int, passed: int, k: int) -> float | None:
    """Return the chance that at least one of k trials passes: 1 - C(n - c, k) / C(n, k).

    The unbiased estimate of Chen et al. (2021), "Evaluating Large Language Models Trained on Code".

    Args:
        valid: n, trials of one case that were measured.
        passed: c, those of them that passed.
        k: how many trials are made.

    Returns:
        The chance, or None with fewer than k valid trials.

    Raises:
        ValueError: k is less than 1, or more trials passed than were valid.

    """
    _check(valid, passed, k)
    ways = comb(valid, k)
    return None if valid < k else (ways - comb(valid - passed, k)) / ways


def pass_hat_k(valid: int, passed: int, k: int) -> float | None:
    """Return the chance that all of k trials pass, pass^k: C(c, k) / C(n, k).

    The unbiased estimate of Yao et al. (2024), "tau-bench". Arguments, result and errors are those of `pass_at_k`.
    """
    _check(valid, passed, k)
    return None if valid < k else comb(passed, k) / comb(valid, k)


def _check(valid: int, passed: int, k: int) -> None:
    if k < 1:
        raise ValueError(f"k is {k}, expected 1 or more")
    if not 0 <= passed <= valid:
        raise ValueError(f"{passed} of {valid} trials passed")
