from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tooleval.providers.tool_names import NameRule, ToolNames, names_to_send

OPENAI = NameRule()
GEMINI = NameRule(characters="A-Za-z0-9_.:-", first="A-Za-z_")
SHORT = NameRule(longest=12)
LONG = "a" * 70


@pytest.mark.parametrize(
    ("rule", "name", "sent"),
    [
        (OPENAI, "fs_read-2", "fs_read-2"),
        (OPENAI, "2fast", "2fast"),
        (OPENAI, "fs.read", "fs_read"),
        (OPENAI, "read file", "read_file"),
        (OPENAI, "größe", "gr__e"),
        (OPENAI, "", "_"),
        (OPENAI, LONG, "a" * 64),
        (OPENAI, "a" * 64, "a" * 64),
        (OPENAI, "grep\n", "grep_"),
        (GEMINI, "fs.read", "fs.read"),
        (GEMINI, "2fast", "_2fast"),
        (GEMINI, "-x", "_-x"),
        (GEMINI, "9" * 64, "_" + "9" * 63),
    ],
)
def test_a_name_is_sent_in_characters_that_the_api_takes(rule: NameRule, name: str, sent: str) -> None:
    assert names_to_send([name], rule) == {name: sent}


def test_a_name_that_can_be_sent_keeps_it_and_the_other_gets_a_digest() -> None:
    sent = names_to_send(["fs.read", "fs_read"], OPENAI)
    assert sent["fs_read"] == "fs_read"
    assert re.fullmatch(r"fs_read_[0-9a-f]{8}", sent["fs.read"])


def test_two_that_would_become_equal_both_get_a_digest_whatever_their_order() -> None:
    sent = names_to_send(["fs.read", "fs read"], OPENAI)
    assert sent == names_to_send(["fs read", "fs.read"], OPENAI)
    assert len({*sent.values(), "fs_read"}) == 3


def test_long_names_with_one_beginning_stay_apart() -> None:
    sent = names_to_send([f"{LONG}_read", f"{LONG}_write"], OPENAI)
    assert {len(name) for name in sent.values()} == {64}
    assert len(set(sent.values())) == 2


def test_a_reserved_name_is_not_given_again() -> None:
    sent = names_to_send(["fs_read", "fs.list"], OPENAI, reserved=frozenset({"fs_read", "fs_list"}))
    assert {"fs_read", "fs_list"}.isdisjoint(sent.values())


NAMES = st.lists(st.text(st.sampled_from("ab._- é\n9"), max_size=16), max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(names=NAMES, reserved=NAMES, rule=st.sampled_from([OPENAI, GEMINI, SHORT]))
def test_names_are_distinct_and_taken_and_those_that_can_stay_do(
    names: list[str], reserved: list[str], rule: NameRule
) -> None:
    sent = names_to_send(names, rule, reserved)
    assert sent.keys() == set(names)
    assert len({*sent.values(), *reserved}) == len(sent) + len(set(reserved))
    assert all(rule.takes(name) for name in sent.values())
    assert all(sent[name] == name for name in sent if rule.takes(name) and name not in reserved)
    assert sent == names_to_send(reversed(names), rule, reserved)


@pytest.mark.parametrize(
    ("said", "real"),
    [
        ("fs_read", "fs.read"),
        ("fs.read", "fs.read"),
        ("functions.fs_read", "fs.read"),
        ("functions.fs.read", "fs.read"),
        ("default_api:fs_read", "fs.read"),
        ("grep", "grep"),
        ("rm", "rm"),
        ("functions.rm", "functions.rm"),
        ("elsewhere.fs_read", "elsewhere.fs_read"),
    ],
)
def test_the_tool_that_a_model_means(said: str, real: str) -> None:
    assert ToolNames(["fs.read", "grep"], [], OPENAI).real(said) == real


def test_an_invented_name_never_takes_a_tools_place() -> None:
    names = ToolNames(["fs.read"], ["fs read", "fs_read", "fs.read"], OPENAI)
    assert names.sent("fs.read") == "fs_read"
    assert len({names.sent(name) for name in ("fs read", "fs_read", "fs.read")}) == 3
    assert names.real("fs_read") == "fs.read"
    assert names.sent("never mentioned") == "never mentioned"
