"""Whether an agent can work with a broker's answer: judged on the answer alone, whoever gave it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_tooleval.broker.envelope import CALL_BUDGET, DESCRIBE_BUDGET, FIND_BUDGET

DECISIONS = frozenset({"use", "ambiguous", "no_good_match", "catalog_empty", "empty_query"})
BUDGET_BYTES: Mapping[str, int] = {"find": FIND_BUDGET, "describe": DESCRIBE_BUDGET, "call": CALL_BUDGET}
_LEAST_INSTRUCTION = 20
_AGAIN = re.compile(
    r"\b(?:re-?try(?:ing)?|try (?:\w+ )?again|re-?(?:send|run|submit|issue)|repeat"
    r"|(?:call|send|run|invoke|issue|submit)\b[^.;:!?]*\bagain)\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(r"\b(?:cannot|do not|don't|must not|never|no|not|without)\b", re.IGNORECASE)
_SAME = re.compile(r"\b(?:as (?:it is|before)|same|unchanged|without (?:any )?chang(?:e|es|ing))\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:after|before|correct|corrected|if|once|only|other|unless|until|when|with)\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"(?<=[.!?;:])\s+")


def is_clear_error(answer: Mapping[str, Any]) -> bool:
    """Whether an error has a type and an instruction, and does not invite an unconditional retry."""
    error = _error_of(answer) or {}
    instruction = str(error.get("agentInstruction") or "")
    return bool(error.get("type")) and bool(instruction.strip()) and not invites_blind_retry(instruction)


def invites_blind_retry(instruction: str) -> bool:
    """Whether a clause asks for the same call again and names no condition."""
    return any(map(_is_blind_retry, _CLAUSE_END.split(instruction)))


def _is_blind_retry(clause: str) -> bool:
    again = _AGAIN.search(clause)
    if again is None or _FORBIDDEN.search(clause, 0, again.start()):
        return False
    return _SAME.search(clause) is not None or not _CONDITION.search(clause)


def _error_of(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what an answer says of its error, None when it is no error; an error of another shape says nothing."""
    error = answer.get("error")
    if not error:
        return None
    return error if isinstance(error, Mapping) else {}


def is_instructive(answer: Mapping[str, Any]) -> bool:
    """Whether an answer names a concrete next step: what to call, or what to do."""
    error = _error_of(answer)
    if error is not None:
        return _is_sentence(error.get("agentInstruction"))
    return any(map(_is_concrete, answer.get("nextActions") or [answer.get("nextAction")]))


def _is_concrete(step: Any) -> bool:
    if isinstance(step, Mapping):
        return any(map(_is_sentence, step.values())) or bool(step.get("tool") and step.get("arguments"))
    return _is_sentence(step)


def _is_sentence(text: Any) -> bool:
    return isinstance(text, str) and len(text.strip()) >= _LEAST_INSTRUCTION


def has_disposition(answer: Mapping[str, Any]) -> bool | None:
    """Whether an error has a type and says if it may be retried; None when the answer is no error."""
    error = _error_of(answer)
    return None if error is None else bool(error.get("type")) and isinstance(error.get("retryable"), bool)


def selected_ref(answer: Mapping[str, Any]) -> str | None:
    """Return the tool that an answer is about."""
    error = _error_of(answer) or {}
    for holder, key in ((answer, "selectedToolRef"), (answer, "toolRef"), (error, "toolRef")):
        if holder.get(key):
            return str(holder[key])
    return None
