"""Expected against actual: pure functions over plain values."""
