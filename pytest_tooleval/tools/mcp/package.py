"""Whether the package `mcp` is there."""

from __future__ import annotations

from importlib import metadata

INSTALL_COMMAND = "pip install 'pytest-tooleval[mcp]'"
_LEAST_VERSION = (2, 3)


def missing_package() -> str:
    """Return why MCP servers cannot be used, with the command that mends it; empty when they can."""
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return f"MCP servers need the package 'mcp': {INSTALL_COMMAND}"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers >= _LEAST_VERSION:
        return ""
    return f"MCP servers need the package 'mcp' 2.3 or newer, and {version} is installed: {INSTALL_COMMAND}"
