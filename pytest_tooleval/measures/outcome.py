"""What one case on one target came to, before anything is decided about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The result of measuring a case once.

    Attributes:
        passed: whether the target did what the case demands.
        record: the family's fields of the case in the result file, JSON values.
        error: what kept the case from being measured, else empty.
        worktree: where the case's folder was kept, empty when it was removed or there was none.
        skipped: why the case was not begun, else empty.

    """

    passed: bool
    record: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    worktree: str = ""
    skipped: str = ""
