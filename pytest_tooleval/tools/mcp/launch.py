"""How the program of a server is started."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_tooleval.errors import ToolUnavailableError, nearest
from pytest_tooleval.tools.mcp.config import Command, McpServer
from pytest_tooleval.tools.process import Service, start_service

_PASSED_ON = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")


def shared_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process that a server which cases share gets: none that could hold a key."""
    ours = {name: value for name, value in environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    return {"PATH": os.defpath, **ours}


def start_program(server: McpServer, command: Command, base: Mapping[str, str], folder: Path) -> Service:
    """Start the program of a server.

    Args:
        server: the server.
        command: its command with all values filled in.
        base: the variables that it gets beside those of the command.
        folder: where it runs when the command does not say it.

    Raises:
        ToolUnavailableError: it cannot be started.

    """
    environment = {**base, **command.env}
    cwd = folder if command.cwd is None else server.folder / command.cwd
    program = _program(command.program, server.folder, environment)
    try:
        return start_service([program, *command.args], cwd=cwd, environment=environment)
    except (OSError, ValueError) as error:
        raise ToolUnavailableError(
            f"MCP server {server.name!r} cannot be started: {_reason(error, command, cwd)}; see {server.place}"
        ) from None


def _program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the path of a program: in the configuration's folder, on PATH, or beside the Python that runs this."""
    if os.sep in name:
        return str(folder / name)
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=environment.get("PATH")) or shutil.which(name, path=beside) or name


def _reason(error: OSError | ValueError, command: Command, cwd: Path) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if not cwd.is_dir():
        return f"its folder {cwd} does not exist"
    if error.errno == errno.ENOENT and os.sep not in command.program:
        hint = nearest(command.program, ("npx", "uvx", "uv", "node", "python", "python3", "docker"), cutoff=0.75)
        return f"there is no program {command.program!r} on PATH{hint}"
    return f"{command.program!r}: {error.strerror}"
