"""Folders whose paths differ from run to run, spelled alike in every recording."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from pytest_tooleval.measures.text import clean_text
from pytest_tooleval.transcript import ToolCall

_T = TypeVar("_T")
_TextChange = Callable[[str], str]
_TOKEN = re.compile(r"\{(~*)(worktree|home|tmp)\}")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one run of a case, as absolute paths; an empty one is not known.

    Attributes:
        worktree: the folder that the model works in; `{worktree}` in recordings.
        home: the home folder of its commands; `{home}`.
        tmp: their folder for temporary files; `{tmp}`.

    """

    worktree: str = ""
    home: str = ""
    tmp: str = ""

    def spell(self, text: str) -> str:
        """Return a text, made encodable, with names in braces for the paths.

        Such a name that stands in the text itself gets a `~` behind its brace.
        """
        text = clean_text(text)
        if "{" in text:
            text = _TOKEN.sub(r"{~\1\2}", text)
        for path, name in sorted(self._known(), reverse=True):
            text = text.replace(path, f"{{{name}}}")
        return text

    def restore(self, text: str) -> str:
        """Return the text that was spelled so, with the paths of this run."""
        return _TOKEN.sub(self._restored, text) if "{" in text else text

    def in_json(self) -> Places:
        """Return the places as their paths stand in the text of a JSON string."""
        return Places(
            *(json.dumps(path, ensure_ascii=False)[1:-1] for path in (self.worktree, self.home, self.tmp))
        )

    def spelled(self, value: _T) -> _T:
        """Return a value with every text in it spelled."""
        return with_texts(value, self.spell, self.in_json().spell)

    def restored(self, value: _T) -> _T:
        """Return the value that was spelled so."""
        return with_texts(value, self.restore, self.in_json().restore)

    def _known(self) -> list[tuple[str, str]]:
        paths = ((self.worktree, "worktree"), (self.home, "home"), (self.tmp, "tmp"))
        return [(path, name) for path, name in paths if path]

    def _restored(self, match: re.Match[str]) -> str:
        marks, name = match.groups()
        if marks:
            return f"{{{marks[1:]}{name}}}"
        return getattr(self, name) or match[0]


def with_texts(value: _T, change: _TextChange, change_json: _TextChange) -> _T:
    """Return a copy of a record or JSON value with every text in it, keys included, changed.

    Args:
        value: a dataclass, mapping, list or tuple of such, or a scalar.
        change: what is done to a text.
        change_json: what is done to the raw arguments of a tool call, which are the text of a JSON value.

    Raises:
        TypeError: a mapping has a key that is no text.
        RecursionError: it is nested too deep.

    """
    copied: Any = _with_texts(value, change, change_json)
    return copied  # type: ignore[no-any-return]


def _with_texts(value: Any, change: _TextChange, change_json: _TextChange) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_key(key, change): _with_texts(member, change, change_json) for key, member in value.items()}
    if isinstance(value, list | tuple):
        members = [_with_texts(member, change, change_json) for member in value]
        return members if isinstance(value, list) else tuple(members)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {field.name: _with_texts(getattr(value, field.name), change, change_json) for field in fields(value)}
    if isinstance(value, ToolCall):
        changed["raw_arguments"] = change_json(value.raw_arguments)
    return replace(value, **changed)


def _key(key: Any, change: _TextChange) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} of an object is no text")
    return change(key)
