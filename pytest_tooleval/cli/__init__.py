"""The `tooleval` command."""
