"""Regular expressions from files and from models: whether they can be compiled without taking the process down."""

from __future__ import annotations

import re

MOST_EXPANDED = 100_000
_TOKEN = re.compile(
    r"""(?P<escape>\\.)
    | (?P<klass>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<open>\()
    | (?P<close>\))
    | (?P<repeat>\{(?P<least>\d*)(?:,(?P<most>\d*))?\})
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def regex_fault(pattern: str) -> str:
    """Return why a text cannot be compiled as a regular expression, or an empty string when it can.

    Counted repeats are written out when a pattern is compiled, one inside the other multiplied: too many of them
    take all memory, or end the process.
    """
    import regex

    if expanded_size(pattern) > MOST_EXPANDED:
        return f"its counted repeats come to more than {MOST_EXPANDED} items when they are written out"
    try:
        regex.compile(pattern)
    except regex.error as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    except (OverflowError, MemoryError):
        return "it is too large"
    return ""


def expanded_size(pattern: str) -> int:
    """Return about how many items a pattern has when each counted repeat is written out."""
    sizes = [0]
    last = 0
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            sizes.append(0)
            last = 0
        elif token["close"]:
            last = 1 + (sizes.pop() if len(sizes) > 1 else 0)
            sizes[-1] += last
        elif token["repeat"]:
            extra = last * (_times(token) - 1)
            sizes[-1] += extra
            last += extra
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def _times(token: re.Match[str]) -> int:
    """Return how often a counted repeat writes its item out; at least once."""
    counts = [count for count in (token["least"], token["most"]) if count]
    return max(1, *(int(count[:9]) for count in counts)) if counts else 1
