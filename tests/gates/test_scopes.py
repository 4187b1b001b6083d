from __future__ import annotations

import pytest

from pytest_tooleval.gates.plan import PlannedCase
from pytest_tooleval.gates.scopes import Scopes
from pytest_tooleval.gates.thresholds import Gate


def gate(scope: str = "overall", ids: tuple[str, ...] = (), family: str = "tool_use") -> Gate:
    return Gate(family, scope, "mustPass" if ids else "m", "min", 1, "evals", "evals/thresholds.json", 1, ids)


def case(
    case_id: str, *tags: str, family: str = "tool_use", corpus: str = "evals", target: str = "m"
) -> PlannedCase:
    return PlannedCase(family, corpus, case_id, tags, target, selected=True)


@pytest.mark.parametrize(
    ("scope", "ids", "corpus", "case_id", "tags", "covered"),
    [
        ("overall", (), "evals", "a", (), True),
        ("overall", (), "evals/sub", "a", (), False),
        ("smoke", (), "evals", "a", ("slow", "smoke"), True),
        ("smoke", (), "evals", "a", ("slow",), False),
        ("smoke", (), "other", "a", ("smoke",), False),
        ("overall", ("a", "b"), "evals", "b", (), True),
        ("overall", ("a", "b"), "evals", "c", (), False),
        ("smoke", ("a",), "evals", "a", (), True),
        ("smoke", ("a",), "evals", "b", ("smoke",), False),
    ],
)
def test_the_scope_of_a_gate(scope, ids, corpus, case_id, tags, covered):
    member = case(case_id, *tags, corpus=corpus)
    assert Scopes([member]).of(gate(scope, ids), "m") == [member] * covered


def test_families_and_targets_are_kept_apart():
    members = [
        case("a", "lexical", family="discovery", target="x"),
        case("a", "lexical", family="discovery", target="y"),
        case("a", "lexical", family="tool_use", target="x"),
    ]
    scopes = Scopes(iter(members))

    assert scopes.of(gate("lexical", family="discovery"), "x") == members[:1]
    assert scopes.of(gate(family="discovery"), "y") == members[1:2]
    assert scopes.of(gate(), "x") == members[2:]
    assert scopes.of(gate(family="invocation"), "x") == []


def test_members_stand_in_their_order_and_once_whatever_their_tags():
    members = [case("b", "smoke", "smoke"), case("a", "overall"), case("c", "smoke")]
    scopes = Scopes(members)

    assert scopes.of(gate(), "m") == members
    assert scopes.of(gate("smoke"), "m") == [members[0], members[2]]
    assert scopes.of(gate(ids=("c", "none", "b")), "m") == [members[2], members[0]]
