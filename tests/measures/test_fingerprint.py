from __future__ import annotations

import pytest

from pytest_tooleval.measures.fingerprint import Fingerprint, SharedHashes, short_hash, what_changed


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ({"task": "1", "files": "2"}, {"files": "2", "task": "1"}, []),
        ({"task": "1", "files": "2"}, {"task": "9", "files": "2"}, ["task changed"]),
        ({"task": "1"}, {"task": "9", "pages": "2"}, ["task changed", "pages changed"]),
        ({"seed": "7", "task": "1"}, {"task": "1"}, ["seed changed"]),
        ({"tool grep": "1"}, {"tool grep": "2"}, ["tool grep changed"]),
        ({"tool grep": "1", "order of tools": "1"}, {"order of tools": "2"}, ["tool grep is gone"]),
        ({"order of tools": "1"}, {"tool glob": "1", "order of tools": "2"}, ["tool glob is new"]),
        (
            {"tool a": "1", "order of tools": "1"},
            {"tool a": "1", "order of tools": "2"},
            ["order of tools changed"],
        ),
        ({"tool-choice": "auto"}, {}, ["tool-choice changed"]),
    ],
)
def test_what_changed_is_said_in_words(before, now, changes):
    assert what_changed(before, now) == changes


def test_a_hash_is_that_of_the_text_and_takes_any_text():
    assert short_hash("") == "e4a6a0577479b2b4"  # BLAKE2b with a digest of 8 bytes
    assert short_hash("a") != short_hash("b")
    assert short_hash("\ud800") != short_hash("\udfff")


def test_shared_parts_have_one_id_whatever_their_order():
    assert SharedHashes.of({"a": "1", "b": "2"}).id == SharedHashes.of({"b": "2", "a": "1"}).id
    assert SharedHashes.of({"a": "1", "b": "2"}).id != SharedHashes.of({"a": "2", "b": "1"}).id


def test_a_fingerprint_has_the_parts_of_both():
    shared = SharedHashes.of({"model": "m"})
    assert Fingerprint({"task": "t"}, shared).parts == {"task": "t", "model": "m"}
