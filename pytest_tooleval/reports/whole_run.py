"""The run that a result file may be a part of: what all parts of a split run have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_tooleval.gates.plan import PlannedGate
from pytest_tooleval.gates.thresholds import Gate


@dataclass(frozen=True, slots=True)
class WholeCorpus:
    """A corpus, whatever of it a part of the run covers.

    Attributes:
        items: the items that its cases make when none is left out.
        digest: a hash over its cases and its catalog.
        version: its catalog's version, or None.

    """

    items: int
    digest: str
    version: int | str | None = None


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The same in every part of a run.

    Attributes:
        suites: the suites that were collected, relative to the root folder, sorted.
        corpora: the corpora that hold cases, by their folders.
        targets: for each family the names of what it is run on, in the order of the options.
        trials: how often each tool-use case is run on each target.
        min_measured: the least share of a gate's cases that must be measured.
        strict: whether every miss fails, whatever the gates say.
        options: the options that matter, by their names; of texts that are long or may hold secrets a hash.

    """

    suites: tuple[str, ...] = ()
    corpora: Mapping[str, WholeCorpus] = field(default_factory=dict)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trials: int = 1
    min_measured: float = 1.0
    strict: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """The items of the run when none is left out."""
        return sum(corpus.items for corpus in self.corpora.values())

    def trials_of(self, family: str) -> int:
        """Return how often a case of a family is run on each target."""
        return self.trials if family == "tool_use" else 1

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in the result file."""
        return {
            "suites": list(self.suites),
            "corpora": {
                folder: {"items": corpus.items, "digest": corpus.digest, "catalogVersion": corpus.version}
                for folder, corpus in self.corpora.items()
            },
            "targets": {family: list(names) for family, names in self.targets.items()},
            "trials": self.trials,
            "minMeasured": self.min_measured,
            "strict": self.strict,
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WholeRun:
        """Rebuild what `to_json` gave, checked."""
        return cls(
            suites=tuple(value["suites"]),
            corpora={
                folder: WholeCorpus(corpus["items"], corpus["digest"], corpus["catalogVersion"])
                for folder, corpus in value["corpora"].items()
            },
            targets={family: tuple(names) for family, names in value["targets"].items()},
            trials=value["trials"],
            min_measured=value["minMeasured"],
            strict=value["strict"],
            options=value["options"],
        )


def differences(one: WholeRun, other: WholeRun) -> Iterator[str]:
    """Yield in words each way in which two runs are not the same; nothing when they are."""
    ours, theirs = _told_parts(one), _told_parts(other)
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            yield f"{name}: {_told(ours.get(name))} and {_told(theirs.get(name))}"
    for folder in sorted(one.corpora.keys() & other.corpora.keys()):
        left, right = one.corpora[folder], other.corpora[folder]
        if (left.digest, left.version) != (right.digest, right.version):
            yield f"the cases or the catalog of {folder} are not the same"


def _told_parts(run: WholeRun) -> dict[str, Any]:
    return {
        "suites": run.suites,
        "corpora": tuple(sorted(run.corpora)),
        **{f"targets of {family}": names for family, names in run.targets.items()},
        "trials": run.trials,
        "min-measured": run.min_measured,
        "strict": run.strict,
        **run.options,
    }


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def gate_to_json(planned: PlannedGate) -> dict[str, Any]:
    """Return a planned gate as it stands in the result file."""
    own = {field: getattr(planned, field) for field in PlannedGate.__slots__ if field != "gate"}
    return {_camel(name): value for name, value in {**planned.gate.to_plain(), **own}.items()}


def gate_from_json(value: Mapping[str, Any]) -> PlannedGate:
    """Rebuild what `gate_to_json` gave, checked."""
    gate = Gate.from_plain({name: value[_camel(name)] for name in Gate.__slots__})
    own = {name: value[_camel(name)] for name in PlannedGate.__slots__ if name != "gate"}
    return PlannedGate(gate=gate, **own)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
