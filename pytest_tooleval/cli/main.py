"""The `tooleval` command."""


def main() -> int:
    """Run."""
    return 0
