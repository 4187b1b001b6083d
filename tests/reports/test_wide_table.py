from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_tooleval.reports.tables import rendered
from pytest_tooleval.reports.wide_table import WideTable


def table(*columns: str, value: str = "1,000") -> WideTable:
    made = WideTable(["metric", "n"], columns)
    made.add_cells("tokens", "1", *(value for _ in columns))
    made.add_cells("pass rate", "2", *("0.50" for _ in columns))
    return made


def shown(made: WideTable, width: int = 80) -> list[str]:
    return rendered([made], width, color=False).splitlines()


def test_what_fits_is_one_table():
    assert shown(table("a:m", "b:m")) == [
        "metric    n   a:m   b:m",
        "tokens    1 1,000 1,000",
        "pass rate 2  0.50  0.50",
    ]


def test_what_does_not_fit_goes_on_below_with_its_labels():
    long = [letter * 33 for letter in "abc"]
    assert shown(table(*long)) == [
        f"metric    n {long[0]} {long[1]}",
        f"tokens    1 {'1,000':>33} {'1,000':>33}",
        f"pass rate 2 {'0.50':>33} {'0.50':>33}",
        "",
        f"metric    n {long[2]}",
        f"tokens    1 {'1,000':>33}",
        f"pass rate 2 {'0.50':>33}",
    ]
    assert len(shown(table(*long), width=200)) == 3


def test_a_table_that_fits_to_the_last_column_is_not_parted():
    assert len(shown(table("a" * 33, "b" * 34))) == 3
    assert len(shown(table("a" * 34, "b" * 34))) == 7


def test_a_table_without_columns_has_its_labels():
    assert shown(table())[0] == "metric    n"


@given(st.lists(st.text("ab:+界", min_size=1, max_size=60), min_size=1, max_size=8), st.integers(80, 200))
def test_no_value_is_ever_cut(columns, width):
    text = "\n".join(shown(table(*columns, value="123,456,789"), width))
    assert text.count("123,456,789") == len(columns)
    assert all(column in text for column in columns)
