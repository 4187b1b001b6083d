"""Thresholds over metrics, and whether a run keeps them."""
