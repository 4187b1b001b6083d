from __future__ import annotations

import time

import pytest

from pytest_tooleval.measures.matching import ABSENT, call_key, equal, matches, regex_found

SAME = [
    (12, 12.0),
    (0, -0.0),
    ([12.0, 15.0], [12, 15]),
    ({"n": {"m": [1.0]}}, {"n": {"m": [1]}}),
    (10**20, 1e20),
    ("a", "a"),
    (None, None),
    (True, True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([], []),
    ({}, {}),
]
OTHER = [
    (12, "12"),
    (12, 13),
    (True, 1),
    (False, 0),
    (True, "true"),
    (True, 1.0),
    ([True], [1]),
    ({"all": True}, {"all": 1}),
    (None, False),
    (None, "null"),
    (None, 0),
    ("", None),
    ([], {}),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    ({"a": 1}, {"a": 1, "b": None}),
    ({"1": "x"}, {"a": "x"}),
    ("A.txt", "a.txt"),
    ("src/a-b.py", "src/ab.py"),
    ("-5", "5"),
    ("a ", "a"),
    ("é", "e\u0301"),
    (10**17, 10**17 + 1),
    (0.1 + 0.2, 0.3),
    ("1", [1]),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_values_that_are_equal(left, right):
    assert equal(left, right)
    assert equal(right, left)
    assert matches(left, right)
    assert call_key("t", left) == call_key("t", right)
    assert hash(call_key("t", left)) == hash(call_key("t", right))


@pytest.mark.parametrize(("left", "right"), OTHER)
def test_values_that_are_not(left, right):
    assert not equal(left, right)
    assert not equal(right, left)
    assert not matches(left, right)
    assert call_key("t", left) != call_key("t", right)


def test_calls_of_two_tools_are_two_calls():
    assert call_key("a", {}) != call_key("b", {})
    assert call_key("a", {"x": []}) != call_key("a", {"x": {}})


@pytest.mark.parametrize(
    ("expected", "actual", "held"),
    [
        ({"$any": True}, None, True),
        ({"$any": True}, "", True),
        ({"$any": True}, ABSENT, False),
        ({"$absent": True}, ABSENT, True),
        ({"$absent": True}, None, False),
        ({"$default": 10}, ABSENT, True),
        ({"$default": 10}, 10.0, True),
        ({"$default": 10}, 11, False),
        ({"$default": 1}, True, False),
        ({"$default": None}, None, True),
        ({"$equals": {"$any": True}}, {"$any": True}, True),
        ({"$equals": {"$any": True}}, 5, False),
        ({"$equals": 1}, ABSENT, False),
        ({"$regex": "^ab"}, "abc", True),
        ({"$regex": "b"}, "abc", True),
        ({"$regex": "^b"}, "abc", False),
        ({"$regex": "1"}, 1, False),
        ({"$regex": ""}, ABSENT, False),
        ({"$regex": "can't"}, "can\u2019t", False),
        ({"$any_of": ["a", "b"]}, "b", True),
        ({"$any_of": ["a", "b"]}, "c", False),
        ({"$any_of": [1]}, True, False),
        ({"$any_of": [{"$absent": True}, {"$regex": "^x"}]}, ABSENT, True),
        ({"$any_of": [{"$absent": True}, {"$regex": "^x"}]}, "xy", True),
        ({"$any_of": [{"$absent": True}, {"$regex": "^x"}]}, "y", False),
        ({"$any_of": ["a"]}, ABSENT, False),
        ({"$nope": 1}, 1, False),
        ({"$nope": 1}, {"$nope": 1}, False),
        (None, ABSENT, False),
        ({}, ABSENT, False),
        ({"a": {"$any": True}, "b": 1}, {"a": None, "b": 1.0}, True),
        ({"a": {"$any": True}}, {}, False),
        ({"a": {"$absent": True}, "b": 1}, {"b": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, {"$type": "string"}], [1, "x"], True),
        ([1, {"$type": "string"}], [1, "x", 2], False),
        ([{"$any": True}], [], False),
        ([{"$any": True}], {"0": 1}, False),
        ({"a": 1}, [["a", 1]], False),
    ],
)
def test_matchers(expected, actual, held):
    assert matches(expected, actual) is held


TYPED = {
    "{}": {},
    "[]": [],
    "text": "",
    "0": 0,
    "12.0": 12.0,
    "big": 10**400,
    "1.5": 1.5,
    "true": True,
    "null": None,
}


@pytest.mark.parametrize(
    ("type_name", "accepted"),
    [
        ("object", ["{}"]),
        ("array", ["[]"]),
        ("string", ["text"]),
        ("integer", ["0", "12.0", "big"]),
        ("number", ["0", "12.0", "big", "1.5"]),
        ("boolean", ["true"]),
        ("null", ["null"]),
        (["null", "string"], ["text", "null"]),
    ],
)
def test_types_are_those_of_json_schema(type_name, accepted):
    assert [name for name, value in TYPED.items() if matches({"$type": type_name}, value)] == accepted
    assert not matches({"$type": type_name}, ABSENT)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_are_not_finite_are_no_integers(number):
    assert not matches({"$type": "integer"}, number)


@pytest.mark.parametrize(
    ("expected", "actual", "held"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "./src/a.py", True),
        ("src/a.py", "src//a.py", True),
        ("src/a.py", "src/./a.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "/sandbox/tree/src/a.py", True),
        ("/sandbox/tree/src/a.py", "src/a.py", True),
        ("src/", "src", True),
        (".", "/sandbox/tree", True),
        (".", "./", True),
        ("src/a.py", "/src/a.py", False),
        ("src/a.py", "/sandbox/tree2/src/a.py", False),
        ("src/a.py", "src/A.py", False),
        ("src/a-b.py", "src/ab.py", False),
        ("a.py", "src/../a.py", False),
        ("../a", "a", False),
        ("a", "a ", False),
        ("", ".", False),
        ("", "", True),
        ("a", 5, False),
        ("a", None, False),
        ("a", ABSENT, False),
        ("/etc/hosts", "/etc/hosts", True),
    ],
)
def test_spellings_of_one_path(expected, actual, held):
    assert matches({"$path": expected}, actual, "/sandbox/tree") is held


def test_a_catastrophic_pattern_is_given_up():
    started = time.perf_counter()

    assert not regex_found("(a|aa)+$", "a" * 200 + "b")
    assert time.perf_counter() - started < 10
