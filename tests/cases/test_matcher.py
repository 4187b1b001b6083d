from __future__ import annotations

import pytest

from pytest_tooleval.cases.matcher import matcher_faults, matcher_of, regex_fault
from pytest_tooleval.cases.schema import Fault


@pytest.mark.parametrize(
    ("value", "matcher"),
    [
        ({"$any": True}, ("$any", True)),
        ({"$nope": 1}, ("$nope", 1)),
        ({"$any": True, "x": 1}, None),
        ({"any": True}, None),
        ({}, None),
        ("$any", None),
        (["$any"], None),
        (None, None),
    ],
)
def test_an_object_whose_only_key_begins_with_a_dollar_sign(value, matcher):
    assert matcher_of(value) == matcher


@pytest.mark.parametrize(
    "value",
    [
        {"$regex": "^a+$"},
        {"$any_of": [1, {"$regex": "a"}, None]},
        {"$path": "src/a.py"},
        {"$type": "integer"},
        {"$type": ["null", "string"]},
        {"$any": True},
        {"$absent": True},
        {"$default": {"$any": 5}},
        {"$equals": {"$regex": 5}},
        {"a": [{"b": {"$any": True}}], "$ref": 1, "x": 2},
        {"$ref": 1, "$schema": 2},
        [1, "x", None, {}],
    ],
)
def test_matchers_and_plain_values(value):
    assert list(matcher_faults(value, ())) == []


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"$regex": 5}, ("$regex",), "found 5; expected a regular expression as a string"),
        ({"$any_of": "a"}, ("$any_of",), 'found "a"; expected a list of acceptable values'),
        ({"$any_of": [1, {"$path": 2}]}, ("$any_of", 1, "$path"), "found 2; expected a path as a string"),
        (
            {"$type": "int"},
            ("$type",),
            'found "int"; expected a JSON type or a list of them: object, array, string, integer, number, boolean, null',
        ),
        (
            {"$type": []},
            ("$type",),
            "found a list ([]); expected a JSON type or a list of them: object, array, string, integer, number, boolean, null",
        ),
        ({"$any": False}, ("$any",), "found false; expected true"),
        ({"$absent": 1}, ("$absent",), "found 1; expected true"),
        (
            {"$regexp": "x"},
            ("$regexp",),
            "unknown matcher '$regexp' (did you mean '$regex'?); a value that really is such an object is {\"$equals\": …}",
        ),
        (
            {"$zzzzzzzz": "x"},
            ("$zzzzzzzz",),
            (
                "unknown matcher '$zzzzzzzz'; there are: $regex, $any_of, $path, $type, $any, $absent, $default, $equals; "
                'a value that really is such an object is {"$equals": …}'
            ),
        ),
        (
            {"a": {"$regex": "x", "flags": "i"}},
            ("a", "$regex"),
            "'$regex' is a matcher and stands alone; an object that has this key is {\"$equals\": …}",
        ),
        ([{"a": [{"$any": 0}]}], (0, "a", 0, "$any"), "found 0; expected true"),
    ],
)
def test_what_is_wrong_with_a_matcher(value, path, message):
    assert list(matcher_faults(value, ())) == [Fault(path, message)]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a{3,5}b{9999}", ""),
        (r"\{99999", ""),
        ("(?:" * 400 + ")" * 400, "it is nested too deeply"),
        ("(?P<a>", "missing ) at position 6"),
        (r"\1", "invalid group reference at position 2"),
    ],
)
def test_regular_expressions(pattern, fault):
    assert regex_fault(pattern) == fault
