from __future__ import annotations

import pytest

from pytest_tooleval.cases.checks import fixture_faults, unsafe_path
from pytest_tooleval.cases.schema import Fault


def faults(**keys: object) -> list[Fault]:
    return list(fixture_faults({"task": "t", "expected": [], **keys}))


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "src/app.py",
        "./a",
        "a//b",
        "a/./b",
        ".hidden",
        ".gitignore",
        "sub/.git/x",
        "a b",
        "ä",
        "...",
        "a" * 255,
    ],
)
def test_paths_inside_the_worktree(name):
    assert unsafe_path(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "names no file"),
        (".", "names no file"),
        ("./", "names no file"),
        ("a/", "names no file"),
        ("a\x00b", "holds a control character"),
        ("a\nb", "holds a control character"),
        ("/etc/passwd", "is absolute or holds a backslash"),
        ("C:/x", "is absolute or holds a backslash"),
        ("a\\b", "is absolute or holds a backslash"),
        ("//host/share/x", "is absolute or holds a backslash"),
        ("../x", "holds '..'"),
        ("a/../b", "holds '..'"),
        (".git/config", "lies in .git, which belongs to git"),
        ("./.GIT/config", "lies in .git, which belongs to git"),
        ("ä" * 128, "has a name of more than 255 bytes"),
    ],
)
def test_paths_that_would_leave_it_or_name_nothing(name, reason):
    assert unsafe_path(name) == reason


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": "", "b/c": ""}, []),
        ({"a": "", "./a": ""}, [Fault(("files", "./a"), "'./a' and 'a' are one file")]),
        ({"a": "", "a/b/c": ""}, [Fault(("files", "a/b/c"), "'a/b/c' lies below 'a', which is a file")]),
        (
            {"/x": "", "..": ""},
            [
                Fault(
                    ("files", "/x"),
                    "'/x' is absolute or holds a backslash; give a path inside the worktree, as src/app.py",
                ),
                Fault(("files", ".."), "'..' holds '..'; give a path inside the worktree, as src/app.py"),
            ],
        ),
    ],
)
def test_files_of_the_worktree(files, expected):
    assert faults(files=files) == expected


@pytest.mark.parametrize(
    ("verifier", "path", "message"),
    [
        (
            {"files": {"../x": {"exists": True}}},
            ("files", "../x"),
            "'../x' holds '..'; give a path inside the worktree",
        ),
        (
            {"files": {"x": {"exists": False, "contains": "y"}}},
            ("files", "x"),
            "a file that must not exist can hold nothing else to check",
        ),
        (
            {"files": {"x": {"regex": "("}}},
            ("files", "x", "regex"),
            '"(" is not a regular expression: missing ) at position 1',
        ),
        (
            {"answer": {"regex": "["}},
            ("answer", "regex"),
            '"[" is not a regular expression: unterminated character set at position 1',
        ),
        (
            {"args": {"grep": {"a": 1, "$any": True}}},
            ("args", "grep", "$any"),
            "'$any' is a matcher; it stands in place of one argument's value, not of all arguments",
        ),
        (
            {"args_exact": {"grep": {"a": [{"$any_of": []}]}}},
            ("args_exact", "grep", "a", 0, "$any_of"),
            "found a list ([]); expected a list of acceptable values",
        ),
        (
            {"must_include": ["a", "b"], "avoid": ["b"]},
            ("avoid",),
            "'b' is demanded and to be avoided: no run can pass",
        ),
        ({"any_order": ["b"], "avoid": ["b"]}, ("avoid",), "'b' is demanded and to be avoided: no run can pass"),
        ({"args": {"b": {}}, "avoid": ["b"]}, ("avoid",), "'b' is demanded and to be avoided: no run can pass"),
        (
            {"must_include": ["a", "b"], "max_calls": 1},
            ("max_calls",),
            "max_calls is 1, but at least 2 calls are demanded: no run can pass",
        ),
        (
            {"in_order": ["a", "a", "a"], "max_calls": 2},
            ("max_calls",),
            "max_calls is 2, but at least 3 calls are demanded: no run can pass",
        ),
        (
            {"min_calls": 3, "max_calls": 2},
            ("max_calls",),
            "max_calls is 2, but at least 3 calls are demanded: no run can pass",
        ),
        (
            {"no_calls": True, "min_calls": 1},
            ("no_calls",),
            "no_calls, and yet calls are demanded: no run can pass",
        ),
        (
            {"no_calls": True, "any_order": ["a"]},
            ("no_calls",),
            "no_calls, and yet calls are demanded: no run can pass",
        ),
    ],
)
def test_what_is_wrong_with_a_verifier(verifier, path, message):
    assert faults(verifier=verifier) == [Fault(("verifier", *path), message)]


@pytest.mark.parametrize(
    "verifier",
    [
        {"must_include": ["a"], "args": {"a": {"x": 1}}, "in_order": ["a"], "max_calls": 1},
        {"no_calls": True, "max_calls": 0, "any_order": []},
        {"avoid": ["a"], "must_include": ["b"]},
        {"min_calls": 2, "max_calls": 2},
        {"files": {"x": {"exists": True, "contains": "y"}, "./y": {"exists": False}}},
    ],
)
def test_verifiers_that_a_run_can_pass(verifier):
    assert faults(verifier=verifier) == []


@pytest.mark.parametrize("keys", [{}, {"verifier": {}}, {"verifier": {"_note": 1}}])
def test_a_fixture_that_checks_nothing(keys):
    message = "checks nothing: give it 'expected' or a 'verifier', or every run would pass"
    assert list(fixture_faults({"task": "t", **keys})) == [Fault((), message)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"mcp": ["git", "time"]}, []),
        ({"mcp": ["git"], "tool_permission": {"mcp": "ask", "web": "deny"}}, []),
        (
            {"mcp": ["git", {"server": "time"}, {"server": "git", "tools": ["a"]}]},
            [Fault(("mcp", 2), "the server 'git' stands here twice; name it once, with all its tools")],
        ),
        (
            {"mcp": ["git"], "tool_permission": {"mcp": "deny"}},
            [
                Fault(
                    ("tool_permission", "mcp"),
                    "'mcp' names servers, and yet their tools are denied; leave out one of the two",
                )
            ],
        ),
        ({"tool_permission": {"mcp": "deny"}}, []),
    ],
)
def test_servers_of_a_fixture(keys, expected):
    assert faults(**keys) == expected
