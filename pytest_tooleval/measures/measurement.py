"""What one item measured, as plain data that can cross a process boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["passed", "missed", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one case on one target in one trial.

    Attributes:
        family: which kind of case it is.
        nodeid: pytest's name of the item.
        corpus: the corpus that the case belongs to, as a path relative to the root folder.
        file: the file that the case stands in, likewise.
        index: position in that file.
        id: the case.
        target: what was measured.
        trial: 1-based repetition.
        tags: the case's tags.
        verdict: `missed` is the target's doing; `error` and `skipped` were not measured.
        reason: why it was missed, errored or skipped.
        deferred: the miss is left to a gate.
        worktree: where the case's folder was kept, empty when it was removed.
        record: the family's own fields, as the result file holds them.

    """

    family: str
    nodeid: str
    corpus: str
    file: str
    index: int
    id: str
    target: str
    trial: int = 1
    tags: tuple[str, ...] = ()
    verdict: Verdict = "passed"
    reason: str = ""
    deferred: bool = False
    worktree: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether the target was measured at all."""
        return self.verdict in {"passed", "missed"}

    def order(self, targets: Mapping[str, int]) -> tuple[Any, ...]:
        """Return a sort key: the place of the case, then target and trial; the same in every run.

        Args:
            targets: the position of each target among the options.

        """
        position = targets.get(self.target, len(targets))
        return self.corpus, self.file, self.index, self.id, position, self.target, self.trial

    def to_plain(self) -> dict[str, Any]:
        """Return built-in types only."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "tags": list(self.tags)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Measurement:
        """Rebuild what `to_plain` gave."""
        return cls(**{**plain, "tags": tuple(plain["tags"])})
