"""The reference broker: search over a catalog of tools, and what is decided from it."""
