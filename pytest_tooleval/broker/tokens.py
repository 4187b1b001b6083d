"""Text to search terms, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import regex
from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]
from snowballstemmer.russian_stemmer import RussianStemmer  # type: ignore[import-untyped]

# Scripts that are written without spaces between words, or (Hangul) with particles glued to them.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_RUN = regex.compile(
    rf"(?V1)(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<word>[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]*)"
    r"|(?P<sign>\p{Regional_Indicator}{2}|[\p{Extended_Pictographic}--\p{P}])"
)
_ASCII_WORD = re.compile(r"[a-zA-Z0-9]+")  # what _RUN finds in ASCII text, found faster
_POSSESSIVE = regex.compile(r"(?<=\p{L})['\u2019]s\b", regex.IGNORECASE)
_CYRILLIC = regex.compile(r"\p{Cyrillic}+")
_BOUNDARY = regex.compile(
    r"(?<=\p{Ll})(?=\p{Lu})"
    r"|(?<=\p{Lu})(?=\p{Lu}(?!s(?!\p{Ll}))\p{Ll})"  # HTTP|Response, but not I|Ds
    r"|(?<=\p{N})(?=\p{L})|(?<=\p{L})(?=\p{N})"
)

_ENGLISH_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being both but by can could d did
do does doing don done during each etc few for from further give had has have having he hello help her here
hers hey hi him his how i if in into is it its itself just know let like ll m many may me might more most much
must my myself no nor not now of off on once only or other our ours out over own per please re s same shall
she should so some someone something such t tell than thank thanks that the their theirs them then there these
they this those through to too under until up us ve very via want was we were what when where which while who
whom why will with would you your yours
"""
STOP_WORDS = frozenset(_ENGLISH_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query.

    Attributes:
        whole: the word as one term.
        parts: the terms that stand in for it where no text holds the whole: `get`, `http`, `response` for
            `getHTTPResponse`, two characters for a pair of a script without spaces; empty for a plain word.

    """

    whole: str
    parts: tuple[str, ...] = ()


def index_terms(text: str) -> list[str]:
    """Return the terms under which a text is found, with repeats: words, and the parts of compound ones.

    Where a script has no spaces, terms are single characters and pairs of neighbours.
    """
    terms: list[str] = []
    for kind, run in _runs(text):
        if kind == "unspaced":
            terms += run
            terms += _pairs(run)
        else:
            terms += _word_terms(run)
    return terms


def query_words(text: str) -> list[Word]:
    """Return the distinct words of a query that count as evidence, in its order; none for stop words alone."""
    words = (word for kind, run in _runs(text) for word in _query_words(kind, run))
    return list(dict.fromkeys(words))


def _query_words(kind: str, run: str) -> Iterator[Word]:
    if kind == "unspaced":
        yield from (Word(pair, tuple(pair)) for pair in _pairs(run))
        if len(run) == 1:
            yield Word(run)
    elif terms := _word_terms(run):
        yield Word(terms[0], terms[1:])


def _runs(text: str) -> Iterator[tuple[str, str]]:
    if text.isascii():
        plain = _POSSESSIVE.sub("", text) if "'" in text else text
        yield from (("word", word) for word in _ASCII_WORD.findall(plain))
        return
    for match in _RUN.finditer(_POSSESSIVE.sub("", unicodedata.normalize("NFKC", text))):
        yield match.lastgroup or "", match[0]


def _pairs(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(len(run) - 1)]


@lru_cache(maxsize=1 << 16)
def _word_terms(run: str) -> tuple[str, ...]:
    """Return the term of a word, followed by those of its parts when it is a compound; stop words give none."""
    parts = _BOUNDARY.split(run)
    pieces = parts if len(parts) == 1 else [run, *parts]
    return tuple(term for piece in pieces if (term := _term(piece)))


def _term(piece: str) -> str:
    folded = unicodedata.normalize("NFKC", piece.casefold())
    return "" if folded in STOP_WORDS else _stem(folded)


def _stem(word: str) -> str:
    """Return a word without its ending (Snowball): ASCII words as English, Cyrillic ones as Russian."""
    if word.isascii():
        return str(EnglishStemmer().stemWord(word))
    return str(RussianStemmer().stemWord(word)) if _CYRILLIC.fullmatch(word) else word
