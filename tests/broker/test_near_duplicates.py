from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.broker.near_duplicates import LEAST_SIMILARITY, Twin, near_duplicates
from pytest_tooleval.cases.catalog import CatalogTool

OTHERS = (
    "Delete a branch of a repository",
    "Send an e-mail to a customer",
    "Restart the deployment in a cluster",
    "List invoices of an account by month",
)


def tools(*descriptions: str) -> list[CatalogTool]:
    return [CatalogTool(f"s.t{number}", "s", f"t{number}", "", text) for number, text in enumerate(descriptions)]


def test_the_same_text_but_for_case_and_blanks_is_a_duplicate() -> None:
    found = near_duplicates(tools(*OTHERS, "Delete  a branch\nof a Repository", OTHERS[0]))
    assert found == {"s.t4": Twin("s.t0", 1.0), "s.t5": Twin("s.t0", 1.0)}


def test_texts_of_nearly_the_same_words_are_near_duplicates() -> None:
    long = (
        "Add a footnote {} specific text with proper superscript formatting, so that footnotes display correctly "
        "in every word processor, keep their numbers when paragraphs move and survive a conversion to another format"
    )
    found = near_duplicates(tools(*OTHERS, long.format("after"), long.format("before"), long.format("amid")))
    assert found["s.t5"] == Twin("s.t4", 1.0)  # to the search `after` and `before` are no words
    assert LEAST_SIMILARITY <= found["s.t6"].similarity < 1
    assert set(found) == {"s.t5", "s.t6"}


def test_a_word_that_matters_tells_tools_apart() -> None:
    assert near_duplicates(tools(*OTHERS, "List invoices", "List customers", "Delete invoices")) == {}


def test_a_text_within_a_longer_one_is_no_duplicate() -> None:
    short = "Search the wiki"
    longer = f"{short} by author, label, space, date of the last change and number of comments, newest first"
    assert near_duplicates(tools(*OTHERS, short, longer)) == {}


def test_tools_without_a_description_are_like_nothing() -> None:
    assert near_duplicates(tools("", " \n", "", "...", "the")) == {}


def test_the_threshold_can_be_set() -> None:
    pair = tools(*OTHERS, "Get the logs of a pod", "Get the status of a pod")
    assert near_duplicates(pair) == {}
    assert set(near_duplicates(pair, 0.3)) == {"s.t5"}


def test_many_tools_are_compared_in_a_moment() -> None:
    many = tools(
        *(f"Handle object {number % 700} of kind {number % 13} in region {number % 7}" for number in range(2000))
    )
    started = time.perf_counter()
    near_duplicates(many)
    assert time.perf_counter() - started < 5


@given(st.lists(st.text("ab c", max_size=12), max_size=12))
def test_the_twin_is_an_earlier_tool(texts: list[str]) -> None:
    given_tools = tools(*texts)
    places = {tool.ref: place for place, tool in enumerate(given_tools)}
    for ref, twin in near_duplicates(given_tools).items():
        assert places[twin.ref] < places[ref]
        assert LEAST_SIMILARITY <= twin.similarity <= 1
