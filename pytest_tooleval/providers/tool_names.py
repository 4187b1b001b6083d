"""Names of tools and arguments as an API takes them, and the way back."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pytest_tooleval.providers.wire import offered_name

_DIGEST = 8


@dataclass(frozen=True, slots=True)
class NameRule:
    """Which names an API takes.

    Attributes:
        characters: the characters of a name, as they stand in a regular expression's brackets.
        first: the same for its first character, empty when that is like the others.
        longest: most characters of a name.

    """

    characters: str = "A-Za-z0-9_-"
    first: str = ""
    longest: int = 64

    def takes(self, name: str) -> bool:
        """Whether a name can be sent as it is."""
        pattern = f"[{self.first or self.characters}][{self.characters}]*"
        return len(name) <= self.longest and re.fullmatch(pattern, name) is not None

    def nearest(self, name: str) -> str:
        """Return the name to send where no other claims it, `_` in place of each character that is refused."""
        text = re.sub(f"[^{self.characters}]", "_", name) or "_"
        if self.first and not re.match(f"[{self.first}]", text):
            text = f"_{text}"
        return text[: self.longest]


def names_to_send(names: Iterable[str], rule: NameRule, reserved: Collection[str] = ()) -> dict[str, str]:
    """Return what is sent for each name: itself where the rule takes it, and never the same for two of them.

    Names that would become equal get a digest of the real one. The order of `names` changes nothing.

    Args:
        names: the real names.
        rule: what the API takes.
        reserved: names that stand for something else already.

    """
    real = sorted(set(names))
    sent = {name: name for name in real if name not in reserved and rule.takes(name)}
    adapted = {name: rule.nearest(name) for name in real if name not in sent}
    claims = Counter((*sent, *reserved, *adapted.values()))
    used = {*sent, *reserved, *(name for name in adapted.values() if claims[name] == 1)}
    for name, nearest in adapted.items():
        sent[name] = nearest if claims[nearest] == 1 else _with_digest(name, nearest, rule, used)
        used.add(sent[name])
    return sent


def _with_digest(name: str, nearest: str, rule: NameRule, used: Collection[str]) -> str:
    stem = nearest[: rule.longest - _DIGEST - 1]
    digests = (hashlib.sha256(f"{salt}:{name}".encode()).hexdigest()[:_DIGEST] for salt in itertools.count())
    return next(made for digest in digests if (made := f"{stem}_{digest}") not in used)


class ToolNames:
    """What the tools of one conversation are called on the wire.

    Args:
        offered: the real names of the tools that the model is offered.
        mentioned: names in the conversation so far, invented ones among them.
        rule: what the API takes.

    """

    def __init__(self, offered: Collection[str], mentioned: Iterable[str], rule: NameRule) -> None:
        self._offered = offered
        self._rule = rule
        sent = names_to_send(offered, rule)
        others = set(mentioned) - sent.keys()
        self._sent: Mapping[str, str] = sent | names_to_send(others, rule, frozenset(sent.values()))
        self._real = {name: real for real, name in sent.items()}
        self._known = frozenset((*sent, *sent.values()))

    def also(self, mentioned: Iterable[str]) -> ToolNames:
        """Return the names of a conversation in which these are mentioned as well."""
        new = set(mentioned) - self._sent.keys()
        return ToolNames(self._offered, {*self._sent, *new}, self._rule) if new else self

    def sent(self, name: str) -> str:
        """Return what is sent for a real name; one that nobody has mentioned is sent as it is."""
        return self._sent.get(name, name)

    def real(self, name: str) -> str:
        """Return the offered tool that the model means, whichever of its names it uses, else `name` itself."""
        known = offered_name(name, self._known)
        return self._real.get(known, known)
