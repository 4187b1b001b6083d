"""Measure how well language models use tools, as pytest items."""
