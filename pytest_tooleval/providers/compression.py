"""Compressed bodies, undone a bounded piece at a time: a small body may hold gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

ENCODINGS = ("gzip", "x-gzip", "deflate")
_PIECE = 65_536


class CompressionError(ValueError):
    """A body is compressed in a way that cannot be undone, or broken."""


def decompressed(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield what compressed chunks hold, no more than 64 KiB at a time.

    Args:
        chunks: the body as it came.
        encoding: the header Content-Encoding, empty where there is none.

    Raises:
        CompressionError: the encoding is none of `ENCODINGS`, or the body is not valid.

    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        yield from chunks
        return
    if encoding not in ENCODINGS:
        raise CompressionError(f"is compressed with {encoding[:60]}, which is not supported")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for chunk in chunks:
        rest = chunk
        while rest and not inflater.eof:
            try:
                yield inflater.decompress(rest, _PIECE)
            except zlib.error as error:
                raise CompressionError(f"is not valid {encoding}") from error
            rest = inflater.unconsumed_tail
