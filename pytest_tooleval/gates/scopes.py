"""The members of a gate's scope, found without asking every gate about every case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from pytest_tooleval.gates.thresholds import COMPARED_FAMILIES, OVERALL, REGRESSIONS, Gate


class Member(Protocol):
    """What a gate's scope is made of: a case on a target, before its run or after."""

    @property
    def family(self) -> str:
        """The family that the case belongs to."""
        ...

    @property
    def corpus(self) -> str:
        """The corpus that the case belongs to."""
        ...

    @property
    def id(self) -> str:
        """The case."""
        ...

    @property
    def target(self) -> str:
        """What it is run on."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """The case's tags."""
        ...


M = TypeVar("M", bound=Member)


class Scopes(Generic[M]):
    """Members by what gates name: a tag, every case, or ids."""

    def __init__(self, members: Iterable[M]) -> None:
        self._by_scope: dict[tuple[str, str, str, str], list[M]] = {}
        self._by_id: dict[tuple[str, str, str, str], list[M]] = {}
        self._compared: dict[str, list[M]] = {}
        for member in members:
            place = (member.family, member.corpus, member.target)
            self._by_id.setdefault((*place, member.id), []).append(member)
            for scope in {OVERALL, *member.tags}:
                self._by_scope.setdefault((*place, scope), []).append(member)
            if member.family in COMPARED_FAMILIES:
                self._compared.setdefault(member.corpus, []).append(member)

    def of(self, gate: Gate, target: str) -> list[M]:
        """Return the members that the gate covers on a target."""
        if gate.family == REGRESSIONS:
            return self._compared.get(gate.corpus, [])
        place = (gate.family, gate.corpus, target)
        if not gate.ids:
            return self._by_scope.get((*place, gate.scope), [])
        return [member for case_id in gate.ids for member in self._by_id.get((*place, case_id), ())]
