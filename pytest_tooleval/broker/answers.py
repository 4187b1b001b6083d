"""Whether an agent can work with a broker's answer: judged on the answer alone, whoever gave it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_tooleval.broker.envelope import CALL_BUDGET, DESCRIBE_BUDGET, FIND_BUDGET

DECISIONS = frozenset({"use", "ambiguous", "no_good_match", "catalog_empty", "empty_query"})
BUDGET_BYTES: Mapping[str, int] = {"find": FIND_BUDGET, "describe": DESCRIBE_BUDGET, "call": CALL_BUDGET}
_LEAST_INSTRUCTION = 20
_BLIND_RETRY = re.compile(r"\b(?:just |simply )?(?:retry|try again|repeat (?:it|the call))\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:after|before|correct|corrected|do not|don't|if|once|only|unless|until|when|with|without)\b",
    re.IGNORECASE,
)


def is_clear_error(answer: Mapping[str, Any]) -> bool:
    """Whether an error has a type and an instruction, and does not invite an unconditional retry."""
    error = answer.get("error") or {}
    instruction = str(error.get("agentInstruction") or "")
    return bool(error.get("type")) and bool(instruction.strip()) and not _invites_blind_retry(instruction)


def _invites_blind_retry(instruction: str) -> bool:
    """Whether a sentence asks for the same call again and names no condition."""
    sentences = re.split(r"(?<=[.!?])\s+", instruction)
    return any(_BLIND_RETRY.search(sentence) and not _CONDITION.search(sentence) for sentence in sentences)


def is_instructive(answer: Mapping[str, Any]) -> bool:
    """Whether an answer names a concrete next step: what to call, or what to do."""
    if answer.get("error"):
        return len(str(answer["error"].get("agentInstruction") or "")) >= _LEAST_INSTRUCTION
    steps = answer.get("nextActions") or [answer.get("nextAction")]
    return any(_is_concrete(step) for step in steps)


def _is_concrete(step: Any) -> bool:
    if isinstance(step, Mapping):
        return any(len(str(value)) >= _LEAST_INSTRUCTION for value in step.values()) or len(step) > 1
    return isinstance(step, str) and len(step) >= _LEAST_INSTRUCTION


def has_disposition(answer: Mapping[str, Any]) -> bool | None:
    """Whether an error has a type and says if it may be retried; None when the answer is no error."""
    error = answer.get("error")
    if not error:
        return None
    return bool(error.get("type")) and isinstance(error.get("retryable"), bool)


def selected_ref(answer: Mapping[str, Any]) -> str | None:
    """Return the tool that an answer is about."""
    error = answer.get("error") or {}
    for holder, key in ((answer, "selectedToolRef"), (answer, "toolRef"), (error, "toolRef")):
        if holder.get(key):
            return str(holder[key])
    return None
