"""The file name of a cassette: safe on every file system, readable, and another one for every run."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

from pytest_tooleval.providers.cassette import Label

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._+@-]{0,78}[a-z0-9_+-])?")
_TRIAL = re.compile(r".*\.t[0-9]+")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_MOST_SLUG_CHARS = 60
_HASH_CHARS = 12


def cassette_path(label: Label) -> Path:
    """Return where a cassette stands among the others: `TARGET/CASE.json`, for trial 2 `TARGET/CASE.t2.json`."""
    trial = "" if label.trial == 1 else f".t{label.trial}"
    return Path(safe_name(label.target)) / f"{safe_name(label.case)}{trial}.json"


def safe_name(text: str) -> str:
    """Return a file name for a text: another one for every text, even where case and accents do not count.

    A text of lower-case letters, digits and a few marks stays as it is. `:` becomes `__` and `/` becomes `--`, as
    in `openai__gpt-x`. Where that could be taken for another text, or is no name that every file system takes, a
    hash of the text stands behind what is readable of it.
    """
    plain = text.replace(":", "__").replace("/", "--")
    is_unmistakable = plain.replace("__", ":").replace("--", "/") == text
    if is_unmistakable and _PLAIN.fullmatch(plain) and not (_TRIAL.fullmatch(plain) or _DEVICE.fullmatch(plain)):
        return plain
    return f"{_slug(text)}~{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_CHARS]}"


def _slug(text: str) -> str:
    without_accents = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9_]+", "-", without_accents).strip("-")
    return slug[:_MOST_SLUG_CHARS] or "_"
