"""The tool that runs a shell command in the worktree."""

from __future__ import annotations

import errno
import signal
from collections.abc import Mapping
from typing import Any

from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools import process
from pytest_tooleval.tools.tool import Tool, ToolContext

_NOTICES = 160
"""Characters set aside for the notices around the output."""


def _run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    limit = context.limits.command_seconds
    seconds = min(float(arguments.get("timeout", limit)), limit)
    finished = _finish(arguments["command"], seconds, context)
    text = finished.output
    if text and not text.endswith("\n"):
        text += "\n"
    if finished.exit_code == 0:
        return f"{text}exit code 0"
    raise ToolError(text + _failure(finished.exit_code, seconds))


def _finish(command: str, seconds: float, context: ToolContext) -> process.Finished:
    most = context.limits.result_chars
    try:
        return process.run(
            ["/bin/sh", "-c", command],
            cwd=context.worktree,
            environment=context.environment,
            seconds=seconds,
            output_chars=max(most - _NOTICES, most // 2),
            within=context.worktree,
        )
    except ValueError as error:
        raise ToolError(f"The command cannot be run: {error}. Leave out null and unpaired characters.") from error
    except OSError as error:
        raise _refusal(error, context) from error


def _refusal(error: OSError, context: ToolContext) -> ToolError | ToolUnavailableError:
    if error.errno == errno.E2BIG:
        return ToolError("The command is too long. Write it to a script file, then run that.")
    if str(error.filename) == str(context.worktree):
        return ToolError(f"The working folder {context.worktree} cannot be entered: {error.strerror}.")
    return ToolUnavailableError(f"no shell can be started: {error}. A POSIX shell is needed at /bin/sh")


def _failure(exit_code: int | None, seconds: float) -> str:
    if exit_code is None:
        return f"timed out after {seconds:g} s: the command and all that it started were killed"
    if exit_code < 0:
        return f"exit code {128 - exit_code} (killed by {_signal_name(-exit_code)})"
    return f"exit code {exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


TOOL = Tool(
    name="run_command",
    description=(
        "Run a shell command with /bin/sh in the working folder. Returns its output (stdout and stderr together) "
        "and exit code. There is no input to type into. Whatever it leaves in the background is ended when it "
        "returns. Of long output the beginning and the end are kept."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "The command line, e.g. `ls -l src | wc -l`.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds after which the command is killed, if shorter than the usual limit.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    category="bash",
    run=_run,
    needs_directory=False,
)
