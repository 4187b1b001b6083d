from __future__ import annotations

import pytest

from pytest_tooleval.cases.pattern import MOST_EXPANDED, expanded_size, regex_fault

TOO_MANY = f"its counted repeats come to more than {MOST_EXPANDED} items when they are written out"


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("", 0),
        ("abc", 3),
        (r"\d{4}-\d{2}", 7),
        ("a{3,5}", 5),
        ("a{3,}", 3),
        ("a{,4}", 4),
        ("[a-z]{10}", 10),
        (r"[\]x]{2}", 2),
        ("(ab){3}", 9),
        ("((a{9}){9}){9}", 819),
        ("x{", 2),
        ("{2}", 0),
        (")", 1),
    ],
)
def test_counted_repeats_multiply_from_the_inside_out(pattern, size):
    assert expanded_size(pattern) == size


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(?:ab|c){1000000}", TOO_MANY),
        ("(?:(?:ab|c){9999}){9999}", TOO_MANY),
        ("(?:(?:a{999}){999}){999}", TOO_MANY),
        ("a{" + "9" * 5000 + "}", TOO_MANY),
        ("(", "missing ) at position 1"),
        ("[a-z]+@[a-z]{1,63}(?:[.][a-z]{1,63}){1,8}", ""),
        (r"\{1000000\}", ""),
        ("", ""),
    ],
)
def test_a_pattern_that_would_take_the_process_down_is_refused(pattern, fault):
    assert regex_fault(pattern) == fault
