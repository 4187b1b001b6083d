"""The `tooleval` command: finds the subcommand and runs it."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from pytest_tooleval.errors import ToolevalError, nearest

USER_ERROR = 2
OUTPUT_ERROR = 74
BROKEN_PIPE = 141
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand.

    Attributes:
        name: what the user types.
        summary: its line in the help.
        module: where its `run` is; imported only when the subcommand is used.

    """

    name: str
    summary: str
    module: str


class CommandModule(Protocol):
    """What a subcommand's module has to hold."""

    def run(self, arguments: Sequence[str]) -> int:
        """Take the arguments after the subcommand's name, do the work, return the exit code."""


COMMANDS = (
    Command("init", "write a small suite that runs green, and a CI workflow", "pytest_tooleval.cli.init"),
    Command("schema", "print the JSON Schema of a file format", "pytest_tooleval.cli.schema"),
    Command("bundled", "run the fixtures that come with the package", "pytest_tooleval.cli.bundled"),
    Command("report", "make the scoreboard of a snapshot", "pytest_tooleval.cli.report"),
    Command("merge", "put the result files of a split run together", "pytest_tooleval.cli.merge"),
    Command("catalog", "make a catalog of live MCP servers, or compare one", "pytest_tooleval.cli.catalog"),
    Command("lint", "find what is wrong with the tools of a catalog", "pytest_tooleval.cli.lint"),
    Command("broker", "serve find, describe and call over MCP", "pytest_tooleval.cli.broker"),
    Command("find", "find the tool of a catalog for a task", "pytest_tooleval.cli.find"),
    Command("describe", "show the exact schema of a catalog's tool", "pytest_tooleval.cli.describe"),
    Command("call", "check a call of a catalog's tool and make it", "pytest_tooleval.cli.call"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; users' mistakes end in a message, never in a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _never_fail_to_encode()
    try:
        try:
            return _dispatch(given)
        finally:
            _flush_output()
    except ToolevalError as error:
        from pytest_tooleval.measures.text import printable

        print(printable(f"tooleval: {error}"), file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is not None:
            raise
        _forget_output()
        print(f"tooleval: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        return OUTPUT_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def _dispatch(given: Sequence[str]) -> int:
    parser = _parser()
    chosen = parser.parse_args(given[:1])
    if chosen.version:
        print(f"tooleval {_version()}")
        return 0
    if chosen.command is None:
        parser.print_help(sys.stderr)
        return USER_ERROR
    module = cast(CommandModule, import_module(chosen.command.module))
    return module.run(given[1:])


def _parser() -> argparse.ArgumentParser:
    lines = [f"  {command.name:<10}{command.summary}" for command in COMMANDS]
    parser = argparse.ArgumentParser(
        prog="tooleval",
        usage="tooleval [-h] [--version] COMMAND ...",
        description="Measure how well language models use tools. Suites are run with pytest.",
        epilog="\n".join(["commands:", *lines, "", "'tooleval COMMAND --help' says more about one."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("command", nargs="?", type=_command, metavar="COMMAND", help="one of those below")
    return parser


def _command(name: str) -> Command:
    by_name = {command.name: command for command in COMMANDS}
    if name not in by_name:
        raise argparse.ArgumentTypeError(
            f"no command {name!r}{nearest(name, by_name)}; there are: {', '.join(by_name)}"
        )
    return by_name[name]


def _version() -> str:
    from importlib.metadata import version

    return version("pytest-tooleval")


def _never_fail_to_encode() -> None:
    """Paths may hold what the terminal's encoding lacks: escape it instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _flush_output() -> None:
    if sys.stdout is not None:  # it is None in a process that was started with its output closed
        sys.stdout.flush()


def _forget_output() -> None:
    """Let the interpreter's own flush at exit find an open descriptor."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


if __name__ == "__main__":
    sys.exit(main())
