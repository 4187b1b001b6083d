from __future__ import annotations

from itertools import permutations
from statistics import fmean

import pytest

from pytest_tooleval.measures.ranking import (
    expected_rank,
    first_rank,
    hit_at,
    is_wrong_server,
    leading_operation,
    mean,
    reciprocal_rank,
    split_ref,
    without_repeats,
)


@pytest.mark.parametrize(
    ("ranked", "acceptable", "rank"),
    [
        (["a", "b", "c"], {"a"}, 1),
        (["a", "b", "c"], {"c", "b"}, 2),
        (["a", "b", "c"], {"d"}, None),
        (["a", "b", "c"], set(), None),
        ([], {"a"}, None),
        (["a", "a", "a", "b"], {"b"}, 2),
        (["a", "a"], ["a", "a"], 1),
        (["x@2", "x", "x@2", "b"], {"b"}, 3),
    ],
)
def test_rank_of_the_first_acceptable_ref(ranked, acceptable, rank):
    assert first_rank(ranked, acceptable) == rank
    assert reciprocal_rank(ranked, acceptable) == (0 if rank is None else 1 / rank)
    assert [hit_at(ranked, acceptable, k) for k in (1, 2, 3)] == [rank is not None and rank <= k for k in (1, 2, 3)]


def test_repeats_go_before_the_cut():
    assert without_repeats(["a", "b", "a", "c", "b"]) == ["a", "b", "c"]
    assert hit_at(["a", "a", "a", "b"], {"b"}, 2)


def test_rows_that_found_nothing_count():
    rows = [(["a"], {"a"}), (["b", "c"], {"a"}), ([], {"a"})]
    assert mean(reciprocal_rank(*row) for row in rows) == pytest.approx(1 / 3)
    assert mean(hit_at(*row, 1) for row in rows) == pytest.approx(1 / 3)


def test_a_mean_over_no_rows_is_none():
    assert mean([]) is None


@pytest.mark.parametrize(
    ("scored", "acceptable", "rank"),
    [
        ([("a", 3.0), ("b", 2.0)], {"a"}, 1),
        ([("a", 3.0), ("b", 2.0)], {"b"}, 2),
        ([("a", 3.0), ("b", 2.0)], {"c"}, None),
        ([], {"a"}, None),
        ([("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 0.5), ("e", 0.5)], {"e"}, 3),
        ([("a", 0.5), ("b", 0.5), ("c", 0.5)], {"a", "c"}, 4 / 3),
        ([("x", 9.0), ("a", 0.5), ("b", 0.5)], {"b"}, 2.5),
        ([("a", 0.1 + 0.2), ("b", 0.3)], {"b"}, 1.5),
        ([("a", 2.0), ("a", 1.0), ("b", 1.0)], {"b"}, 2),
        ([("a", 2.0), ("b", 2.0), ("c", 1.0)], {"b", "c"}, 1.5),
    ],
)
def test_expected_rank_under_ties(scored, acceptable, rank):
    assert expected_rank(scored, acceptable) == (None if rank is None else pytest.approx(rank))


@pytest.mark.parametrize("acceptable", [{"d"}, {"a", "d"}, {"b", "c", "e"}])
def test_expected_rank_is_the_mean_over_all_orders(acceptable):
    ranks = [first_rank(["top", *order], acceptable) for order in permutations("abcde")]
    scored = [("top", 2.0), *((ref, 1.0) for ref in "abcde")]
    assert expected_rank(scored, acceptable) == pytest.approx(fmean(rank for rank in ranks if rank))


def test_where_the_gold_stands_among_ties_does_not_matter():
    scored = [(ref, 0.5) for ref in "abcde"]
    assert expected_rank(scored, {"a"}) == expected_rank(scored[::-1], {"a"}) == 3


@pytest.mark.parametrize(
    ("ranked", "acceptable", "wrong"),
    [
        (["jira.search_issues"], ["wiki.search_pages"], True),
        (["jira.searchIssues"], ["wiki.search_pages"], True),
        (["jira.search-issues", "wiki.search_pages"], ["wiki.search_pages"], True),
        (["wiki.search_pages", "jira.search_issues"], ["wiki.search_pages"], False),
        (["jira.create_issue"], ["wiki.search_pages"], False),
        (["wiki.search_users"], ["wiki.search_pages"], False),
        (["jira.search_issues"], ["wiki.search_pages", "jira.list_issues"], False),
        (["jira.search_issues"], [], False),
        ([], ["wiki.search_pages"], False),
    ],
)
def test_the_right_operation_on_the_wrong_server(ranked, acceptable, wrong):
    assert is_wrong_server(ranked, acceptable) is wrong


def test_servers_whose_ids_hold_dots():
    def split(ref: str) -> tuple[str, str]:
        server, _, name = ref.rpartition(".")
        return server, name

    assert is_wrong_server(["io.x.search_a"], ["io.y.search_b"], split)
    assert split_ref("git.files.read") == ("git", "files.read")


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("search_pages", "search"),
        ("SearchPages", "search"),
        ("list-events", "list"),
        ("_get.item", "get"),
        ("HTTPGet", "http"),
        ("run", "run"),
        ("поиск_файлов", "поиск"),
        ("", ""),
    ],
)
def test_leading_operation(name, operation):
    assert leading_operation(name) == operation
