"""Runs calls of tools in one run of a case, within its bounds. Whatever a tool does is an outcome."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_tooleval.agent.time_limit import RunEndedError, TimeLimit
from pytest_tooleval.errors import InfrastructureError, ToolError
from pytest_tooleval.measures.text import clean_text
from pytest_tooleval.tools.arguments import argument_faults
from pytest_tooleval.tools.tool import Tool, ToolContext
from pytest_tooleval.transcript import Outcome


class ToolRunner:
    """Runs tools in the folder of one case.

    Args:
        context: where and within which bounds the tools work.
        time_limit: when the run has to be over.
        notes: gets a line for each call that broke its tool.

    """

    def __init__(self, context: ToolContext, time_limit: TimeLimit, notes: list[str]) -> None:
        self._context = context
        self._time_limit = time_limit
        self._notes = notes

    def run(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        """Check the arguments and run a tool; return what came of it and its text, within the limit of a result.

        Raises:
            InfrastructureError: the tool could not be tried.
            RunEndedError: the run is over.

        """
        faults = argument_faults(tool, arguments)
        if faults:
            return "invalid_arguments", self.bounded("invalid arguments: " + "; ".join(faults))
        outcome, text = self._tried(tool, arguments)
        return outcome, self.bounded(text)

    def bounded(self, text: str) -> str:
        """Return a text that can be sent to a model, cut where it is longer than a result may be."""
        most = self._context.limits.result_chars
        clean = clean_text(text)
        if len(clean) <= most:
            return clean
        return f"{clean[:most]}\n[cut: the first {most} of {len(clean)} characters; ask for a smaller part]"

    def _tried(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        try:
            with self._time_limit.spent_on(tool.name):
                return "ok", str(tool.run(copy.deepcopy(dict(arguments)), self._context_now()))
        except (InfrastructureError, RunEndedError):
            raise
        except ToolError as error:
            return "error", str(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's tool may raise anything, and the run goes on
            self._notes.append(f"tool {tool.name} raised {type(error).__name__}: {error}")
            return "error", f"the tool failed: {type(error).__name__}: {error}"

    def _context_now(self) -> ToolContext:
        left = self._time_limit.seconds_left
        return self._context if left is None else replace(self._context, limits=self._context.limits.within(left))
