"""Adapters to model APIs."""
