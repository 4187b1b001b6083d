"""Keeps secrets of the environment, and text that cannot be encoded, out of everything that is reported."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_tooleval.measures.text import clean_text
from pytest_tooleval.providers.account import Redactor

_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|_PASS$|_PWD$|_PAT$|CREDENTIAL|AUTH(?!OR(?:_|$))|JWT|COOKIE|DSN$|WEBHOOK",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 8


class Redaction:
    """Replaces secrets in texts and in JSON values, and makes both encodable."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._redactor = Redactor(self._secrets)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Redaction:
        """Take the values of the variables whose names speak of keys, tokens, secrets and passwords."""
        return cls(_secrets_among((os.environ if environ is None else environ).items()))

    def learn(self, named: Iterable[tuple[str, str]]) -> None:
        """Take values of another place, such as a configuration, in the same way by their names."""
        more = [secret for secret in _secrets_among(named) if secret not in self._secrets]
        if more:
            self._secrets = (*self._secrets, *more)
            self._redactor = Redactor(self._secrets)

    def text(self, text: str) -> str:
        """Return a text without secrets and lone surrogates."""
        return self._redactor(clean_text(text))

    def holds_secret(self, text: str) -> bool:
        """Whether a text holds the value of a secret variable, whatever else in it looks like one."""
        return self._redactor.holds_literal(clean_text(text))

    def json_text(self, value: Any) -> str:
        """Return a JSON value as text, with every text in it redacted; that of exact built-in types is fastest."""
        text = json.dumps(value, ensure_ascii=False)
        if self._redactor.is_clean(text) and clean_text(text) is text:
            return text
        return json.dumps(self.value(value), ensure_ascii=False)

    def value(self, value: Any) -> Any:
        """Return a JSON value, of exact built-in types, with every text in it redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(member) for member in value]
        return value


def _secrets_among(named: Iterable[tuple[str, str]]) -> list[str]:
    values = (value.strip() for name, value in named if _SECRET_NAME.search(name))
    return [value for value in values if len(value) >= _SHORTEST_SECRET and not os.path.lexists(value)]
