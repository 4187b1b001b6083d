"""Hypothesis strategies for JSON values."""

from __future__ import annotations

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT


def json_values(keys: st.SearchStrategy[str] = TEXT, leaves: st.SearchStrategy = SCALARS) -> st.SearchStrategy:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )
