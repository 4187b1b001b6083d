"""Keeps secrets of the environment, and text that cannot be encoded, out of everything that is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_tooleval.measures.text import clean_text
from pytest_tooleval.providers.account import Redactor

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_SHORTEST_SECRET = 8
_SHORT = 60
_MOST_KNOWN = 10_000


class Redaction:
    """Replaces secrets in texts and in JSON values, and makes both encodable."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[str, str] = {}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Redaction:
        """Take the values of the variables whose names speak of keys, tokens, secrets and passwords."""
        variables = os.environ if environ is None else environ
        secrets = [
            value.strip()
            for name, value in variables.items()
            if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_SECRET and not Path(value).exists()
        ]
        return cls(Redactor(secrets))

    def text(self, text: str) -> str:
        """Return a text without secrets and lone surrogates."""
        known = self._known.get(text)
        if known is None:
            known = self._redactor(clean_text(text))
            if len(text) <= _SHORT and len(self._known) < _MOST_KNOWN:
                self._known[text] = known
        return known

    def value(self, value: Any) -> Any:
        """Return a JSON value, of exact built-in types, with every text in it redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(member) for member in value]
        return value
