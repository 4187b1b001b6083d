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

_LAUNCHERS = ("npx", "uvx", "uv", "node", "python", "python3", "docker")
_NO_INTERPRETER = "name it under 'command', and this file under 'args'"
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
    cwd = _cwd(server, command, folder)
    program = _program(command.program, server.folder, environment)
    try:
        return start_service([program, *command.args], cwd=cwd, environment=environment)
    except (OSError, ValueError) as error:
        raise ToolUnavailableError(
            f"MCP server {server.name!r} cannot be started: {_reason(error, program, cwd)}; see {server.place}"
        ) from None


def misplaced_argument(server: McpServer, command: Command, folder: Path) -> str:
    """Say so when an argument names a file beside the configuration, and the program looks for it elsewhere.

    Args:
        server: the server.
        command: its command with all values filled in.
        folder: where it runs when the command does not say it.

    """
    cwd = _cwd(server, command, folder)
    for argument in command.args:
        if os.path.lexists(server.folder / argument) and not os.path.lexists(cwd / argument):
            if command.cwd is not None:
                return f"its argument {argument!r} is looked for in its 'cwd', and stands beside the configuration"
            return (
                f"its argument {argument!r} stands beside the configuration, and a server of one case runs in the "
                'case\'s folder: add "cwd": "."'
            )
    return ""


def _cwd(server: McpServer, command: Command, folder: Path) -> Path:
    return folder if command.cwd is None else server.folder / command.cwd


def _program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the path of a program: in the configuration's folder, on PATH, or beside the Python that runs this."""
    if os.sep in name:
        return str(folder / name)
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=environment.get("PATH")) or shutil.which(name, path=beside) or name


def _reason(error: OSError | ValueError, program: str, cwd: Path) -> str:
    """Return why a program cannot be run, and what may mend it."""
    if not isinstance(error, OSError):
        return str(error)
    if not cwd.is_dir():
        return f"its folder {cwd} does not exist"
    match error.errno:
        case errno.ENOENT if os.sep not in program:
            return _not_found(program)
        case errno.ENOENT if not Path(program).exists():
            return f"there is no file {program}"
        case errno.ENOENT:
            return f"the interpreter that {program} names in its first line is not there; {_NO_INTERPRETER}"
        case errno.EACCES if Path(program).is_file():
            return f"{program} is not executable: chmod +x, or if an interpreter is to run it {_NO_INTERPRETER}"
        case errno.ENOEXEC:
            return f"{program} does not say in its first line which interpreter runs it: {_NO_INTERPRETER}"
    return f"{program}: {error.strerror}"


def _not_found(program: str) -> str:
    words = program.split()
    if len(words) > 1:
        return (
            f"there is no program {program!r}: 'command' is {words[0]!r} alone, and what follows stands in 'args'"
        )
    hint = nearest(program, _LAUNCHERS, cutoff=0.8) or ": install it, or give its path"
    return f"there is no program {program!r} on PATH{hint}"
