from __future__ import annotations

import pytest

from pytest_tooleval.cases.files import case_files, is_case_file


@pytest.mark.parametrize(
    ("name", "suffix", "taken"),
    [
        ("a.json", ".json", True),
        ("a.b.json", ".json", True),
        ("a.schema.json", ".json", False),
        (".a.json", ".json", False),
        ("a.jsonl", ".json", False),
        ("json", ".json", False),
        ("a.jsonl", ".jsonl", True),
        ("a.json", ".jsonl", False),
        (".a.jsonl", ".jsonl", False),
        ("a.schema.json", ".jsonl", False),
    ],
)
def test_names_of_case_files(name, suffix, taken):
    assert is_case_file(name, suffix) is taken


@pytest.mark.parametrize(
    ("suffix", "names"),
    [(".json", ["a/z.json", "b.json", "folder.json/in.json"]), (".jsonl", ["a/rows.jsonl", "b.jsonl"])],
)
def test_case_files_are_sorted_and_hidden_or_linked_folders_are_left_out(tmp_path, suffix, names):
    for name in (
        "b.json",
        "b.jsonl",
        "a/z.json",
        "a/rows.jsonl",
        "a/.h/x.json",
        ".git/x.json",
        ".git/x.jsonl",
        "x.schema.json",
        "readme.md",
        "folder.json/in.json",
        "../outside/o.json",
        "../outside/o.jsonl",
    ):
        path = tmp_path / "cases" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (tmp_path / "cases" / "link").symlink_to(tmp_path / "outside")

    found = case_files(tmp_path / "cases", suffix)

    assert [path.relative_to(tmp_path / "cases").as_posix() for path in found] == names


def test_a_folder_that_is_not_there_holds_no_case_files(tmp_path):
    assert case_files(tmp_path / "none", ".json") == []
