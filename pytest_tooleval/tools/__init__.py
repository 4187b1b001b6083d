"""Tools that a model can be offered."""
