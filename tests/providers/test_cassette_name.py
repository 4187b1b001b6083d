from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tooleval.providers.cassette import Label
from pytest_tooleval.providers.cassette_name import cassette_path, safe_name

HASHED = re.compile(r"(?P<slug>[a-z0-9_-]{1,60})~[0-9a-f]{12}")
NASTY = st.sampled_from(
    [*":/\\._-~%", "__", "--", ".t2", "t2", "a", "A", "é", "e\u0301", "ß", "con", "\0", "\ud800"]
)
TEXTS = st.lists(NASTY, max_size=6).map("".join) | st.text(max_size=300)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("count-lines", "count-lines"),
        ("grep_2.5", "grep_2.5"),
        ("openai:gpt-4.1-mini", "openai__gpt-4.1-mini"),
        ("openrouter:meta/llama-3", "openrouter__meta--llama-3"),
        ("ollama:qwen:0.5b", "ollama__qwen__0.5b"),
        ("openai:gpt-x@2+100+broker", "openai__gpt-x@2+100+broker"),
        ("x" * 80, "x" * 80),
    ],
)
def test_a_plain_text_stays_readable(text: str, name: str) -> None:
    assert safe_name(text) == name


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Count-Lines", "count-lines"),
        ("openai:Qwen/Qwen3", "openai-qwen-qwen3"),
        ("größe zählen", "groe-zahlen"),
        ("名前", "_"),
        ("", "_"),
        ("..", "_"),
        (".hidden", "hidden"),
        ("../../etc/passwd", "etc-passwd"),
        ("ends.", "ends"),
        ("con", "con"),
        ("aux.txt", "aux-txt"),
        ("a__b", "a__b"),
        ("a--b", "a-b"),
        ("+a", "a"),
        ("a@", "a"),
        ("a_:b", "a_-b"),
        ("x.t2", "x-t2"),
        ("x" * 81, "x" * 60),
        ("line\nbreak\0", "line-break"),
    ],
)
def test_any_other_text_gets_a_hash(text: str, slug: str) -> None:
    found = HASHED.fullmatch(safe_name(text))
    assert found
    assert found["slug"] == slug


def test_the_hash_is_the_same_in_every_version() -> None:
    assert safe_name("Größe") == "groe~aedc3f80989a"


def test_what_differs_in_case_or_accents_only_has_names_of_its_own() -> None:
    texts = ["foo", "Foo", "FOO", "é", "e\u0301", "e", "a:b", "a__b", "a/b", "a--b", "straße", "strasse", "STRASSE"]
    assert len({safe_name(text).casefold() for text in texts}) == len(texts)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_every_text_has_a_safe_name_of_its_own(one: str, other: str) -> None:
    name = safe_name(one)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9._+@~-]{0,79}", name)
    assert not name.endswith(".")
    assert name.partition(".")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt1"}
    assert name == safe_name(one)
    assert (name == safe_name(other)) == (one == other)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.builds(Label, TEXTS, TEXTS, st.integers(1, 12)), st.builds(Label, TEXTS, TEXTS, st.integers(1, 12)))
def test_every_run_has_a_file_of_its_own_below_the_folder(one: Label, other: Label) -> None:
    path = PurePosixPath(cassette_path(one))
    assert len(path.parts) == 2
    assert not path.is_absolute()
    assert (path == PurePosixPath(cassette_path(other))) == (one == other)


def test_trials_after_the_first_say_which_they_are() -> None:
    paths = [str(cassette_path(Label("count", "openai:m", trial))) for trial in (1, 2, 12)]
    assert paths == ["openai__m/count.json", "openai__m/count.t2.json", "openai__m/count.t12.json"]
    assert cassette_path(Label("count.t2", "openai:m")) != cassette_path(Label("count", "openai:m", 2))
